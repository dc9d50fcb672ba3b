#include "cuda/arrays/lanes.h"
#include "cuda/losses/losses.h"
#include "cuda/operations.h"
#include "ops/losses/length_loss_formulas.h"

namespace crema::cuda {

namespace {

using length_loss::IsKnown;
using length_loss::Known;
using length_loss::Place;
using length_loss::Size;

constexpr size_t kPartBytes = kSumBlocks * sizeof(double);

__device__ float DifferenceAt(const LengthInputs& inputs, int64_t i) {
  return inputs.b ? inputs.a[i] - inputs.b[i] : inputs.a[i];
}

template <typename Formula>
struct OfDifferences {
  Formula formula;
  LengthInputs inputs;
  __device__ double operator()(int64_t i) const { return formula(DifferenceAt(inputs, i)); }
};

struct OfPlaces {
  LengthLoss loss;
  LengthInputs inputs;

  __device__ Place At(int64_t i) const {
    int64_t outer = i;
    const int64_t inner = SplitOff(&outer, loss.axis.inner);
    return {loss, inputs, outer * loss.axis.classes * loss.axis.inner + inner};
  }
  __device__ double operator()(int64_t i) const { return At(i).Length(); }
};

struct KeepKnown {
  int64_t classes;
  float* normalizer;
  __device__ void operator()(double total) const { *normalizer = length_loss::NormalizerOf(total, classes); }
};
struct Keep {
  float value;
  float* normalizer;
  __device__ void operator()(int64_t) const { *normalizer = value; }
};
struct Divide {
  const float* normalizer;
  float* value;
  __device__ void operator()(double total) const { *value = static_cast<float>(total / *normalizer); }
};

struct SizeGradients {
  Size size;
  LengthInputs inputs;
  LossGradientScale scale;
  float *da, *db;  // either may be null

  __device__ void operator()(int64_t i) const {
    const float gradient = scale() * size.Gradient(DifferenceAt(inputs, i));
    if (da) da[i] = gradient;
    if (db) db[i] = -gradient;
  }
};

// Of one place.
struct VectorGradients {
  OfPlaces places;
  LossGradientScale scale;
  float *da, *db;  // either may be null

  __device__ void operator()(int64_t i) const {
    const Place place = places.At(i);
    const float slope = scale() * place.Slope();
    for (int64_t c = 0; c < place.loss.axis.classes; ++c) {
      const int64_t at = place.first + c * place.loss.axis.inner;
      const float d = place.Difference(c), gradient = IsKnown(d) ? slope * d : 0.0f;
      if (da) da[at] = gradient;
      if (db) db[at] = -gradient;
    }
  }
};

}  // namespace

void CudaOperations::LengthLossForward(const LengthLoss& loss, const LengthInputs& inputs, float* normalizer,
                                       float* value) {
  auto* const parts = Scratch<double>(kPartBytes);
  if (loss.divisor == 0) {
    SumTerms(queue(), loss.count(), OfDifferences<Known>{{}, inputs}, KeepKnown{loss.axis.classes, normalizer}, parts);
  } else {
    ForEach(queue(), 1, Keep{static_cast<float>(loss.divisor), normalizer});
  }
  const Divide divide = {normalizer, value};
  if (loss.of_vectors) {
    SumTerms(queue(), loss.axis.positions(), OfPlaces{loss, inputs}, divide, parts);
  } else {
    SumTerms(queue(), loss.count(), OfDifferences<Size>{{loss.plateau}, inputs}, divide, parts);
  }
}

void CudaOperations::LengthLossBackward(const LengthLoss& loss, const float* value_gradient, const LengthInputs& inputs,
                                        const float* normalizer, float* da, float* db) {
  const LossGradientScale scale = {value_gradient, normalizer};
  if (loss.of_vectors) {
    ForEach(queue(), loss.axis.positions(), VectorGradients{{loss, inputs}, scale, da, db});
  } else {
    ForEach(queue(), loss.count(), SizeGradients{{loss.plateau}, inputs, scale, da, db});
  }
}

}  // namespace crema::cuda
