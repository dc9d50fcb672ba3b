#include "ops/losses/length_loss.h"

#include <algorithm>

#include "base/parallel.h"
#include "ops/arrays/sums.h"
#include "ops/losses/length_loss_formulas.h"

namespace crema {

namespace {

using length_loss::IsKnown;
using length_loss::Known;
using length_loss::Place;
using length_loss::Size;

constexpr int64_t kGrain = 16384;  // elements worth waking a thread for

template <typename Formula>
double SumOfDifferences(const Formula& formula, const LengthLoss& loss, const LengthInputs& inputs) {
  if (!inputs.b) return SumOf(formula, loss.count(), inputs.a);
  return SumOf(formula, loss.count(), inputs.a, inputs.b);
}

Place PlaceAt(const LengthLoss& loss, const LengthInputs& inputs, int64_t i) {
  const ClassAxis& axis = loss.axis;
  return {loss, inputs, i / axis.inner * axis.classes * axis.inner + i % axis.inner};
}

double SumOfLengths(const LengthLoss& loss, const LengthInputs& inputs) {
  return SumBlocks(loss.axis.positions(), loss.axis.classes, [&](int64_t begin, int64_t end) {
    double sum = 0;
    for (int64_t i = begin; i < end; ++i) sum += PlaceAt(loss, inputs, i).Length();
    return sum;
  });
}

void Write(int64_t at, float gradient, float* da, float* db) {
  if (da) da[at] = gradient;
  if (db) db[at] = -gradient;
}

void VectorGradients(const LengthLoss& loss, float factor, const LengthInputs& inputs, float* da, float* db) {
  const int64_t classes = loss.axis.classes;
  ParallelFor(loss.axis.positions(), std::max<int64_t>(1, kGrain / (classes + 1)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Place place = PlaceAt(loss, inputs, i);
      const float slope = factor * place.Slope();
      for (int64_t c = 0; c < classes; ++c) {
        const float d = place.Difference(c);
        Write(place.first + c * loss.axis.inner, IsKnown(d) ? slope * d : 0.0f, da, db);
      }
    }
  });
}

void SizeGradients(const LengthLoss& loss, float factor, const LengthInputs& inputs, float* da, float* db) {
  const Size size = {loss.plateau};
  ParallelFor(loss.count(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Write(i, factor * size.Gradient(inputs.b ? inputs.a[i] - inputs.b[i] : inputs.a[i]), da, db);
    }
  });
}

}  // namespace

void LengthLossForward(const LengthLoss& loss, const LengthInputs& inputs, float* normalizer, float* value) {
  *normalizer = static_cast<float>(loss.divisor);
  if (loss.divisor == 0) {
    *normalizer = length_loss::NormalizerOf(SumOfDifferences(Known(), loss, inputs), loss.axis.classes);
  }
  const double sum = loss.of_vectors ? SumOfLengths(loss, inputs) : SumOfDifferences(Size{loss.plateau}, loss, inputs);
  *value = static_cast<float>(sum / static_cast<double>(*normalizer));
}

void LengthLossBackward(const LengthLoss& loss, const float* value_gradient, const LengthInputs& inputs,
                        const float* normalizer, float* da, float* db) {
  const float factor = *value_gradient / *normalizer;
  loss.of_vectors ? VectorGradients(loss, factor, inputs, da, db) : SizeGradients(loss, factor, inputs, da, db);
}

}  // namespace crema
