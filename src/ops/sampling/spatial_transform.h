// Images looked at through affine maps, one for each (Jaderberg et al., "Spatial Transformer Networks", 2015), plain
// f32 in CPU memory.
#ifndef CREMA_OPS_SAMPLING_SPATIAL_TRANSFORM_H_
#define CREMA_OPS_SAMPLING_SPATIAL_TRANSFORM_H_

#include <cstddef>
#include <cstdint>

namespace crema {

inline constexpr int kAffineNumbers = 6;  // of a map: two rows of three

struct SpatialTransform {
  int64_t images = 1, channels = 1, height = 1, width = 1;
  int64_t result_height = 1, result_width = 1;
  int32_t learnt = kAffineNumbers;  // numbers of a map in `theta`
  // Of each number of a map: which of those in `theta` it is; -1: `fixed`.
  int32_t place[kAffineNumbers] = {0, 1, 2, 3, 4, 5};
  float fixed[kAffineNumbers] = {};
};

// y[image][channel][i][j] = x[image][channel] at what the image's map makes of the row 2 i / result_height - 1 and the
// column 2 j / result_width - 1, where -1 is the first row or column of x and 1 the one behind the last. Interpolated
// bilinearly; 0 beyond. theta: images x learnt. Threaded; allocates nothing.
void SpatialTransformForward(const SpatialTransform& problem, const float* x, const float* theta, float* y);

size_t SpatialTransformWorkspace(const SpatialTransform& problem);
// Overwrites all of dx and dtheta; either may be null. On an element of x the slope towards the next one counts. Sums
// are the same on any number of threads.
void SpatialTransformBackward(const SpatialTransform& problem, const float* x, const float* theta, const float* dy,
                              float* dx, float* dtheta, std::byte* workspace);

}  // namespace crema

#endif  // CREMA_OPS_SAMPLING_SPATIAL_TRANSFORM_H_
