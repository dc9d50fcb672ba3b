// Images of another size, bilinearly, plain f32 in CPU memory.
#ifndef CREMA_OPS_SAMPLING_INTERPOLATION_H_
#define CREMA_OPS_SAMPLING_INTERPOLATION_H_

#include <cstdint>

namespace crema {

// The part of each plane that begins at (row, column) becomes a whole plane of the result, corners on corners.
struct Interpolation {
  int64_t planes = 1;
  int64_t height = 1, width = 1;  // of the source
  int64_t row = 0, column = 0;
  int64_t part_height = 1, part_width = 1;
  int64_t result_height = 1, result_width = 1;
};

// Threaded; allocates nothing.
void InterpolationForward(const Interpolation& problem, const float* x, float* y);
// Overwrites all of dx: what lies outside of the part gets 0. Each row is one thread's, so that sums are the same on
// any number of threads.
void InterpolationBackward(const Interpolation& problem, const float* dy, float* dx);

}  // namespace crema

#endif  // CREMA_OPS_SAMPLING_INTERPOLATION_H_
