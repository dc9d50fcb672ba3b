// Which addresses of an arena are taken in which steps, so that a place for a tensor is found without looking at all
// others: planning the memory of a net takes time that grows with its layers, not with their square.
#ifndef CREMA_COMPILER_OCCUPIED_MEMORY_H_
#define CREMA_COMPILER_OCCUPIED_MEMORY_H_

#include <cstddef>
#include <utility>
#include <vector>

namespace crema {

class OccupiedMemory {
 public:
  // Of steps 0 to steps - 1.
  explicit OccupiedMemory(int steps);

  // The lowest offset from which on `bytes` are free in all steps of [first, last].
  size_t LowestFree(int first, int last, size_t bytes);
  void Take(int first, int last, size_t offset, size_t bytes);

 private:
  struct Range {
    size_t begin, end;
  };
  // Apart from each other, by address.
  using Ranges = std::vector<Range>;

  static void Add(Ranges& ranges, Range added);

  // A segment tree over the steps: node 1 stands for all of them, nodes 2 n and 2 n + 1 for the halves of n's, and
  // node leaves_ + s for step s alone.
  int leaves_ = 1;
  std::vector<Ranges> sometimes_;  // by node: taken in some of its steps
  std::vector<Ranges> always_;     // taken by what lives in all of its steps and not in all of its parent's
  std::vector<std::pair<const Range*, const Range*>>
      ahead_;  // of LowestFree: ranges that may be in the way, yet to come
};

}  // namespace crema

#endif  // CREMA_COMPILER_OCCUPIED_MEMORY_H_
