#include "compiler/occupied_memory.h"

#include <algorithm>

namespace crema {

namespace {

// The fewest nodes that together stand for the steps of [first, last].
template <typename Body>
void ForEachPart(int leaves, int first, int last, const Body& body) {
  for (int left = leaves + first, right = leaves + last + 1; left < right; left /= 2, right /= 2) {
    if (left % 2 == 1) body(left++);
    if (right % 2 == 1) body(--right);
  }
}

// The nodes of the two steps, and all above them: all above the parts are among these.
template <typename Body>
void ForEachAbove(int leaves, int first, int last, const Body& body) {
  for (int left = leaves + first, right = leaves + last; left > 0; left /= 2, right /= 2) {
    body(left);
    if (right != left) body(right);
  }
}

}  // namespace

OccupiedMemory::OccupiedMemory(int steps) {
  while (leaves_ < steps) leaves_ *= 2;
  sometimes_.resize(2 * static_cast<size_t>(leaves_));
  always_.resize(sometimes_.size());
}

size_t OccupiedMemory::LowestFree(int first, int last, size_t bytes) {
  ahead_.clear();
  const auto look_at = [this](const Ranges& ranges) {
    if (!ranges.empty()) ahead_.emplace_back(ranges.data(), ranges.data() + ranges.size());
  };
  ForEachPart(leaves_, first, last, [&](int node) { look_at(sometimes_[node]); });
  ForEachAbove(leaves_, first, last, [&](int node) { look_at(always_[node]); });
  size_t offset = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (auto& [range, end] : ahead_) {
      for (; range != end && range->begin < offset + bytes; ++range) {
        if (range->end <= offset) continue;
        offset = range->end;
        moved = true;
      }
    }
  }
  return offset;
}

void OccupiedMemory::Take(int first, int last, size_t offset, size_t bytes) {
  if (bytes == 0) return;
  const Range taken{offset, offset + bytes};
  ForEachPart(leaves_, first, last, [&](int node) {
    Add(sometimes_[node], taken);
    Add(always_[node], taken);
  });
  ForEachAbove(leaves_, first, last, [&](int node) { Add(sometimes_[node], taken); });
}

void OccupiedMemory::Add(Ranges& ranges, Range added) {
  const auto begin = std::lower_bound(ranges.begin(), ranges.end(), added.begin,
                                      [](const Range& range, size_t at) { return range.end < at; });
  auto end = begin;
  for (; end != ranges.end() && end->begin <= added.end; ++end) {
    added.begin = std::min(added.begin, end->begin);
    added.end = std::max(added.end, end->end);
  }
  if (begin == end) {
    ranges.insert(begin, added);
  } else {
    *begin = added;
    ranges.erase(begin + 1, end);
  }
}

}  // namespace crema
