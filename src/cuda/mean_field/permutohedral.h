// Gaussian filters by a permutohedral lattice in GPU memory (ops/mean_field/permutohedral.h). Sums have one order, and
// nothing waits for the GPU.
#ifndef CREMA_CUDA_MEAN_FIELD_PERMUTOHEDRAL_H_
#define CREMA_CUDA_MEAN_FIELD_PERMUTOHEDRAL_H_

#include <cstddef>
#include <cstdint>

#include "cuda/device/launch.h"
#include "ops/mean_field/permutohedral.h"

namespace crema::cuda {

size_t LatticeWorkspace(int dimensions, int64_t points);
void BuildLattice(const Queue& queue, const permutohedral::View& lattice, const float* features, std::byte* workspace);

// In bytes.
size_t FilterWorkspace(int dimensions, int64_t points, int64_t channels);
void Filter(const Queue& queue, const permutohedral::View& lattice, permutohedral::Direction direction, bool normalizes,
            int64_t channels, const float* x, float* y, std::byte* workspace);

}  // namespace crema::cuda

#endif  // CREMA_CUDA_MEAN_FIELD_PERMUTOHEDRAL_H_
