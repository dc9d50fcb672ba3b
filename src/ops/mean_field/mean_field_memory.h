// What mean-field inference keeps in memory, on the CPU and on GPUs alike.
#ifndef CREMA_OPS_MEAN_FIELD_MEAN_FIELD_MEMORY_H_
#define CREMA_OPS_MEAN_FIELD_MEAN_FIELD_MEMORY_H_

#include <cstddef>
#include <cstdint>

#include "base/aligned_memory.h"
#include "ops/losses/softmax.h"
#include "ops/mean_field/mean_field.h"
#include "ops/mean_field/mean_field_formulas.h"
#include "ops/mean_field/permutohedral_formulas.h"

namespace crema::mean_field {

// Carves arrays out of the workspace; without memory it only counts.
class Carver {
 public:
  explicit Carver(std::byte* memory) : memory_(memory) {}
  template <typename Number>
  Number* Take(int64_t count) {
    constexpr size_t kAlignment = 256;
    Number* const array = memory_ == nullptr ? nullptr : reinterpret_cast<Number*>(memory_ + used_);
    used_ += AlignedBytes(static_cast<size_t>(count) * sizeof(Number), kAlignment);
    return array;
  }
  size_t used() const { return used_; }

 private:
  std::byte* memory_;
  size_t used_ = 0;
};

// Of one image, pixels x classes each, beside what a device needs in both passes.
template <typename OfBoth>
struct ForwardArrays : OfBoth {
  float *scores, *state;
  std::byte* lattice = nullptr;    // where it is not kept
  float* probabilities = nullptr;  // likewise, of one step

  ForwardArrays(const MeanField& p, bool keeps, Carver* carver) : OfBoth(p, carver) {
    const int64_t numbers = p.pixels() * p.classes;
    scores = carver->Take<float>(numbers);
    state = carver->Take<float>(numbers);
    if (keeps) return;
    const size_t bytes = permutohedral::View::Bytes(kBilateralDimensions, p.pixels());
    lattice = carver->Take<std::byte>(static_cast<int64_t>(bytes));
    probabilities = carver->Take<float>(numbers);
  }
};

// The same; sums are those of GradientSums.
template <typename OfBoth>
struct BackwardArrays : OfBoth {
  float *gradient, *total, *of_probabilities;
  float* of_parts;  // OfBoth::PartsOf(p) parts of the pixels: classes x classes
  double *spatial_sums, *bilateral_sums;

  BackwardArrays(const MeanField& p, Carver* carver) : OfBoth(p, carver) {
    const int64_t numbers = p.pixels() * p.classes, square = p.classes * p.classes;
    gradient = carver->Take<float>(numbers);
    total = carver->Take<float>(numbers);
    of_probabilities = carver->Take<float>(numbers);
    of_parts = carver->Take<float>(OfBoth::PartsOf(p) * square);
    spatial_sums = carver->Take<double>(square);
    bilateral_sums = carver->Take<double>(square);
  }
};

template <typename OfBoth>
MeanFieldMemory MemoryOf(const MeanField& p, bool keeps) {
  using permutohedral::View;
  MeanFieldMemory memory;
  memory.spatial = View::Bytes(kSpatialDimensions, p.pixels());
  Carver forward(nullptr), backward(nullptr);
  ForwardArrays<OfBoth>(p, keeps, &forward);
  memory.forward = forward.used();
  if (!keeps) return memory;
  const auto images = static_cast<size_t>(p.images);
  memory.bilateral = images * View::Bytes(kBilateralDimensions, p.pixels());
  memory.probabilities = images * static_cast<size_t>(p.iterations * p.pixels() * p.classes) * sizeof(float);
  BackwardArrays<OfBoth>(p, &backward);
  memory.backward = backward.used();
  return memory;
}

inline permutohedral::View SpatialLattice(const MeanField& p, const std::byte* memory) {
  return permutohedral::View(kSpatialDimensions, p.pixels(), const_cast<std::byte*>(memory));
}

inline permutohedral::View BilateralLattice(const MeanField& p, int64_t image, std::byte* memory) {
  const size_t bytes = permutohedral::View::Bytes(kBilateralDimensions, p.pixels());
  return permutohedral::View(kBilateralDimensions, p.pixels(), memory + static_cast<size_t>(image) * bytes);
}

inline float* ProbabilitiesOf(const MeanField& p, int64_t image, int32_t step, std::byte* memory) {
  return reinterpret_cast<float*>(memory) + (image * p.iterations + step) * p.pixels() * p.classes;
}

// The classes of each pixel, side by side.
inline ClassAxis ClassesOf(const MeanField& p) {
  ClassAxis axis;
  axis.outer = p.pixels();
  axis.classes = p.classes;
  return axis;
}

}  // namespace crema::mean_field

#endif  // CREMA_OPS_MEAN_FIELD_MEAN_FIELD_MEMORY_H_
