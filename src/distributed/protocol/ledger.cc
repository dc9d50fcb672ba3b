#include "distributed/protocol/ledger.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "base/check.h"

namespace crema {

Ledger::Ledger(uint64_t next, const std::vector<Steps>& unused) : next_(next) {
  for (const Steps& steps : unused) {
    if (steps.count == 0 || steps.count > next || steps.first > next - steps.count) {
      throw std::invalid_argument("unused steps lie outside of those that were handed out");
    }
    const auto after = free_.lower_bound(steps.first);
    if ((after != free_.end() && after->first < steps.end()) ||
        (after != free_.begin() && std::prev(after)->first + std::prev(after)->second > steps.first)) {
      throw std::invalid_argument("unused steps overlap");
    }
    Free(steps);
  }
}

Steps Ledger::Take(uint64_t count) {
  CREMA_CHECK(count > 0);
  Steps taken;
  if (free_.empty()) {
    taken = {next_, count};
    next_ += count;
  } else {
    const auto [first, available] = *free_.begin();
    taken = {first, std::min(count, available)};
    free_.erase(free_.begin());
    if (available > taken.count) free_.emplace(taken.end(), available - taken.count);
  }
  leased_.emplace(taken.first, taken.count);
  return taken;
}

bool Ledger::TakeThese(const Steps& steps) {
  if (steps.count == 0 || steps.first > UINT64_MAX - steps.count) return false;
  if (steps.first < next_) {
    const auto after = free_.upper_bound(steps.first);
    if (after == free_.begin()) return false;
    const auto [first, count] = *std::prev(after);
    if (first + count < std::min(steps.end(), next_)) return false;
  }
  if (steps.end() > next_) {
    Free({next_, steps.end() - next_});
    next_ = steps.end();
  }
  const auto range = std::prev(free_.upper_bound(steps.first));
  const Steps whole{range->first, range->second};
  free_.erase(range);
  if (whole.first < steps.first) free_.emplace(whole.first, steps.first - whole.first);
  if (steps.end() < whole.end()) free_.emplace(steps.end(), whole.end() - steps.end());
  leased_.emplace(steps.first, steps.count);
  return true;
}

void Ledger::Free(const Steps& steps) {
  Steps whole = steps;
  auto after = free_.lower_bound(steps.first);
  if (after != free_.end() && after->first == whole.end()) {
    whole.count += after->second;
    after = free_.erase(after);
  }
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == whole.first) {
      before->second += whole.count;
      return;
    }
  }
  free_.emplace(whole.first, whole.count);
}

void Ledger::Return(const Steps& lease) {
  const auto found = leased_.find(lease.first);
  CREMA_CHECK(found != leased_.end() && found->second == lease.count) << "no such lease";
  leased_.erase(found);
  Free(lease);
}

void Ledger::Use(const Steps& lease) {
  const auto found = leased_.find(lease.first);
  CREMA_CHECK(found != leased_.end() && found->second == lease.count) << "no such lease";
  leased_.erase(found);
}

std::vector<Steps> Ledger::unused() const {
  std::vector<Steps> all;
  for (const Ranges* ranges : {&free_, &leased_}) {
    for (const auto& [first, count] : *ranges) all.push_back({first, count});
  }
  std::sort(all.begin(), all.end(), [](const Steps& a, const Steps& b) { return a.first < b.first; });
  return all;
}

}  // namespace crema
