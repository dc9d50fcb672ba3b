#include <cmath>

#include "base/check.h"
#include "cuda/arrays/lanes.h"
#include "cuda/arrays/numbers.h"
#include "cuda/operations.h"
#include "ops/normalization/lrn.h"
#include "ops/normalization/lrn_formulas.h"

namespace crema::cuda {

namespace {

// An axis that windows reach along, counted in lanes.
struct Axis {
  int64_t extent, stride;
};

struct Lrn {
  Axis rows, columns;
  int64_t half;  // of a window, without its centre
  float k, weight, beta;

  // body(i) for the elements of the window around element `at`; those whose windows hold `at` are the same.
  template <typename Body>
  __device__ void Visit(int64_t at, const Body& body) const {
    const int64_t row = Along(rows, at), column = Along(columns, at);
    const int64_t first_row = row < half ? -row : -half, last_row = Last(rows, row);
    const int64_t first_column = column < half ? -column : -half, last_column = Last(columns, column);
    for (int64_t i = first_row; i <= last_row; ++i) {
      for (int64_t j = first_column; j <= last_column; ++j) body(at + i * rows.stride + j * columns.stride);
    }
  }

  template <typename Unit>
  __device__ void Scale(const Unit* x, int64_t at, float* scale) const {
    float sum[Unit::kWidth] = {};
    Visit(at, [&](int64_t i) {
      const Unit lanes = x[i];
      for (int n = 0; n < Unit::kWidth; ++n) {
        const float value = lanes.values[n];
        sum[n] += value * value;
      }
    });
    for (int n = 0; n < Unit::kWidth; ++n) scale[n] = k + weight * sum[n];
  }

  __device__ float Power(float scale) const {
    if (beta == 0.75f) return formula::MinusThreeQuarters()(scale);
    if (beta == 0.5f) return formula::MinusHalf()(scale);
    return beta == 1.0f ? 1.0f / scale : powf(scale, -beta);
  }

 private:
  __device__ static int64_t Along(const Axis& axis, int64_t at) {
    if (axis.extent == 1) return 0;
    SplitOff(&at, axis.stride);
    return SplitOff(&at, axis.extent);
  }
  __device__ int64_t Last(const Axis& axis, int64_t position) const {
    return axis.extent - 1 - position < half ? axis.extent - 1 - position : half;
  }
};

template <typename Unit>
struct Normalize {
  Lrn lrn;
  const Unit* x;
  Unit* y;

  __device__ void operator()(int64_t at) const {
    float scale[Unit::kWidth];
    lrn.Scale(x, at, scale);
    Unit lanes = x[at];
    for (int n = 0; n < Unit::kWidth; ++n) {
      lanes.values[n] = typename Unit::Value(static_cast<float>(lanes.values[n]) * lrn.Power(scale[n]));
    }
    y[at] = lanes;
  }
};

template <typename Unit>
using Floats = Lanes<Unit::kWidth, float>;

// The ratios of all results, which the gradient of every element sums over a window.
template <typename Unit>
struct FindRatios {
  Lrn lrn;
  const Unit *x, *dy;
  Floats<Unit>* ratios;

  __device__ void operator()(int64_t at) const {
    float scale[Unit::kWidth];
    lrn.Scale(x, at, scale);
    const Unit value = x[at], gradient = dy[at];
    Floats<Unit> made;
    for (int n = 0; n < Unit::kWidth; ++n) {
      made.values[n] = formula::LrnTerms(gradient.values[n], lrn.Power(scale[n]), scale[n], value.values[n]).ratio;
    }
    ratios[at] = made;
  }
};

template <typename Unit>
struct FindGradient {
  Lrn lrn;
  const Unit *x, *dy;
  const Floats<Unit>* ratios;
  Unit* dx;

