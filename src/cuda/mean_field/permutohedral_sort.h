// Sorts the keys of a lattice's vertices in GPU memory and numbers them, as ops/mean_field/permutohedral.cc does: the
// points of a vertex stay in their order.
#ifndef CREMA_CUDA_MEAN_FIELD_PERMUTOHEDRAL_SORT_H_
#define CREMA_CUDA_MEAN_FIELD_PERMUTOHEDRAL_SORT_H_

#include <cstddef>
#include <cstdint>

#include "cuda/arrays/radix_sort.h"
#include "ops/mean_field/permutohedral_formulas.h"

namespace crema::cuda {

class KeySort {
 public:
  KeySort(const permutohedral::View& lattice, std::byte* workspace);
  static size_t Bytes(int dimensions, int64_t points);

  // What Run sorts: to be written before. The keys of the points' vertices, group by group, and the points.
  SortedKeys<permutohedral::Key> unsorted() const { return sort_.unsorted(); }
  // Fills in the lattice but for neighbors and `inverse`.
  void Run(const Queue& queue) const;
  // After that: the first vertex of each group and the number of them all, and the vertices' keys.
  const int64_t* begin_of() const { return begin_of_; }
  const permutohedral::Key* of_vertices() const { return sort_.spare().keys; }

 private:
  KeySort(const permutohedral::View& lattice, std::byte** memory);

  permutohedral::View lattice_;
  int64_t* begin_of_;
  RadixSort<permutohedral::Key> sort_;
  int32_t* heads_;  // tiles of all groups
};

}  // namespace crema::cuda

#endif  // CREMA_CUDA_MEAN_FIELD_PERMUTOHEDRAL_SORT_H_
