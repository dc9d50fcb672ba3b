// The blobs of BatchNorm and of the Scale behind it, as Caffe's files hold them, and those of BN, as PSPNet's and
// SegNet's do.
#ifndef CREMA_LAYERS_BATCH_NORM_BLOBS_H_
#define CREMA_LAYERS_BATCH_NORM_BLOBS_H_

#include <cstdint>
#include <span>
#include <string>

#include "crema/layer.h"
#include "graph/batch_norm_modes.h"
#include "graph/filler.h"
#include "ops/normalization/batch_norm.h"

namespace crema {

// Sums of means and of variances, each decayed a pass, and the sum of weights to divide both by.
inline constexpr int kMeanSum = 0, kVarianceSum = 1, kWeightSum = 2, kBatchNormBlobs = 3;

// Behind them in NVIDIA's fork, where BatchNorm does what Scale does, too; the sums then are averages, of weight 1.
inline constexpr int kNormScale = kBatchNormBlobs, kNormBias = kBatchNormBlobs + 1;

inline void AddBatchNormBlobs(LayerSetup& setup, const BatchNormParameter& param, int64_t channels) {
  setup.AddParam({Shape{channels}, {}, false});
  setup.AddParam({Shape{channels}, {}, false});
  setup.AddParam({Shape{1}, {}, false});
  if (!ScalesItself(param)) return;
  FillerParameter one;
  one.set_value(1);
  AddFilledParam(setup, "batch_norm_param.scale_filler", Shape{channels},
                 param.has_scale_filler() ? param.scale_filler() : one);
  AddFilledParam(setup, "batch_norm_param.bias_filler", Shape{channels}, param.bias_filler());
}

// Those of a Scale that multiplies by channel.
inline void AddScaleBlobs(LayerSetup& setup, const LayerParameter& scale, int64_t channels) {
  setup.AddParam({Shape{channels}, scale.scale_param().filler()});
  if (scale.scale_param().bias_term()) setup.AddParam({Shape{channels}, scale.scale_param().bias_filler()});
}

inline BatchNormBlobs Blobs(std::span<const Tensor> params) {
  return {params[kMeanSum].f32(), params[kVarianceSum].f32(), params[kWeightSum].f32()};
}

// Of BN: what Scale has, and, unless it is SegNet's, what BatchNorm has as sums of a weight of 1.
inline constexpr int kBnSlope = 0, kBnBias = 1, kBnMean = 2, kBnVariance = 3;

inline void AddBnBlobs(LayerSetup& setup, const BNParameter& param, int64_t channels) {
  FillerParameter one;
  one.set_value(1);
  const Shape shape{1, channels, 1, 1};
  const auto add = [&](const std::string& field, const FillerParameter& filler) {
    AddFilledParam(setup, "bn_param." + field, shape, filler, !param.frozen());
  };
  if (IsBnOfSegNet(param)) {
    if (param.has_slope_filler() || param.has_bias_filler() || param.has_momentum() || param.has_frozen()) {
      setup.Fail("bn_param",
                 "bn_param mixes fields of two forks: slope_filler, bias_filler, momentum and frozen are PSPNet's, "
                 "scale_filler, shift_filler and bn_mode SegNet's; keep those of one");
    }
    add("scale_filler", param.has_scale_filler() ? param.scale_filler() : one);
    add("shift_filler", param.shift_filler());
    return;
  }
  add("slope_filler", param.has_slope_filler() ? param.slope_filler() : one);
  add("bias_filler", param.bias_filler());
  setup.AddParam({shape, {}, false});
  setup.AddParam({shape, param.frozen() ? one : FillerParameter(), false});
}

// Numbers, by channel, that stand for what a BN has no blobs of.
struct BnConstants {
  float *zeros, *ones;
};
inline BatchNormBlobs BnBlobs(std::span<const Tensor> params, const BnConstants& constants) {
  if (params.size() <= kBnMean) return {constants.zeros, constants.ones, constants.ones};
  return {params[kBnMean].f32(), params[kBnVariance].f32(), constants.ones};
}

}  // namespace crema

#endif  // CREMA_LAYERS_BATCH_NORM_BLOBS_H_