  __device__ void operator()(int64_t at) const {
    float scale[Unit::kWidth], sum[Unit::kWidth] = {};
    lrn.Scale(x, at, scale);
    lrn.Visit(at, [&](int64_t i) {
      const Floats<Unit> of = ratios[i];
      for (int n = 0; n < Unit::kWidth; ++n) sum[n] += of.values[n];
    });
    const formula::LrnGradient formula{2 * lrn.beta * lrn.weight};
    const Unit value = x[at];
    Unit gradient = dy[at];
    for (int n = 0; n < Unit::kWidth; ++n) {
      const formula::LrnTerms terms(gradient.values[n], lrn.Power(scale[n]), scale[n], value.values[n]);
      gradient.values[n] = typename Unit::Value(formula(terms.direct, value.values[n], sum[n]));
    }
    dx[at] = gradient;
  }
};

class CudaLrn final : public LrnKernel {
 public:
  CudaLrn(const CudaGpu& gpu, const LrnProblem& problem) : gpu_(gpu), p_(problem) {}

  size_t backward_workspace() const override { return p_.backward ? static_cast<size_t>(count()) * sizeof(float) : 0; }

  void Forward(const void* source, void* destination, std::byte*) override {
    WithUnit(IsPackAligned(source) && IsPackAligned(destination), [&]<typename Unit>(Unit*) {
      ForEach(
          gpu_.queue(), count() / Unit::kWidth,
          Normalize<Unit>{Windows(Unit::kWidth), static_cast<const Unit*>(source), static_cast<Unit*>(destination)});
    });
  }

  void Backward(const void* source, const void* destination_gradient, void* source_gradient,
                std::byte* workspace) override {
    const bool aligned = IsPackAligned(source) && IsPackAligned(destination_gradient) &&
                         IsPackAligned(source_gradient) && IsPackAligned(workspace);
    WithUnit(aligned, [&]<typename Unit>(Unit*) {
      const Lrn lrn = Windows(Unit::kWidth);
      const auto *x = static_cast<const Unit*>(source), *dy = static_cast<const Unit*>(destination_gradient);
      auto* ratios = reinterpret_cast<Floats<Unit>*>(workspace);
      const int64_t n = count() / Unit::kWidth;
      ForEach(gpu_.queue(), n, FindRatios<Unit>{lrn, x, dy, ratios});
      ForEach(gpu_.queue(), n, FindGradient<Unit>{lrn, x, dy, ratios, static_cast<Unit*>(source_gradient)});
    });
  }

 private:
  bool across() const { return p_.region == LrnProblem::Region::kAcrossChannels; }
  int64_t count() const { return p_.batch * p_.channels * p_.height * p_.width; }

  // Numbers are taken in packs where the densest axes are none that windows reach along.
  template <typename Body>
  void WithUnit(bool aligned, const Body& body) const {
    const int64_t side_by_side = across() && p_.layout == Layout::kPlain           ? p_.height * p_.width
                                 : !across() && p_.layout == Layout::kChannelsLast ? p_.channels
                                                                                   : 1;
    WithNumber(p_.dtype, [&]<typename Number>(Number*) {
      constexpr int kWidth = Pack<Number>::kWidth;
      if (aligned && side_by_side % kWidth == 0) return body(static_cast<Lanes<kWidth, Number>*>(nullptr));
      body(static_cast<Lanes<1, Number>*>(nullptr));
    });
  }

  Lrn Windows(int64_t width) const {
    const bool plain = p_.layout == Layout::kPlain;
    const float window = static_cast<float>(across() ? p_.size : p_.size * p_.size);
    const Axis single = {1, 1};
    // Lanes hold neighbouring pixels or channels, whichever the strides leave room for.
    const Axis channels = {p_.channels, plain ? p_.height * p_.width / width : 1};
    const int64_t step = plain ? 1 : p_.channels / width;
    return {across() ? single : Axis{p_.height, p_.width * step},
            across() ? channels : Axis{p_.width, step},
            p_.size / 2,
            across() ? p_.k : 1.0f,
            p_.alpha / window,
            p_.beta};
  }

  const CudaGpu& gpu_;
  LrnProblem p_;
};

}  // namespace

std::unique_ptr<LrnKernel> CudaOperations::MakeLrn(const LrnProblem& problem, KernelChoice* choice,
                                                   std::string_view only) {
  if (!ChooseSoleKernel("CUDA", only, choice)) return nullptr;
  return std::make_unique<CudaLrn>(gpu_, problem);
}

}  // namespace crema::cuda
