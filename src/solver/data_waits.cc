#include "solver/data_waits.h"

#include <cmath>

namespace crema {

namespace {

constexpr double kShare = 0.1;
constexpr double kLeastSeconds = 0.5;  // shorter intervals are taken together: a single wait would tell nothing

}  // namespace

std::string DataWaits::Look(const Net& net, double seconds) {
  seconds_ += seconds;
  if (told_ || (!first_ && seconds_ < kLeastSeconds)) return {};
  std::string notice;
  double longest = kShare * seconds_;
  for (const auto& [layer, supply] : net.data_supplies()) {
    double& before = waited_[layer];
    const double waited = supply.waited_seconds - before;
    before = supply.waited_seconds;
    if (first_ || waited <= longest) continue;
    longest = waited;
    notice = "training waits for its data: " + std::to_string(std::lround(100 * waited / seconds_)) +
             " % of the time lately, in layer \"" + layer + "\"; " + supply.remedy;
  }
  first_ = false;
  seconds_ = 0;
  told_ = !notice.empty();
  return notice;
}

}  // namespace crema
