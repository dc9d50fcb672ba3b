#include <algorithm>

#include "cuda/arrays/axis_permutation.h"
#include "cuda/arrays/lanes.h"
#include "cuda/mean_field/permutohedral.h"
#include "cuda/operations.h"
#include "ops/mean_field/mean_field_formulas.h"
#include "ops/mean_field/mean_field_memory.h"

// As ops/mean_field/mean_field.cc: one image at a time, with the classes of a pixel side by side.

namespace crema::cuda {

namespace {

using mean_field::BilateralLattice;
using mean_field::Carver;
using mean_field::ClassesOf;
using mean_field::kBilateralDimensions;
using mean_field::kSpatialDimensions;
using mean_field::ProbabilitiesOf;
using mean_field::SpatialLattice;
using permutohedral::Direction;
using permutohedral::View;

// What both passes need.
struct Arrays {
  std::byte* of_lattices;  // for building one, or filtering
  float *features, *filtered;
  float *spatial, *bilateral;  // minus the compatibility times the filters' weights

  // Of the pixels, whose products are summed apart.
  static int64_t PartsOf(const MeanField& p) {
    constexpr int64_t kMostParts = 256, kMostSums = int64_t{1} << 22;
    return std::clamp<int64_t>(kMostSums / (p.classes * p.classes), 1, kMostParts);
  }

