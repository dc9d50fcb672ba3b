#include "ops/mean_field/mean_field.h"

#include <algorithm>

#include "base/multiversion.h"
#include "base/parallel.h"
#include "ops/arrays/axis_permutation.h"
#include "ops/arrays/vector_math.h"
#include "ops/losses/softmax.h"
#include "ops/matrices/packed_product.h"
#include "ops/mean_field/mean_field_formulas.h"
#include "ops/mean_field/mean_field_memory.h"
#include "ops/mean_field/permutohedral.h"

// Probabilities and scores are worked on with the classes of a pixel side by side, one image at a time.
//
// Both products with classes x classes matrices are one: scores - (compatibility * spatial) * S(q) - (compatibility *
// bilateral) * B(q). The adjoints of the filters work on pixels and the matrices on classes, so that a step of the
// backward pass filters the gradient once for each filter; that is what all other gradients are products of.

namespace crema {

namespace {

using mean_field::BilateralLattice;
using mean_field::Carver;
using mean_field::ClassesOf;
using mean_field::kBilateralDimensions;
using mean_field::ProbabilitiesOf;
using mean_field::SpatialLattice;
using permutohedral::Direction;
using permutohedral::View;

constexpr int64_t kPixelGrain = 1024;  // pixels worth waking a thread for

// What both passes need beside the lattices.
struct Scratch {
  std::byte* of_lattices;  // for building one, or filtering
  float* filtered;         // pixels x classes, as the others
  float *product, *packed_spatial, *packed_bilateral;

  static constexpr int64_t kSumBlocks = 32;  // of pixels, whose products are summed apart
  static int64_t PartsOf(const MeanField&) { return kSumBlocks; }

  Scratch(const MeanField& p, Carver* carver) {
    const int64_t pixels = p.pixels(), numbers = pixels * p.classes;
    const auto filtering =
        static_cast<size_t>(permutohedral::FilterWorkspace(kBilateralDimensions, pixels, p.classes)) * sizeof(float);
    const size_t building = permutohedral::BuildWorkspace(kBilateralDimensions, pixels) + FeatureBytes(p);
    of_lattices = carver->Take<std::byte>(static_cast<int64_t>(std::max(filtering, building)));
    filtered = carver->Take<float>(numbers);
    product = carver->Take<float>(p.classes * p.classes);
    packed_spatial = carver->Take<float>(PackedFloats(p.classes, p.classes));
    packed_bilateral = carver->Take<float>(PackedFloats(p.classes, p.classes));
  }

  static size_t FeatureBytes(const MeanField& p) {
    return static_cast<size_t>(p.pixels() * kBilateralDimensions) * sizeof(float);
  }

  // Brings -compatibility * weights, or its transpose, into the order of PackedProduct.
  void Pack(const MeanField& p, const MeanFieldWeights& weights, bool transpose) const {
    for (const bool spatial : {true, false}) {
      const float* const of_filter = spatial ? weights.spatial : weights.bilateral;
      for (int64_t i = 0; i < p.classes * p.classes; ++i) {
        product[i] =
            mean_field::NegatedProduct(p.classes, weights.compatibility, of_filter, i / p.classes, i % p.classes);
      }
      PackMatrix(transpose, p.classes, p.classes, product, spatial ? packed_spatial : packed_bilateral);
    }
  }
};

using ForwardScratch = mean_field::ForwardArrays<Scratch>;
using BackwardScratch = mean_field::BackwardArrays<Scratch>;

// Between planes of the classes and the classes of each pixel side by side.
void ClassesLast(const MeanField& p, const float* from, float* to) { TransposeMatrix(p.classes, p.pixels(), from, to); }
void ClassesFirst(const MeanField& p, const float* from, float* to) {
  TransposeMatrix(p.pixels(), p.classes, from, to);
}

// features_of(pixel, its features)
template <typename FeaturesOf>
void BuildLattice(const View& lattice, const FeaturesOf& features_of, std::byte* workspace) {
  auto* const features =
      reinterpret_cast<float*>(workspace + permutohedral::BuildWorkspace(lattice.dimensions, lattice.points));
  ParallelFor(lattice.points, kPixelGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) features_of(i, features + i * lattice.dimensions);
  });
  permutohedral::Build(lattice, features, workspace);
}

// to = from + filtered * spatial's or bilateral's matrix. `from` may be `to` or, for 0, null.
void AddProduct(const MeanField& p, const float* filtered, const float* packed, const float* from, float* to) {
  ParallelFor(p.pixels(), kPixelGrain, [&](int64_t begin, int64_t end) {
    float* const rows = to + begin * p.classes;
    if (from != nullptr && from != to) std::copy(from + begin * p.classes, from + end * p.classes, rows);
    PackedProduct(end - begin, p.classes, p.classes, filtered + begin * p.classes, packed, from != nullptr, rows);
  });
}

// sums[i][k] = the sum over rows [begin, end) of a[row][i] * b[row][k]
CREMA_MULTIVERSION void SumOuterProducts(int64_t begin, int64_t end, int64_t classes, const float* a, const float* b,
                                         float* sums) {
  std::fill_n(sums, classes * classes, 0.0f);
  for (int64_t row = begin; row < end; ++row) {
    const float* const of_b = b + row * classes;
    for (int64_t i = 0; i < classes; ++i) {
      const float factor = a[row * classes + i];
      float* const to = sums + i * classes;
#pragma omp simd
      for (int64_t k = 0; k < classes; ++k) to[k] += factor * of_b[k];
    }
  }
}

