#include "cuda/arrays/lanes.h"
#include "cuda/arrays/numbers.h"
#include "cuda/device/launch.h"
#include "cuda/operations.h"
#include "ops/arrays/maximum.h"

namespace crema::cuda {

namespace {

// A body over n elements, kWidth at a time; aligned where the arrays are.
template <typename Number, typename Body>
struct InPacks {
  static constexpr int kWidth = Pack<Number>::kWidth;

  Body body;
  int64_t n;
  bool aligned;

  __device__ void operator()(int64_t i) const {
    const int64_t at = i * kWidth;
    if (aligned && at + kWidth <= n) return body.template Run<kWidth>(at);
    for (int64_t k = at; k < n && k < at + kWidth; ++k) body.template Run<1>(k);
  }
};

template <typename Number, typename Body>
void ForEachPack(const Queue& queue, int64_t n, const uint8_t* from, bool aligned, const Body& body) {
  constexpr int kWidth = Pack<Number>::kWidth;
  aligned = aligned && reinterpret_cast<uintptr_t>(from) % kWidth == 0;
  ForEach(queue, (n + kWidth - 1) / kWidth, InPacks<Number, Body>{body, n, aligned});
}

template <typename Number>
struct OfTwo {
  const Number *a, *b;
  Number* y;
  uint8_t* from;

  template <int kWidth>
  __device__ void Run(int64_t at) const {
    const auto left = LoadLanes<kWidth>(a, at), right = LoadLanes<kWidth>(b, at);
    Lanes<kWidth, Number> best;
    Lanes<kWidth, uint8_t> sources;
    for (int k = 0; k < kWidth; ++k) {
      const formula::Chosen chosen = formula::MaximumOfTwo()(left.values[k], right.values[k]);
      best.values[k] = Number(chosen.value);
      sources.values[k] = chosen.from;
    }
    StoreLanes(best, y, at);
    StoreLanes(sources, from, at);
  }
};

template <typename Number>
struct With {
  const Number* x;
  formula::MaximumWith formula;
  Number* y;
  uint8_t* from;

  template <int kWidth>
  __device__ void Run(int64_t at) const {
    const auto values = LoadLanes<kWidth>(x, at);
    auto best = LoadLanes<kWidth>(y, at);
    auto sources = LoadLanes<kWidth>(from, at);
    for (int k = 0; k < kWidth; ++k) {
      const formula::Chosen chosen = formula(values.values[k], {best.values[k], sources.values[k]});
      best.values[k] = Number(chosen.value);
      sources.values[k] = chosen.from;
    }
    StoreLanes(best, y, at);
    StoreLanes(sources, from, at);
  }
};

template <typename Number>
struct Gradient {
  const Number* dy;
  const uint8_t* from;
  formula::MaximumGradient formula;
  Number* dx;

  template <int kWidth>
  __device__ void Run(int64_t at) const {
    auto gradient = LoadLanes<kWidth>(dy, at);
    const auto sources = LoadLanes<kWidth>(from, at);
    for (int k = 0; k < kWidth; ++k) {
      gradient.values[k] = Number(formula(gradient.values[k], sources.values[k]));
    }
    StoreLanes(gradient, dx, at);
  }
};

}  // namespace

void CudaOperations::MaximumOfTwo(const Tensor& a, const Tensor& b, const Tensor& y, uint8_t* from) {
  const bool aligned = IsPackAligned(a.raw()) && IsPackAligned(b.raw()) && IsPackAligned(y.raw());
  WithNumber(y.dtype(), [&]<typename Number>(Number* n) {
    ForEachPack<Number>(queue(), y.count(), from, aligned, OfTwo<Number>{As(a, n), As(b, n), As(y, n), from});
  });
}

void CudaOperations::MaximumWith(const Tensor& x, uint8_t index, const Tensor& y, uint8_t* from) {
  const bool aligned = IsPackAligned(x.raw()) && IsPackAligned(y.raw());
  WithNumber(y.dtype(), [&]<typename Number>(Number* n) {
    ForEachPack<Number>(queue(), y.count(), from, aligned, With<Number>{As(x, n), {index}, As(y, n), from});
  });
}

void CudaOperations::MaximumBackward(const Tensor& dy, const uint8_t* from, uint8_t index, const Tensor& dx) {
  const bool aligned = IsPackAligned(dy.raw()) && IsPackAligned(dx.raw());
  WithNumber(dx.dtype(), [&]<typename Number>(Number* n) {
    ForEachPack<Number>(queue(), dx.count(), from, aligned, Gradient<Number>{As(dy, n), from, {index}, As(dx, n)});
  });
}

}  // namespace crema::cuda
