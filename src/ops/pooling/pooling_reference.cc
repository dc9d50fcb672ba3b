// The plain loops that define what every other pooling kernel must compute.
#include <algorithm>

#include "base/parallel.h"
#include "ops/pooling/pooling_kernels.h"

namespace crema {

namespace {

class ReferencePooling final : public PoolingKernel {
 public:
  explicit ReferencePooling(const PoolingProblem& problem)
      : problem_(problem),
        slices_(problem.input_depth, problem.depth, problem.output_depth, divides()),
        rows_(problem.input_height, problem.vertical, problem.output_height, divides()),
        columns_(problem.input_width, problem.horizontal, problem.output_width, divides()),
        step_(problem.layout == Layout::kPlain ? 1 : problem.channels) {}

  TensorSpec saved() const override {
    if (!problem_.backward || !Draws()) return {Shape{0}, DType::kF32};
    return {Shape{problem_.outputs()}, DType::kI32};
  }

  void Forward(const void* given, void* made, void* saved, float* indices, const RandomStream* random) override {
    const float* source = static_cast<const float*>(given);
    float* destination = static_cast<float*>(made);
    ForEachWindow([&](int64_t at, int64_t plane, const Window& window) {
      const float* input = source + plane;
      int32_t chosen = -1;
      float value = 0;
      if (!window.empty()) {
        switch (problem_.method) {
          case PoolingMethod::kMax:
            chosen = Largest(input, window);
            value = input[chosen * step_];
            break;
          case PoolingMethod::kAverage:
          case PoolingMethod::kSum:
            value = Sum(input, window, [](float x) { return x; }) / window.padded;
            break;
          case PoolingMethod::kStochastic:
            if (problem_.training) {
              chosen = Draw(input, window, random->Uniform(at));
              value = input[chosen * step_];
            } else {
              const float sum = Sum(input, window, [](float x) { return x; });
              value = sum == 0 ? 0 : Sum(input, window, [](float x) { return x * x; }) / sum;
            }
        }
      }
      destination[at] = value;
      if (saved) static_cast<int32_t*>(saved)[at] = chosen;
      if (indices) indices[at] = static_cast<float>(chosen);
    });
  }

  void Backward(const void* given, const void* given_gradient, const void* saved, void* made) override {
    const float *source = static_cast<const float*>(given),
                *destination_gradient = static_cast<const float*>(given_gradient);
    float* source_gradient = static_cast<float*>(made);
    std::fill_n(source_gradient, problem_.inputs(), 0.0f);
    ForEachWindow([&](int64_t at, int64_t plane, const Window& window) {
      if (window.empty()) return;
      const float gradient = destination_gradient[at];
      if (problem_.sums()) {
        Visit(window, [&](int64_t i) { source_gradient[plane + i * step_] += gradient / window.padded; });
      } else if (Draws()) {
        source_gradient[plane + static_cast<const int32_t*>(saved)[at] * step_] += gradient;
      } else {
        // d/dx (sum of x^2 / sum of x) = (2 x - value) / sum of x
        const float sum = Sum(source + plane, window, [](float x) { return x; });
        if (sum == 0) return;
        const float value = Sum(source + plane, window, [](float x) { return x * x; }) / sum;
        Visit(window, [&](int64_t i) {
          source_gradient[plane + i * step_] += gradient * (2 * source[plane + i * step_] - value) / sum;
        });
      }
    });
  }

 private:
  bool divides() const { return problem_.method != PoolingMethod::kSum; }
  // Whether the output of a window is one of its elements.
  bool Draws() const {
    return problem_.method == PoolingMethod::kMax ||
           (problem_.method == PoolingMethod::kStochastic && problem_.training);
  }

  struct Window {
    int64_t front, back, top, bottom, left, right;
    float padded;  // elements, padding included
    bool empty() const { return front >= back || top >= bottom || left >= right; }
  };

  // body(index in the output, start of the input plane, window); each plane is one thread's.
  template <typename Body>
  void ForEachWindow(const Body& body) const {
    constexpr int64_t kGrain = 4096;  // windows worth waking a thread for
    const int64_t grain = std::max<int64_t>(1, kGrain / (problem_.output_plane() + 1));
    ParallelFor(problem_.planes(), grain, [&](int64_t first, int64_t last) {
      for (int64_t plane = first; plane < last; ++plane) ForEachWindowOf(plane, body);
    });
  }

  template <typename Body>
  void ForEachWindowOf(int64_t plane, const Body& body) const {
    int64_t at = Start(plane, problem_.output_plane());
    for (int64_t slice = 0; slice < problem_.output_depth; ++slice) {
      for (int64_t row = 0; row < problem_.output_height; ++row) {
        for (int64_t column = 0; column < problem_.output_width; ++column, at += step_) {
          body(at, Start(plane, problem_.input_plane()), WindowOf(slice, row, column));
        }
      }
    }
  }

  Window WindowOf(int64_t slice, int64_t row, int64_t column) const {
    return {slices_.begin[slice],
            slices_.end[slice],
            rows_.begin[row],
            rows_.end[row],
            columns_.begin[column],
            columns_.end[column],
            static_cast<float>(slices_.padded[slice] * rows_.padded[row] * columns_.padded[column])};
  }

  // Where the first of the `pixels` pixels of a plane lies; the next ones follow step_ elements apart.
  int64_t Start(int64_t plane, int64_t pixels) const {
    if (problem_.layout == Layout::kPlain) return plane * pixels;
    return plane / problem_.channels * problem_.channels * pixels + plane % problem_.channels;
  }

  template <typename Body>
  void Visit(const Window& window, const Body& body) const {
    for (int64_t d = window.front; d < window.back; ++d) {
      for (int64_t h = window.top; h < window.bottom; ++h) {
        const int64_t row = (d * problem_.input_height + h) * problem_.input_width;
        for (int64_t w = window.left; w < window.right; ++w) body(row + w);
      }
    }
  }

  template <typename Term>
  float Sum(const float* input, const Window& window, const Term& term) const {
    float sum = 0;
    Visit(window, [&](int64_t i) { sum += term(input[i * step_]); });
    return sum;
  }

  int32_t Largest(const float* input, const Window& window) const {
    int64_t best = (window.front * problem_.input_height + window.top) * problem_.input_width + window.left;
    Visit(window, [&](int64_t i) { best = input[i * step_] > input[best * step_] ? i : best; });
    return static_cast<int32_t>(best);
  }

  // The first element at which the running sum reaches `uniform` of the whole.
  int32_t Draw(const float* input, const Window& window, float uniform) const {
    const float threshold = uniform * Sum(input, window, [](float x) { return x; });
    int64_t drawn = -1, last = 0;
    float sum = 0;
    Visit(window, [&](int64_t i) {
      sum += input[i * step_];
      if (drawn < 0 && sum >= threshold) drawn = i;
      last = i;
    });
    return static_cast<int32_t>(drawn < 0 ? last : drawn);
  }

  PoolingProblem problem_;
  WindowRanges slices_, rows_, columns_;
  int64_t step_;  // from one pixel of a plane to the next
};

}  // namespace

std::unique_ptr<PoolingKernel> MakePoolingReference(const PoolingProblem& problem, const Device& device,
                                                    std::string* why_not) {
  if (device.type() != DeviceType::kCpu) {
    *why_not = "runs on the CPU only";
    return nullptr;
  }
  if (problem.dtype != DType::kF32) {
    *why_not = "takes f32 only";
    return nullptr;
  }
  return std::make_unique<ReferencePooling>(problem);
}

}  // namespace crema
