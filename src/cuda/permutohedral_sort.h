// Sorts the keys of a lattice's vertices in GPU memory and numbers them, as ops/permutohedral.cc does: a stable radix
// sort of each group, so that the points of a vertex stay in their order.
#ifndef CREMA_CUDA_PERMUTOHEDRAL_SORT_H_
#define CREMA_CUDA_PERMUTOHEDRAL_SORT_H_

#include <cstddef>
#include <cstdint>

#include "cuda/launch.h"
#include "ops/permutohedral_formulas.h"

namespace crema::cuda {

// The keys of the points' vertices, group by group, and the points.
struct SortedKeys {
  permutohedral::Key* keys;
  int32_t* points;
};

class KeySort {
 public:
  KeySort(const permutohedral::View& lattice, std::byte* workspace);
  static size_t Bytes(int dimensions, int64_t points);

  // What Run sorts: to be written before.
  SortedKeys unsorted() const { return buffers_[0]; }
  // Fills in the lattice but for neighbors and `inverse`.
  void Run(const Queue& queue) const;
  // After that: the first vertex of each group and the number of them all, and the vertices' keys.
  const int64_t* begin_of() const { return begin_of_; }
  const permutohedral::Key* of_vertices() const { return buffers_[1 - kPasses % 2].keys; }

 private:
  static constexpr int kDigitBits = 4;
  static constexpr int kPasses = permutohedral::kKeyBits / kDigitBits;
  static_assert(kPasses * kDigitBits == permutohedral::kKeyBits);

  permutohedral::View lattice_;
  int64_t* begin_of_;
  SortedKeys buffers_[2];
  int32_t* counts_;  // groups x digits x tiles
  int32_t* heads_;   // tiles of all groups
};

}  // namespace crema::cuda

#endif  // CREMA_CUDA_PERMUTOHEDRAL_SORT_H_
