#include "base/check.h"
#include "cuda/arrays/reduce.h"
#include "cuda/operations.h"
#include "cuda/pooling/pooling_windows.h"
#include "ops/pooling/pooling.h"

namespace crema::cuda {

namespace {

template <bool kVolume, typename Unit, typename Method>
struct PoolWindow {
  PoolingExtents e;
  Method method;
  const Unit* source;
  Unit* destination;

  __device__ void operator()(int64_t i) const {
    const Place place = PlaceOf<kVolume>(i, e.inner, e.output_depth, e.output_height, e.output_width);
    const Window<kVolume> window(e, place);
    if (window.empty()) {
      method.template Empty<Unit>(i);
      destination[i] = Unit{};
      return;
    }
    const Unit* input = source + place.outer * e.input_plane() * e.inner + place.lane;
    destination[i] = method.Run(window, input, e.inner, i);
  }
};

// Gathers: an input element belongs to few windows, and is written once.
template <bool kVolume, typename Unit, typename Gradient>
struct PoolGradient {
  PoolingExtents e;
  Gradient gradient;
  const Unit* destination_gradient;
  Unit* source_gradient;

  __device__ void operator()(int64_t i) const {
    const Place place = PlaceOf<kVolume>(i, e.inner, e.input_depth, e.input_height, e.input_width);
    const int64_t first_slice = kVolume ? First(place.slice, e.depth) : 0,
                  end_slice = kVolume ? End(place.slice, e.depth, e.output_depth) : 1;
    const int64_t first_row = First(place.row, e.vertical), end_row = End(place.row, e.vertical, e.output_height);
    const int64_t first_column = First(place.column, e.horizontal),
                  end_column = End(place.column, e.horizontal, e.output_width);
    float sum[Unit::kWidth] = {};
    for (int64_t slice = first_slice; slice < end_slice; ++slice) {
      const int64_t of_slice = kVolume ? place.outer * e.output_depth + slice : place.outer;
      for (int64_t row = first_row; row < end_row; ++row) {
        const int64_t of_row = (of_slice * e.output_height + row) * e.output_width;
        for (int64_t column = first_column; column < end_column; ++column) {
          const int64_t of = (of_row + column) * e.inner + place.lane;
          const Unit lanes = destination_gradient[of];  // in one access
          gradient.AddTo(sum, Window<kVolume>(e, {slice, row, column}), place, lanes, of, i);
        }
      }
    }
    Unit result;
    for (int k = 0; k < Unit::kWidth; ++k) result.values[k] = typename Unit::Value(sum[k]);
    source_gradient[i] = result;
  }

 private:
  // The windows that hold position `at`: from the first that does not end before it to the last that begins at it.
  __device__ static int64_t First(int64_t at, const PoolingWindow& window) {
    int64_t beyond = at + window.pad - window.kernel;
    if (beyond < 0) return 0;
    SplitOff(&beyond, window.stride);
    return beyond + 1;
  }
  __device__ static int64_t End(int64_t at, const PoolingWindow& window, int64_t outputs) {
    int64_t last = at + window.pad;
    SplitOff(&last, window.stride);
    return last < outputs ? last + 1 : outputs;
  }
};

// Large windows of plain images: the threads of a warp share one, so that they read side by side.
struct SumOfLane {
  float sum = 0;
  __device__ void Take(float x, int64_t) { sum += x; }
  __device__ void Reduce() { sum = SumWarp(sum); }
};

struct MaximumOfLane {
  float value = -std::numeric_limits<float>::infinity();
  int32_t index = std::numeric_limits<int32_t>::max();
  bool any = false;

