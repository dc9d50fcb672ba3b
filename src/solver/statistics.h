// Which parameters of a net are running statistics that its training passes change.
#ifndef CREMA_SOLVER_STATISTICS_H_
#define CREMA_SOLVER_STATISTICS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "crema/net.h"

namespace crema {

// Those of one BatchNorm layer, or of several that share them all: sum of means, sum of variances, sum of weights
// (layers/batch_norm.cc), counted as Net::parameters() does.
struct StatisticsBlobs {
  std::array<int, 3> parameters;
};

// What such sums say of a channel.
class RunningMoments {
 public:
  // Both arrays by channel; they must outlive this.
  RunningMoments(const float* means, const float* variances, float weight)
      : means_(means), variances_(variances), scale_(weight == 0 ? 0 : 1 / static_cast<double>(weight)) {}
  double mean(int64_t channel) const { return static_cast<double>(means_[channel]) * scale_; }
  double variance(int64_t channel) const { return static_cast<double>(variances_[channel]) * scale_; }
  // The mean square about zero.
  double square(int64_t channel) const { return variance(channel) + mean(channel) * mean(channel); }

 private:
  const float *means_, *variances_;
  double scale_;
};

// Writes the sums of a channel, of this weight, that say so. A variance below 0 is rounding.
inline void PutVariance(double mean, double variance, double weight, float* mean_sum, float* variance_sum) {
  *mean_sum = static_cast<float>(mean * weight);
  *variance_sum = static_cast<float>(std::max(0.0, variance) * weight);
}
inline void PutMoments(double mean, double square, double weight, float* mean_sum, float* variance_sum) {
  PutVariance(mean, square - mean * mean, weight, mean_sum, variance_sum);
}

// In the order of the layers. Throws UserError where layers share some of their statistics but not all.
std::vector<StatisticsBlobs> StatisticsOf(const Net& net);

}  // namespace crema

#endif  // CREMA_SOLVER_STATISTICS_H_
