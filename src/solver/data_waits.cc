#include "solver/data_waits.h"

#include <algorithm>
#include <cmath>

namespace crema {

namespace {

constexpr double kShare = 0.1;
constexpr double kLeastSeconds = 0.1;  // less is of no account, however short the interval

}  // namespace

std::string DataWaits::Look(const Net& net, double seconds) {
  if (told_) return {};
  std::string notice;
  double longest = std::max(kLeastSeconds, kShare * seconds);
  for (const auto& [layer, supply] : net.data_supplies()) {
    double& before = waited_[layer];
    const double waited = supply.waited_seconds - before;
    before = supply.waited_seconds;
    if (first_ || waited <= longest) continue;
    longest = waited;
    notice = "training waits for its data: " + std::to_string(std::lround(100 * waited / seconds)) +
             " % of the time since the last display, in layer \"" + layer + "\"; " + supply.remedy;
  }
  first_ = false;
  told_ = !notice.empty();
  return notice;
}

}  // namespace crema
