// What batch normalisation (Ioffe and Szegedy, "Batch normalization", 2015) does with numbers that there is one of for
// each channel: running statistics, and the coefficients of the passes over images that ops/channels.h makes. f32.
#ifndef CREMA_OPS_BATCH_NORM_H_
#define CREMA_OPS_BATCH_NORM_H_

#include <cstdint>

namespace crema {

struct BatchNormScalars {
  int64_t channels = 1;
  int64_t per_channel = 1;  // values that a channel's statistics are of
  float fraction = 0;       // of the running sums that is kept in each pass
  float eps = 0;
  // Keep the weight of the running sums at 1, so that they are moving averages, as NVIDIA's fork of Caffe has them.
  bool unit_weight = false;
};

// Caffe's blobs: sums of means and of variances, each decayed a pass, and the sum of weights to divide both by, one
// number. 0 before any training.
struct BatchNormBlobs {
  float *mean_sum = nullptr, *variance_sum = nullptr, *weight_sum = nullptr;
};

// Adds a batch's mean and (biased) variance to the running statistics.
void UpdateRunning(const BatchNormScalars& norm, const BatchNormBlobs& blobs, const float* mean, const float* variance);

struct BatchNormForward {
  // Null: mean and inverse_deviation hold the batch's mean and variance. Else they are taken from here.
  const BatchNormBlobs* running = nullptr;
  const float* gain = nullptr;  // null: 1
  float *mean = nullptr, *inverse_deviation = nullptr;
  float* scale = nullptr;  // gets gain * inverse_deviation
};
void ForwardCoefficients(const BatchNormScalars& norm, const BatchNormForward& arrays);

// From the sums of ChannelGradientSums the coefficients of RunChannelGradientMap.
struct BatchNormBackward {
  const float* inverse_deviation = nullptr;
  const float* gain = nullptr;                                // null: 1
  const float *sum = nullptr, *product = nullptr;             // product is null where nothing below wants it
  float *gain_gradient = nullptr, *shift_gradient = nullptr;  // null: not wanted
  float* a = nullptr;
  float *b = nullptr, *c = nullptr;  // null where the statistics are not the batch's
};
void BackwardCoefficients(const BatchNormScalars& norm, const BatchNormBackward& arrays);

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

#endif  // CREMA_OPS_BATCH_NORM_H_