  Arrays(const MeanField& p, Carver* carver) {
    const int64_t pixels = p.pixels();
    of_lattices = carver->Take<std::byte>(static_cast<int64_t>(std::max(
        LatticeWorkspace(kBilateralDimensions, pixels), FilterWorkspace(kBilateralDimensions, pixels, p.classes))));
    features = carver->Take<float>(pixels * kBilateralDimensions);
    filtered = carver->Take<float>(pixels * p.classes);
    spatial = carver->Take<float>(p.classes * p.classes);
    bilateral = carver->Take<float>(p.classes * p.classes);
  }
};

using ForwardArrays = mean_field::ForwardArrays<Arrays>;
using BackwardArrays = mean_field::BackwardArrays<Arrays>;

struct SpatialPlace {
  MeanField p;
  float* features;
  __device__ void operator()(int64_t pixel) const {
    mean_field::SpatialFeatures(p, pixel, features + pixel * kSpatialDimensions);
  }
};

struct BilateralPlace {
  MeanField p;
  const float* image;
  float* features;
  __device__ void operator()(int64_t pixel) const {
    mean_field::BilateralFeatures(p, image, pixel, features + pixel * kBilateralDimensions);
  }
};

// A matrix of rows x columns becomes one of columns x rows.
void Turn(CudaOperations& ops, const Queue& queue, int64_t rows, int64_t columns, const float* from, float* to) {
  const int64_t extents[] = {rows, columns};
  constexpr int kOrder[] = {1, 0};
  const AxisPermutation turn(extents, kOrder);
  if (!turn.transposes()) return ops.Copy(from, to, static_cast<size_t>(rows * columns) * sizeof(float));
  Transpose(queue, turn, from, to);
}

struct NegateProducts {
  MeanField p;
  MeanFieldWeights weights;
  float *spatial, *bilateral;
  __device__ void operator()(int64_t i) const {
    int64_t row = i;
    const int64_t column = SplitOff(&row, p.classes);
    spatial[i] = mean_field::NegatedProduct(p.classes, weights.compatibility, weights.spatial, row, column);
    bilateral[i] = mean_field::NegatedProduct(p.classes, weights.compatibility, weights.bilateral, row, column);
  }
};

// to = from + filtered * the matrix, or its transpose; `from` may be `to` or, for 0, null.
template <bool kTransposed>
struct AddProduct {
  int64_t classes;
  const float *filtered, *matrix, *from;
  float* to;
  __device__ void operator()(int64_t i) const {
    int64_t pixel = i;
    const int64_t column = SplitOff(&pixel, classes);
    const float* const row = filtered + pixel * classes;
    float sum = from != nullptr ? from[i] : 0.0f;
    for (int64_t k = 0; k < classes; ++k) {
      sum += row[k] * (kTransposed ? matrix[column * classes + k] : matrix[k * classes + column]);
    }
    to[i] = sum;
  }
};

// A block sums the products of two classes at some of the pixels.
__global__ void __launch_bounds__(kThreads)
    SumOuterProducts(int64_t pixels, int64_t classes, const float* a, const float* b, float* of_parts) {
  const int64_t begin = pixels * blockIdx.x / gridDim.x, end = pixels * (blockIdx.x + 1) / gridDim.x;
  const int64_t square = classes * classes;
  for (int64_t i = threadIdx.x; i < square; i += kThreads) {
    int64_t row = i;
    const int64_t column = SplitOff(&row, classes);
    float sum = 0;
    for (int64_t pixel = begin; pixel < end; ++pixel) sum += a[pixel * classes + row] * b[pixel * classes + column];
    of_parts[blockIdx.x * square + i] = sum;
  }
}

struct AddParts {
  int64_t parts, square;
  const float* of_parts;
  double* sums;
  __device__ void operator()(int64_t i) const {
    double sum = sums[i];
    for (int64_t part = 0; part < parts; ++part) sum += of_parts[part * square + i];
    sums[i] = sum;
  }
};

template <typename Number>
struct SetZero {
  Number* to;
  __device__ void operator()(int64_t i) const { to[i] = 0; }
};

struct WeightGradients {
  MeanField p;
  MeanFieldWeights weights;
  mean_field::GradientSums sums;
  MeanFieldGradients gradients;
  __device__ void operator()(int64_t i) const {
    int64_t row = i;
    const int64_t column = SplitOff(&row, p.classes);
    if (gradients.spatial != nullptr) {
      gradients.spatial[i] = mean_field::WeightGradient(p.classes, weights.compatibility, sums.spatial, row, column);
    }
    if (gradients.bilateral != nullptr) {
      gradients.bilateral[i] =
          mean_field::WeightGradient(p.classes, weights.compatibility, sums.bilateral, row, column);
    }
    if (gradients.compatibility != nullptr) {
      gradients.compatibility[i] = mean_field::CompatibilityGradient(p.classes, weights, sums, row, column);
    }
  }
};

void AddOuterProducts(const Queue& queue, const MeanField& p, const BackwardArrays& scratch, const float* probabilities,
                      double* sums) {
  const int64_t parts = Arrays::PartsOf(p), square = p.classes * p.classes;
  Launch(queue, static_cast<unsigned>(parts), kThreads, SumOuterProducts, p.pixels(), p.classes, scratch.filtered,
         probabilities, scratch.of_parts);
  ForEach(queue, square, AddParts{parts, square, scratch.of_parts, sums});
}

}  // namespace

MeanFieldMemory CudaOperations::MeanFieldMemoryOf(const MeanField& problem, bool keeps) {
  return mean_field::MemoryOf<Arrays>(problem, keeps);
}

void CudaOperations::MakeSpatialLattice(const MeanField& problem, std::byte* lattice, std::byte* workspace) {
  Carver carver(workspace);
  const Arrays scratch(problem, &carver);
  ForEach(queue(), problem.pixels(), SpatialPlace{problem, scratch.features});
  BuildLattice(queue(), SpatialLattice(problem, lattice), scratch.features, scratch.of_lattices);
}

void CudaOperations::MeanFieldForward(const MeanField& problem, const MeanFieldInputs& inputs,
                                      const MeanFieldWeights& weights, const MeanFieldTape& tape, float* y,
                                      std::byte* workspace) {
  Carver carver(workspace);
  const bool keeps = tape.bilateral != nullptr;
  const ForwardArrays scratch(problem, keeps, &carver);
  const View spatial = SpatialLattice(problem, tape.spatial);
  const int64_t pixels = problem.pixels(), classes = problem.classes, numbers = pixels * classes;
  ForEach(queue(), classes * classes, NegateProducts{problem, weights, scratch.spatial, scratch.bilateral});
  const auto filter = [&](const View& lattice, const float* x) {
    Filter(queue(), lattice, Direction::kForward, true, classes, x, scratch.filtered, scratch.of_lattices);
  };
  for (int64_t image = 0; image < problem.images; ++image) {
    const View bilateral =
        keeps ? BilateralLattice(problem, image, tape.bilateral) : BilateralLattice(problem, 0, scratch.lattice);
    ForEach(queue(), pixels, BilateralPlace{problem, inputs.image + image * kColors * pixels, scratch.features});
    BuildLattice(queue(), bilateral, scratch.features, scratch.of_lattices);
    Turn(*this, queue(), classes, pixels, inputs.scores + image * numbers, scratch.scores);
    Turn(*this, queue(), classes, pixels, inputs.first + image * numbers, scratch.state);
    for (int32_t step = 0; step < problem.iterations; ++step) {
      float* const probabilities =
          keeps ? ProbabilitiesOf(problem, image, step, tape.probabilities) : scratch.probabilities;
      SoftmaxForward(ClassesOf(problem), scratch.state, probabilities);
      filter(spatial, probabilities);
      ForEach(queue(), numbers,
              AddProduct<true>{classes, scratch.filtered, scratch.spatial, scratch.scores, scratch.state});
      filter(bilateral, probabilities);
      ForEach(queue(), numbers,
              AddProduct<true>{classes, scratch.filtered, scratch.bilateral, scratch.state, scratch.state});
    }
    Turn(*this, queue(), pixels, classes, scratch.state, y + image * numbers);
  }
}

void CudaOperations::MeanFieldBackward(const MeanField& problem, const MeanFieldWeights& weights,
                                       const MeanFieldTape& tape, const float* dy, const MeanFieldGradients& gradients,
                                       std::byte* workspace) {
  Carver carver(workspace);
  const BackwardArrays scratch(problem, &carver);
  const View spatial = SpatialLattice(problem, tape.spatial);
  const int64_t pixels = problem.pixels(), classes = problem.classes, numbers = pixels * classes;
  const int64_t square = classes * classes;
  ForEach(queue(), square, NegateProducts{problem, weights, scratch.spatial, scratch.bilateral});
  ForEach(queue(), square, SetZero<double>{scratch.spatial_sums});
  ForEach(queue(), square, SetZero<double>{scratch.bilateral_sums});
  const auto filter = [&](const View& lattice) {
    Filter(queue(), lattice, Direction::kAdjoint, true, classes, scratch.gradient, scratch.filtered,
           scratch.of_lattices);
  };
  for (int64_t image = 0; image < problem.images; ++image) {
    const View bilateral = BilateralLattice(problem, image, tape.bilateral);
    Turn(*this, queue(), classes, pixels, dy + image * numbers, scratch.gradient);
    ForEach(queue(), numbers, SetZero<float>{scratch.total});
    for (int32_t step = problem.iterations - 1; step >= 0; --step) {
      const float* const probabilities = ProbabilitiesOf(problem, image, step, tape.probabilities);
      Axpy(numbers, 1, scratch.gradient, scratch.total);
      filter(spatial);
      AddOuterProducts(queue(), problem, scratch, probabilities, scratch.spatial_sums);
      ForEach(queue(), numbers,
              AddProduct<false>{classes, scratch.filtered, scratch.spatial, nullptr, scratch.of_probabilities});
      filter(bilateral);
      AddOuterProducts(queue(), problem, scratch, probabilities, scratch.bilateral_sums);
      ForEach(queue(), numbers,
              AddProduct<false>{classes, scratch.filtered, scratch.bilateral, scratch.of_probabilities,
                                scratch.of_probabilities});
      SoftmaxBackward(ClassesOf(problem), probabilities, scratch.of_probabilities, scratch.gradient);
    }
    if (gradients.scores != nullptr) {
      Turn(*this, queue(), pixels, classes, scratch.total, gradients.scores + image * numbers);
    }
    if (gradients.first != nullptr) {
      Turn(*this, queue(), pixels, classes, scratch.gradient, gradients.first + image * numbers);
    }
  }
  ForEach(queue(), square,
          WeightGradients{problem, weights, {scratch.spatial_sums, scratch.bilateral_sums}, gradients});
}

}  // namespace crema::cuda