  __device__ void Take(float x, int64_t i) {
    if (any && !(x > value)) return;
    any = true;
    value = x;
    index = static_cast<int32_t>(i);
  }
  __device__ void Reduce() {
    for (int other = 16; other > 0; other /= 2) {
      const float its_value = __shfl_xor_sync(0xffffffffu, value, other);
      const int32_t its_index = __shfl_xor_sync(0xffffffffu, index, other);
      const bool better = its_value > value || (its_value == value && its_index < index);
      value = better ? its_value : value;
      index = better ? its_index : index;
    }
  }
};

template <typename Window, typename Number>
__device__ void Finish(const SumOfWindow& method, const SumOfLane& of_window, const Window& window, int64_t at,
                       Number* destination) {
  destination[at] = Number(of_window.sum / method.Divisor(window));
}

template <typename Window, typename Name, typename Number>
__device__ void Finish(const MaximumOfWindow<Name>& method, const MaximumOfLane& of_window, const Window& window,
                       int64_t at, Number* destination) {
  const int64_t row = of_window.index / window.input_width, column = of_window.index - row * window.input_width;
  const Pixel pixel = window.PixelOf(row, column);
  destination[at] = Number(of_window.value);
  method.Keep(window, Lanes<1, Name>{{window.template NameOf<Name>(pixel)}}, at);
}

template <bool kVolume, typename OfLane, typename Number, typename Method>
__global__ void PoolLargeWindows(PoolingExtents e, Method method, int64_t outputs, const Number* source,
                                 Number* destination) {
  const int64_t warps = int64_t{gridDim.x} * (blockDim.x / 32);
  const int lane = static_cast<int>(threadIdx.x % 32);
  for (int64_t i = int64_t{blockIdx.x} * (blockDim.x / 32) + threadIdx.x / 32; i < outputs; i += warps) {
    const Place place = PlaceOf<kVolume>(i, 1, e.output_depth, e.output_height, e.output_width);
    const Window<kVolume> window(e, place);
    if (window.empty()) {  // for all threads of the warp
      if (lane == 0) {
        method.template Empty<Lanes<1, Number>>(i);
        destination[i] = Number(0.0f);
      }
      continue;
    }
    const Number* input = source + place.outer * e.input_plane();
    const int64_t width = window.columns.end - window.columns.begin;
    const int64_t rows = window.rows.end - window.rows.begin, slices = window.slices.end - window.slices.begin;
    const int64_t elements = (kVolume ? slices : 1) * rows * width;
    OfLane of_lane;
    for (int64_t k = lane; k < elements; k += 32) {
      int64_t row = k;
      const int64_t column = SplitOff(&row, width);
      int64_t slice = 0;
      if constexpr (kVolume) {
        slice = row;
        row = SplitOff(&slice, rows);
        slice += window.slices.begin;
      }
      const int64_t at = window.IndexOf({slice, window.rows.begin + row, window.columns.begin + column});
      of_lane.Take(input[at], at);
    }
    of_lane.Reduce();
    if (lane == 0) Finish(method, of_lane, window, i, destination);
  }
}

// Whether an element of a window is named by one byte.
bool NamesFitByte(const PoolingProblem& problem) {
  return PositionsFit(problem) && problem.depth.kernel * problem.vertical.kernel * problem.horizontal.kernel <= 256;
}

class CudaPooling final : public PoolingKernel {
 public:
  CudaPooling(const CudaGpu& gpu, const PoolingProblem& problem) : gpu_(gpu), problem_(problem) {}

  TensorSpec saved() const override {
    const int64_t outputs = problem_.outputs();
    if (!problem_.backward || problem_.sums()) return {Shape{0}, DType::kF32};
    if (weighs()) return {Shape{2 * outputs}, DType::kF32};
    return {Shape{outputs}, NamesFitByte(problem_) ? DType::kU8 : DType::kI32};
  }

  void Forward(const void* source, void* destination, void* saved, float* indices,
               const RandomStream* random) override {
    if (!problem_.backward) saved = nullptr;
    WithNumber(problem_.dtype, [&]<typename Number>(Number*) {
      const auto* from = static_cast<const Number*>(source);
      auto* to = static_cast<Number*>(destination);
      if (problem_.sums()) {
        return Pool<SumOfLane>(SumOfWindow{divides()}, from, to, nullptr);
      }
      if (weighs()) {
        return Run<Lanes<1, Number>>(WeighedWindow{static_cast<float*>(saved), problem_.outputs()}, from, to);
      }
      WithName([&]<typename Name>(Name*) {
        auto* names = static_cast<Name*>(saved);
        if (problem_.method == PoolingMethod::kMax) {
          return Pool<MaximumOfLane>(MaximumOfWindow<Name>{names, indices}, from, to, saved);
        }
        const auto drawer = static_cast<uint32_t>(random->stream() >> 40);
        Run<Lanes<1, Number>>(DrawnOfWindow<Name>{names, random->seed(), drawer, gpu_.state()}, from, to);
      });
    });
  }

  void Backward(const void* source, const void* destination_gradient, const void* saved,
                void* source_gradient) override {
    WithNumber(problem_.dtype, [&]<typename Number>(Number*) {
      const auto* from = static_cast<const Number*>(destination_gradient);
      auto* to = static_cast<Number*>(source_gradient);
      if (problem_.sums()) return PoolBack(GradientOfSum{divides()}, from, to, nullptr);
      if (weighs()) {
        return RunBack<Lanes<1, Number>>(
            GradientOfWeighed<Number>{static_cast<const Number*>(source), static_cast<const float*>(saved),
                                      problem_.outputs()},
            from, to);
      }
      WithName([&]<typename Name>(Name*) {
        PoolBack(GradientOfChosen<Name>{static_cast<const Name*>(saved)}, from, to, saved);
      });
    });
  }

