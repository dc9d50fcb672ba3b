#include "cuda/arrays/lanes.h"
#include "cuda/losses/labels.h"
#include "cuda/losses/losses.h"
#include "cuda/operations.h"
#include "ops/losses/loss_formulas.h"

namespace crema::cuda {

namespace {

constexpr size_t kPartBytes = kSumBlocks * sizeof(double);
constexpr int64_t kNoClass = -1;

// Which class of which item an element is, and the class of the item's label.
struct ClassOfItem {
  int64_t item, index, own;

  __device__ ClassOfItem(int64_t classes, int64_t element, const float* label) : item(element) {
    index = SplitOff(&item, classes);
    own = Counts({}, classes, label[item]) ? static_cast<int64_t>(label[item]) : kNoClass;
  }
};

struct HingeTerms {
  formula::HingeTerm term;
  int64_t classes;
  const float *scores, *label;
  __device__ double operator()(int64_t i) const {
    const ClassOfItem place(classes, i, label);
    return term(scores[i], place.index == place.own);
  }
};

struct HingeGradients {
  formula::HingeTerm term;
  int64_t classes;
  const float *scores, *label;
  LossGradientScale scale;
  float* dx;
  __device__ void operator()(int64_t i) const {
    const ClassOfItem place(classes, i, label);
    dx[i] = scale() * term.Gradient(scores[i], place.index == place.own);
  }
};

// Of items.
struct LogTerms {
  int64_t classes;
  const float *probability, *label;
  __device__ double operator()(int64_t i) const {
    if (!Counts({}, classes, label[i])) return 0;
    return formula::ProbabilityLoss(probability[i * classes + static_cast<int64_t>(label[i])]);
  }
};

struct LogGradients {
  int64_t classes;
  const float *probability, *label;
  LossGradientScale scale;
  float* dx;
  __device__ void operator()(int64_t i) const {
    const ClassOfItem place(classes, i, label);
    dx[i] = place.index == place.own ? scale() * formula::ProbabilityLossGradient(probability[i]) : 0.0f;
  }
};

struct CountedLabels {
  InfogainLoss loss;
  const float* label;
  __device__ double operator()(int64_t i) const { return Counts(loss.rule, loss.axis.classes, label[i]) ? 1 : 0; }
};

// Where an element of the probabilities is, and the row of H that its label chooses.
struct InfogainPlace {
  int64_t index, own;

  __device__ InfogainPlace(const InfogainLoss& loss, int64_t element, const float* label) {
    const ClassAxis& axis = loss.axis;
    int64_t outer = element;
    const int64_t inner = SplitOff(&outer, axis.inner);
    index = SplitOff(&outer, axis.classes);
    const float of_place = label[outer * axis.inner + inner];
    own = Counts(loss.rule, axis.classes, of_place) ? static_cast<int64_t>(of_place) : kNoClass;
  }
};

struct InfogainTerms {
  InfogainLoss loss;
  const float *infogain, *probability, *label;
  __device__ double operator()(int64_t i) const {
    const InfogainPlace place(loss, i, label);
    if (place.own == kNoClass) return 0;
    return infogain[place.own * loss.axis.classes + place.index] * formula::ProbabilityLoss(probability[i]);
  }
};

struct InfogainGradients {
  InfogainLoss loss;
  const float *infogain, *row_sums, *probability, *label;
  LossGradientScale scale;
  float* dx;
  __device__ void operator()(int64_t i) const {
    const InfogainPlace place(loss, i, label);
    float value = 0;
    if (place.own != kNoClass) {
      const float gain = infogain[place.own * loss.axis.classes + place.index];
      value = scale() * (probability[i] * row_sums[place.own] - gain);
    }
    dx[i] = value;
  }
};

// A warp for each row.
__global__ void __launch_bounds__(kThreads) SumRows(int64_t size, const float* matrix, float* sums) {
  const unsigned lane = threadIdx.x % 32;
  const int64_t step = int64_t{gridDim.x} * (kThreads / 32);
  for (int64_t row = int64_t{blockIdx.x} * (kThreads / 32) + threadIdx.x / 32; row < size; row += step) {
    double sum = 0;
    for (int64_t c = lane; c < size; c += 32) sum += matrix[row * size + c];
    sum = SumWarp(sum);
    if (lane == 0) sums[row] = static_cast<float>(sum);
  }
}

}  // namespace

void CudaOperations::HingeLossForward(const HingeLoss& loss, const float* scores, const float* label, float* value) {
  SumTerms(queue(), loss.items * loss.classes, HingeTerms{{loss.squares}, loss.classes, scores, label},
           DivideBy{static_cast<double>(loss.items), value}, Scratch<double>(kPartBytes));
}

void CudaOperations::HingeLossBackward(const HingeLoss& loss, const float* value_gradient, const float* scores,
                                       const float* label, float* dx) {
  const LossGradientScale scale = {value_gradient, nullptr, static_cast<float>(loss.items)};
  ForEach(queue(), loss.items * loss.classes, HingeGradients{{loss.squares}, loss.classes, scores, label, scale, dx});
}

void CudaOperations::LogLossForward(const LogLoss& loss, const float* probability, const float* label, float* value) {
  SumTerms(queue(), loss.items, LogTerms{loss.classes, probability, label},
           DivideBy{static_cast<double>(loss.items), value}, Scratch<double>(kPartBytes));
}

void CudaOperations::LogLossBackward(const LogLoss& loss, const float* value_gradient, const float* probability,
                                     const float* label, float* dx) {
  const LossGradientScale scale = {value_gradient, nullptr, static_cast<float>(loss.items)};
  ForEach(queue(), loss.items * loss.classes, LogGradients{loss.classes, probability, label, scale, dx});
}

void CudaOperations::InfogainLossForward(const InfogainLoss& loss, const float* infogain, const float* probability,
                                         const float* label, float* normalizer, float* value) {
  auto* parts = Scratch<double>(kPartBytes);
  const int64_t positions = loss.axis.positions();
  if (loss.normalizer <= 0) {
    SumTerms(queue(), positions, CountedLabels{loss, label}, KeepCount{normalizer}, parts);
  }
  SumTerms(queue(), positions * loss.axis.classes, InfogainTerms{loss, infogain, probability, label},
           DivideByKept{loss.normalizer, normalizer, value}, parts);
}

void CudaOperations::InfogainLossBackward(const InfogainLoss& loss, const float* value_gradient,
                                          const float* normalizer, const float* infogain, const float* probability,
                                          const float* label, float* row_sums, float* dx) {
  const int64_t classes = loss.axis.classes;
  Launch(queue(), BlocksFor(queue(), classes, kThreads / 32), kThreads, SumRows, classes, infogain, row_sums);
  ForEach(queue(), loss.axis.positions() * classes,
          InfogainGradients{loss, infogain, row_sums, probability, label, {value_gradient, normalizer}, dx});
}

}  // namespace crema::cuda