void AddOuterProducts(const MeanField& p, const float* a, const float* b, float* of_parts, double* sums) {
  const int64_t pixels = p.pixels(), square = p.classes * p.classes;
  ParallelFor(Scratch::kSumBlocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      SumOuterProducts(pixels * block / Scratch::kSumBlocks, pixels * (block + 1) / Scratch::kSumBlocks, p.classes, a,
                       b, of_parts + block * square);
    }
  });
  for (int64_t block = 0; block < Scratch::kSumBlocks; ++block) {
    for (int64_t i = 0; i < square; ++i) sums[i] += of_parts[block * square + i];
  }
}

void WriteWeightGradients(const MeanField& p, const MeanFieldWeights& weights, const mean_field::GradientSums& sums,
                          const MeanFieldGradients& gradients) {
  for (int64_t i = 0; i < p.classes * p.classes; ++i) {
    const int64_t row = i / p.classes, column = i % p.classes;
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
}

}  // namespace

MeanFieldMemory MeanFieldMemoryOf(const MeanField& problem, bool keeps) {
  return mean_field::MemoryOf<Scratch>(problem, keeps);
}

void MakeSpatialLattice(const MeanField& problem, std::byte* lattice, std::byte* workspace) {
  BuildLattice(
      SpatialLattice(problem, lattice),
      [&](int64_t pixel, float* features) { mean_field::SpatialFeatures(problem, pixel, features); }, workspace);
}

void MeanFieldForward(const MeanField& problem, const MeanFieldInputs& inputs, const MeanFieldWeights& weights,
                      const MeanFieldTape& tape, float* y, std::byte* workspace) {
  Carver carver(workspace);
  const bool keeps = tape.bilateral != nullptr;
  const ForwardScratch scratch(problem, keeps, &carver);
  const View spatial = SpatialLattice(problem, tape.spatial);
  auto* const values = reinterpret_cast<float*>(scratch.of_lattices);
  const int64_t pixels = problem.pixels(), classes = problem.classes;
  scratch.Pack(problem, weights, true);
  for (int64_t image = 0; image < problem.images; ++image) {
    const View bilateral =
        keeps ? BilateralLattice(problem, image, tape.bilateral) : BilateralLattice(problem, 0, scratch.lattice);
    const float* const colors = inputs.image + image * kColors * pixels;
    BuildLattice(
        bilateral,
        [&](int64_t pixel, float* features) { mean_field::BilateralFeatures(problem, colors, pixel, features); },
        scratch.of_lattices);
    ClassesLast(problem, inputs.scores + image * pixels * classes, scratch.scores);
    ClassesLast(problem, inputs.first + image * pixels * classes, scratch.state);
    for (int32_t step = 0; step < problem.iterations; ++step) {
      float* const probabilities =
          keeps ? ProbabilitiesOf(problem, image, step, tape.probabilities) : scratch.probabilities;
      SoftmaxForward(ClassesOf(problem), scratch.state, probabilities);
      permutohedral::Filter(spatial, Direction::kForward, true, classes, probabilities, scratch.filtered, values);
      AddProduct(problem, scratch.filtered, scratch.packed_spatial, scratch.scores, scratch.state);
      permutohedral::Filter(bilateral, Direction::kForward, true, classes, probabilities, scratch.filtered, values);
      AddProduct(problem, scratch.filtered, scratch.packed_bilateral, scratch.state, scratch.state);
    }
    ClassesFirst(problem, scratch.state, y + image * pixels * classes);
  }
}

void MeanFieldBackward(const MeanField& problem, const MeanFieldWeights& weights, const MeanFieldTape& tape,
                       const float* dy, const MeanFieldGradients& gradients, std::byte* workspace) {
  Carver carver(workspace);
  const BackwardScratch scratch(problem, &carver);
  const View spatial = SpatialLattice(problem, tape.spatial);
  auto* const values = reinterpret_cast<float*>(scratch.of_lattices);
  const int64_t pixels = problem.pixels(), classes = problem.classes;
  scratch.Pack(problem, weights, false);
  std::fill_n(scratch.spatial_sums, classes * classes, 0.0);
  std::fill_n(scratch.bilateral_sums, classes * classes, 0.0);
  for (int64_t image = 0; image < problem.images; ++image) {
    const View bilateral = BilateralLattice(problem, image, tape.bilateral);
    ClassesLast(problem, dy + image * pixels * classes, scratch.gradient);
    Fill(pixels * classes, 0, scratch.total);
    for (int32_t step = problem.iterations - 1; step >= 0; --step) {
      const float* const probabilities = ProbabilitiesOf(problem, image, step, tape.probabilities);
      Axpy(pixels * classes, 1, scratch.gradient, scratch.total);
      permutohedral::Filter(spatial, Direction::kAdjoint, true, classes, scratch.gradient, scratch.filtered, values);
      AddOuterProducts(problem, scratch.filtered, probabilities, scratch.of_parts, scratch.spatial_sums);
      AddProduct(problem, scratch.filtered, scratch.packed_spatial, nullptr, scratch.of_probabilities);
      permutohedral::Filter(bilateral, Direction::kAdjoint, true, classes, scratch.gradient, scratch.filtered, values);
      AddOuterProducts(problem, scratch.filtered, probabilities, scratch.of_parts, scratch.bilateral_sums);
      AddProduct(problem, scratch.filtered, scratch.packed_bilateral, scratch.of_probabilities,
                 scratch.of_probabilities);
      SoftmaxBackward(ClassesOf(problem), probabilities, scratch.of_probabilities, scratch.gradient);
    }
    if (gradients.scores != nullptr) {
      ClassesFirst(problem, scratch.total, gradients.scores + image * pixels * classes);
    }
    if (gradients.first != nullptr) {
      ClassesFirst(problem, scratch.gradient, gradients.first + image * pixels * classes);
    }
  }
  WriteWeightGradients(problem, weights, {scratch.spatial_sums, scratch.bilateral_sums}, gradients);
}

}  // namespace crema
