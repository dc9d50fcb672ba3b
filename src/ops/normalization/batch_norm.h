// What batch normalisation (Ioffe and Szegedy, "Batch normalization", 2015) does with numbers that there is one of for
// each channel: running statistics, and the coefficients of the passes over images that ops/normalization/channels.h
// makes. f32.
#ifndef CREMA_OPS_NORMALIZATION_BATCH_NORM_H_
#define CREMA_OPS_NORMALIZATION_BATCH_NORM_H_

#include <cstddef>
#include <cstdint>

#include "ops/normalization/channels.h"

namespace crema {

// What a pass over a batch makes of running statistics.
enum class RunningStatistics {
  kSums,        // Caffe's: sums of means and of variances, and of weights, each decayed
  kUnitWeight,  // the same, divided by the sum of weights in each pass, as NVIDIA's fork of Caffe keeps them
  kAverages,    // moving averages, of biased variances, as PSPNet's fork keeps them; weights are left alone
};

struct BatchNormScalars {
  int64_t channels = 1;
  int64_t per_channel = 1;  // values that a channel's statistics are of
  float fraction = 0;       // of the running statistics that is kept in each pass
  float eps = 0;
  RunningStatistics running = RunningStatistics::kSums;
};

// Means and variances, and the sum of weights to divide both by, one number. 0 before any training.
struct BatchNormBlobs {
  float *mean_sum = nullptr, *variance_sum = nullptr, *weight_sum = nullptr;
};

// What ChannelAffine takes.
struct BatchNormForward {
  BatchNormBlobs running;       // null where nothing is kept
  const float* gain = nullptr;  // null: 1
  float *mean = nullptr, *inverse_deviation = nullptr;
  float* scale = nullptr;  // gets gain * inverse_deviation
};
// From the batch x, whose mean and variance join the running statistics. `workspace`: ChannelWorkspace.
void BatchNormFromBatch(const ChannelGrid& grid, const void* x, const BatchNormScalars& norm,
                        const BatchNormForward& arrays, std::byte* workspace);
// From the running statistics.
void BatchNormFromRunning(const BatchNormScalars& norm, const BatchNormForward& arrays);

// The coefficients of ChannelGradientMap, and the gradients of gain and shift.
struct BatchNormBackward {
  const float *mean = nullptr, *inverse_deviation = nullptr;
  const float* gain = nullptr;               // null: 1
  float *sum = nullptr, *product = nullptr;  // for what ChannelGradientSums finds; null where it is not wanted
  float *gain_gradient = nullptr, *shift_gradient = nullptr;  // null: not wanted, else product and sum are
  float* a = nullptr;
  float *b = nullptr, *c = nullptr;  // null where the statistics are not the batch's, else product and sum are wanted
};
void BatchNormGradients(const ChannelGrid& grid, const ChannelGradient& g, const void* x, const BatchNormScalars& norm,
                        const BatchNormBackward& arrays, std::byte* workspace);

// Weights (outputs outermost, `width` for each) and bias of a convolution with the normalisation behind it, a gain and
// a shift folded in. Null: no bias, gain 1, shift 0.
struct FoldedArrays {
  BatchNormBlobs running;
  int64_t width = 1;
  const float *weights = nullptr, *bias = nullptr, *gain = nullptr, *shift = nullptr;
  float *folded_weights = nullptr, *folded_bias = nullptr;
};
void FoldNormalization(const BatchNormScalars& norm, const FoldedArrays& arrays);

}  // namespace crema

#endif  // CREMA_OPS_NORMALIZATION_BATCH_NORM_H_
