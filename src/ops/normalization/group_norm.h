// Normalisation of parts of each record by itself, with a learnt scale and shift: of groups of its channels (Wu and He,
// "Group Normalization", 2018), or of vectors (Ba, Kiros and Hinton, "Layer Normalization", 2016), which are groups of
// channels of images of one pixel. Tensors are plain f32 in CPU memory. Sums are accumulated in double, those of
// gradients from short runs in floats, in an order that does not depend on the number of threads. All functions run on
// the threads of OpenMP and allocate nothing.
#ifndef CREMA_OPS_NORMALIZATION_GROUP_NORM_H_
#define CREMA_OPS_NORMALIZATION_GROUP_NORM_H_

#include <cstddef>
#include <cstdint>

#include "base/multiversion.h"

namespace crema {

// A tensor seen as images x groups x channels of a group x pixels. A row, which has a mean and a variance, is a group
// of an image.
struct GroupNormProblem {
  int64_t images = 1, groups = 1, channels = 1, pixels = 1;
  float eps = 1e-5f;

  CREMA_HOST_DEVICE int64_t rows() const { return images * groups; }
  CREMA_HOST_DEVICE int64_t width() const { return channels * pixels; }
  CREMA_HOST_DEVICE int64_t scales() const { return groups * channels; }
};

// The mean of a row, in two parts so that digits of rows far from 0 are not lost, and 1 / sqrt(variance + eps).
struct RowMoments {
  float mean = 0, mean_rest = 0, inverse = 1;
};

// y = ((x - mean) - mean_rest) * inverse * scale[channel] + shift[channel]. `shift` may be null, for 0, or both, for
// scale 1; and `moments` where nobody reads them, else it has rows() elements. y may be x.
void GroupNormForward(const GroupNormProblem& problem, const float* x, const float* scale, const float* shift, float* y,
                      RowMoments* moments);

// Gradients to write; any may be null. dx may be dy.
struct GroupNormGradients {
  float *dx = nullptr, *scale = nullptr, *shift = nullptr;
};
// Bytes of scratch memory, aligned as floats.
size_t GroupNormBackwardWorkspace(const GroupNormProblem& problem);
void GroupNormBackward(const GroupNormProblem& problem, const float* x, const float* scale, const RowMoments* moments,
                       const float* dy, const GroupNormGradients& gradients, std::byte* workspace);

}  // namespace crema

#endif  // CREMA_OPS_NORMALIZATION_GROUP_NORM_H_
