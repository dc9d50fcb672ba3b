// Gaussian filters in a few dimensions by a permutohedral lattice (Adams, Baek and Davis, "Fast High-Dimensional
// Filtering Using the Permutohedral Lattice", Computer Graphics Forum, 2010), plain f32 in CPU memory.
#ifndef CREMA_OPS_MEAN_FIELD_PERMUTOHEDRAL_H_
#define CREMA_OPS_MEAN_FIELD_PERMUTOHEDRAL_H_

#include <cstddef>
#include <cstdint>

#include "ops/mean_field/permutohedral_formulas.h"

namespace crema::permutohedral {

size_t BuildWorkspace(int dimensions, int64_t points);
// Fills in the lattice of points with these features (points x dimensions, in standard deviations): 2 or 5 dimensions,
// at most 2^31 / 6 points. Threaded.
void Build(const View& lattice, const float* features, std::byte* workspace);

// Whether it is the filter itself or its adjoint, which backward passes need.
enum class Direction { kForward, kAdjoint };

// Floats of Filter's workspace.
int64_t FilterWorkspace(int dimensions, int64_t points, int64_t channels);
// y[point][channel] = the sum over all points of x with weights that are near a constant multiple of
// exp(-distance^2 / 2), for `channels` numbers of each point. Where `normalizes`, divided by what this makes of ones:
// after the filter, or before its adjoint. y may be x. Threaded; sums are the same on any number of threads.
void Filter(const View& lattice, Direction direction, bool normalizes, int64_t channels, const float* x, float* y,
            float* workspace);

}  // namespace crema::permutohedral

#endif  // CREMA_OPS_MEAN_FIELD_PERMUTOHEDRAL_H_
