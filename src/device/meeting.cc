#include "device/meeting.h"

#include <algorithm>
#include <bit>

#include "device/communicator.h"

namespace crema {

const std::vector<uint64_t>& Meeting::Exchange(int rank, uint64_t value) {
  std::unique_lock lock(mutex_);
  if (aborted_) throw Aborted();
  const uint64_t meeting = meetings_;
  std::vector<uint64_t>& given = given_[meeting % 2];
  given[rank] = value;
  if (++came_ == ranks()) {
    came_ = 0;
    ++meetings_;
    all_came_.notify_all();
  } else {
    all_came_.wait(lock, [&] { return meetings_ > meeting || aborted_; });
    if (meetings_ == meeting) throw Aborted();
  }
  return given;
}

void Meeting::SumInPlace(int rank, float* data, int64_t count) {
  constexpr int64_t kLine = 16, kStrip = 2048;  // floats: of a cache line; that stay in the first cache
  const std::vector<uint64_t>& given = Exchange(rank, std::bit_cast<uint64_t>(data));
  const auto of_rank = [&given](int r) { return std::bit_cast<float*>(given[r]); };
  // Each rank sums a share of its own, for all.
  const int64_t lines = (count + kLine - 1) / kLine;
  const int64_t begin = lines * rank / ranks() * kLine, end = std::min(count, lines * (rank + 1) / ranks() * kLine);
  float sums[kStrip];
  for (int64_t at = begin; at < end; at += kStrip) {
    const int64_t n = std::min(kStrip, end - at);
    std::copy_n(of_rank(0) + at, n, sums);
    for (int r = 1; r < ranks(); ++r) {
      const float* const addend = of_rank(r) + at;
      for (int64_t i = 0; i < n; ++i) sums[i] += addend[i];
    }
    for (int r = 0; r < ranks(); ++r) std::copy_n(sums, n, of_rank(r) + at);
  }
  Exchange(rank, 0);
}

double Meeting::Sum(int rank, double value) {
  double sum = 0;
  for (const uint64_t given : Exchange(rank, std::bit_cast<uint64_t>(value))) sum += std::bit_cast<double>(given);
  return sum;
}

void Meeting::Abort() {
  {
    const std::lock_guard lock(mutex_);
    aborted_ = true;
  }
  all_came_.notify_all();
}

}  // namespace crema