 private:
  bool divides() const { return problem_.method == PoolingMethod::kAverage; }
  bool weighs() const { return problem_.method == PoolingMethod::kStochastic && !problem_.training; }

  template <typename Body>
  void WithName(const Body& body) const {
    NamesFitByte(problem_) ? body(static_cast<uint8_t*>(nullptr)) : body(static_cast<int32_t*>(nullptr));
  }

  // Channels are taken in packs where they come last and all arrays allow.
  template <typename Number>
  bool InPacks(const Number* a, const Number* b, const void* saved) const {
    return problem_.layout == Layout::kChannelsLast && problem_.channels % Pack<Number>::kWidth == 0 &&
           IsPackAligned(a) && IsPackAligned(b) && IsPackAligned(saved);
  }

  PoolingExtents Extents(int width) const {
    return {problem_.layout == Layout::kPlain ? 1 : problem_.channels / width,
            problem_.input_depth,
            problem_.input_height,
            problem_.input_width,
            problem_.output_depth,
            problem_.output_height,
            problem_.output_width,
            problem_.depth,
            problem_.vertical,
            problem_.horizontal};
  }

  // `kept`: what the method writes besides.
  template <typename OfLane, typename Method, typename Number>
  void Pool(const Method& method, const Number* source, Number* destination, const void* kept) const {
    constexpr int64_t kLarge = 32;  // elements of a window that keep a warp busy; many windows do so better
    if (InPacks(source, destination, kept)) {
      return Run<Lanes<Pack<Number>::kWidth, Number>>(method, source, destination);
    }
    const int64_t reach = std::min(problem_.depth.kernel, problem_.input_depth) *
                          std::min(problem_.vertical.kernel, problem_.input_height) *
                          std::min(problem_.horizontal.kernel, problem_.input_width);
    if (problem_.layout == Layout::kPlain && reach >= kLarge && problem_.outputs() > 0 &&
        reach > problem_.output_plane()) {
      const int64_t n = problem_.outputs();
      const auto kernel = problem_.volume() ? PoolLargeWindows<true, OfLane, Number, Method>
                                            : PoolLargeWindows<false, OfLane, Number, Method>;
      return Launch(gpu_.queue(), BlocksFor(gpu_.queue(), n * 32), kThreads, kernel, Extents(1), method, n, source,
                    destination);
    }
    Run<Lanes<1, Number>>(method, source, destination);
  }

  template <typename Unit, typename Method>
  void Run(const Method& method, const void* source, void* destination) const {
    WithVolume([&]<bool kVolume>() {
      ForEach(gpu_.queue(), problem_.outputs() / Unit::kWidth,
              PoolWindow<kVolume, Unit, Method>{Extents(Unit::kWidth), method, static_cast<const Unit*>(source),
                                                static_cast<Unit*>(destination)});
    });
  }

  template <typename Body>
  void WithVolume(const Body& body) const {
    problem_.volume() ? body.template operator()<true>() : body.template operator()<false>();
  }

  template <typename Gradient, typename Number>
  void PoolBack(const Gradient& gradient, const Number* destination_gradient, Number* source_gradient,
                const void* saved) const {
    if (InPacks(destination_gradient, source_gradient, saved)) {
      RunBack<Lanes<Pack<Number>::kWidth, Number>>(gradient, destination_gradient, source_gradient);
    } else {
      RunBack<Lanes<1, Number>>(gradient, destination_gradient, source_gradient);
    }
  }

  template <typename Unit, typename Gradient>
  void RunBack(const Gradient& gradient, const void* destination_gradient, void* source_gradient) const {
    WithVolume([&]<bool kVolume>() {
      ForEach(gpu_.queue(), problem_.inputs() / Unit::kWidth,
              PoolGradient<kVolume, Unit, Gradient>{Extents(Unit::kWidth), gradient,
                                                    static_cast<const Unit*>(destination_gradient),
                                                    static_cast<Unit*>(source_gradient)});
    });
  }

  const CudaGpu& gpu_;
  PoolingProblem problem_;
};

}  // namespace

std::unique_ptr<PoolingKernel> CudaOperations::MakePooling(const PoolingProblem& problem, KernelChoice* choice,
                                                           std::string_view only) {
  if (!ChooseSoleKernel("CUDA", only, choice)) return nullptr;
  return std::make_unique<CudaPooling>(gpu_, problem);
}

}  // namespace crema::cuda
