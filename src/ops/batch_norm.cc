#include "ops/batch_norm.h"

#include <cmath>

namespace crema {

namespace {

class RunningStatistics {
 public:
  explicit RunningStatistics(const BatchNormBlobs& blobs) : means_(blobs.mean_sum), variances_(blobs.variance_sum) {
    factor_ = *blobs.weight_sum == 0 ? 0 : 1 / *blobs.weight_sum;
  }
  float mean(int64_t channel) const { return means_[channel] * factor_; }
  float variance(int64_t channel) const { return variances_[channel] * factor_; }

 private:
  const float *means_, *variances_;
  float factor_;
};

}  // namespace

void UpdateRunning(const BatchNormScalars& norm, const BatchNormBlobs& blobs, const float* mean,
                   const float* variance) {
  const float count = static_cast<float>(norm.per_channel);
  const float unbiased = count > 1 ? count / (count - 1) : 1;
  for (int64_t c = 0; c < norm.channels; ++c) {
    blobs.mean_sum[c] = blobs.mean_sum[c] * norm.fraction + mean[c];
    blobs.variance_sum[c] = blobs.variance_sum[c] * norm.fraction + unbiased * variance[c];
  }
  *blobs.weight_sum = *blobs.weight_sum * norm.fraction + 1;
}

void ForwardCoefficients(const BatchNormScalars& norm, const BatchNormForward& arrays) {
  if (arrays.running) {
    const RunningStatistics running(*arrays.running);
    for (int64_t c = 0; c < norm.channels; ++c) {
      arrays.mean[c] = running.mean(c);
      arrays.inverse_deviation[c] = running.variance(c);
    }
  }
  for (int64_t c = 0; c < norm.channels; ++c) {
    const float inverse = 1 / std::sqrt(arrays.inverse_deviation[c] + norm.eps);
    arrays.inverse_deviation[c] = inverse;
    arrays.scale[c] = inverse * (arrays.gain ? arrays.gain[c] : 1);
  }
}

void BackwardCoefficients(const BatchNormScalars& norm, const BatchNormBackward& arrays) {
  const float count = static_cast<float>(norm.per_channel);
  for (int64_t i = 0; i < norm.channels; ++i) {
    const float inverse = arrays.inverse_deviation[i];
    if (arrays.gain_gradient) arrays.gain_gradient[i] = arrays.product[i] * inverse;
    if (arrays.shift_gradient) arrays.shift_gradient[i] = arrays.sum[i];
    const float a = inverse * (arrays.gain ? arrays.gain[i] : 1);
    arrays.a[i] = a;
    if (!arrays.b) continue;
    arrays.b[i] = -a * inverse * inverse * arrays.product[i] / count;
    arrays.c[i] = -a * arrays.sum[i] / count;
  }
}

void FoldNormalization(const BatchNormScalars& norm, const FoldedArrays& arrays) {
  const RunningStatistics running(arrays.running);
  const int64_t width = arrays.width;
  for (int64_t o = 0; o < norm.channels; ++o) {
    const float scale = (arrays.gain ? arrays.gain[o] : 1) / std::sqrt(running.variance(o) + norm.eps);
    for (int64_t i = o * width; i < (o + 1) * width; ++i) arrays.folded_weights[i] = arrays.weights[i] * scale;
    arrays.folded_bias[o] =
        ((arrays.bias ? arrays.bias[o] : 0) - running.mean(o)) * scale + (arrays.shift ? arrays.shift[o] : 0);
  }
}

}  // namespace crema
