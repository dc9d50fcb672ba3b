// Mean-field inference in fully connected conditional random fields over images (Zheng et al., "Conditional Random
// Fields as Recurrent Neural Networks", 2015), plain f32 in CPU memory.
#ifndef CREMA_OPS_MEAN_FIELD_MEAN_FIELD_H_
#define CREMA_OPS_MEAN_FIELD_MEAN_FIELD_H_

#include <cstddef>
#include <cstdint>

namespace crema {

inline constexpr int kColors = 3;  // of an image

struct MeanField {
  int64_t images = 1, classes = 1, height = 1, width = 1;
  int32_t iterations = 1;  // at least 1
  // Standard deviations: of positions and colours in the bilateral filter, of positions in the spatial one. Positions
  // must lie within permutohedral::kMostDeviations of 0.
  float theta_alpha = 1, theta_beta = 1, theta_gamma = 1;

  int64_t pixels() const { return height * width; }
};

struct MeanFieldInputs {
  const float* scores;  // images x classes x height x width
  const float* first;   // the same; what the first step takes the softmax of
  const float* image;   // images x kColors x height x width
};

// classes x classes each.
struct MeanFieldWeights {
  const float *spatial, *bilateral, *compatibility;
};

struct MeanFieldTape {
  const std::byte* spatial;  // what MakeSpatialLattice wrote
  // For the backward pass, in a form of the device's own; null where there is none: the lattices of the images, and the
  // probabilities that each step began with.
  std::byte *bilateral, *probabilities;
};

// Each may be null.
struct MeanFieldGradients {
  float *scores, *first, *spatial, *bilateral, *compatibility;
};

// Bytes of a MeanFieldTape and of workspaces; `forward` is enough for MakeSpatialLattice, too.
struct MeanFieldMemory {
  size_t spatial = 0, bilateral = 0, probabilities = 0, forward = 0, backward = 0;
};
// `keeps`: for a backward pass.
MeanFieldMemory MeanFieldMemoryOf(const MeanField& problem, bool keeps);

// Height, width and theta_gamma alone decide what it is.
void MakeSpatialLattice(const MeanField& problem, std::byte* lattice, std::byte* workspace);

// y = x after `iterations` steps x = scores - compatibility * (spatial * S(q) + bilateral * B(q)) with q = softmax(x),
// which begin with x = first. S and B are the filters, each divided by what it makes of ones. Where a colour is not
// finite y is NaN, at least there. Threaded; sums are the same on any number of threads.
void MeanFieldForward(const MeanField& problem, const MeanFieldInputs& inputs, const MeanFieldWeights& weights,
                      const MeanFieldTape& tape, float* y, std::byte* workspace);

// Overwrites the gradients.
void MeanFieldBackward(const MeanField& problem, const MeanFieldWeights& weights, const MeanFieldTape& tape,
                       const float* dy, const MeanFieldGradients& gradients, std::byte* workspace);

}  // namespace crema

#endif  // CREMA_OPS_MEAN_FIELD_MEAN_FIELD_H_
