// Windows of pooling and what becomes of each, as kernels see them.
#ifndef CREMA_CUDA_POOLING_POOLING_WINDOWS_H_
#define CREMA_CUDA_POOLING_POOLING_WINDOWS_H_

#include <limits>

#include "cuda/arrays/lanes.h"
#include "cuda/arrays/numbers.h"
#include "cuda/device/gpu.h"
#include "ops/pooling/pooling.h"

namespace crema::cuda {

// Images counted in lanes. Those of one pixel lie side by side (`inner`, 1 in plain images), then come the pixels of a
// row, the rows, the slices of volumes, and the images or planes.
struct PoolingExtents {
  int64_t inner;
  int64_t input_depth, input_height, input_width, output_depth, output_height, output_width;
  PoolingWindow depth, vertical, horizontal;

  __device__ int64_t input_plane() const { return input_depth * input_height * input_width; }
};

// kVolume: there are slices; what is done to images is compiled without, and their slice is 0.
struct Pixel {
  int64_t slice, row, column;
};

// Lanes i of images of height x width pixels, or of volumes of so many slices.
struct Place : Pixel {
  int64_t lane, outer;
  __device__ Place(int64_t i, int64_t inner, int64_t height, int64_t width) : Pixel{0, 0, 0} {
    lane = SplitOff(&i, inner);
    column = SplitOff(&i, width);
    row = SplitOff(&i, height);
    outer = i;
  }
};
template <bool kVolume>
__device__ Place PlaceOf(int64_t i, int64_t inner, int64_t depth, int64_t height, int64_t width) {
  Place place(i, inner, height, width);
  if constexpr (kVolume) place.slice = SplitOff(&place.outer, depth);
  return place;
}

template <bool kVolume>
struct Window {
  WindowRange slices, rows, columns;
  int64_t front, top, left;  // where it would begin with its padding
  int64_t input_height, input_width, kernel_height, kernel_width;

  // Of an output pixel.
  __device__ Window(const PoolingExtents& e, const Pixel& output)
      : slices(kVolume ? RangeOf(e.input_depth, e.depth, output.slice) : WindowRange{0, 1, 1}),
        rows(RangeOf(e.input_height, e.vertical, output.row)),
        columns(RangeOf(e.input_width, e.horizontal, output.column)),
        front(kVolume ? output.slice * e.depth.stride - e.depth.pad : 0),
        top(output.row * e.vertical.stride - e.vertical.pad),
        left(output.column * e.horizontal.stride - e.horizontal.pad),
        input_height(e.input_height),
        input_width(e.input_width),
        kernel_height(e.vertical.kernel),
        kernel_width(e.horizontal.kernel) {}
  __device__ bool empty() const {
    return (kVolume && slices.begin >= slices.end) || rows.begin >= rows.end || columns.begin >= columns.end;
  }
  __device__ float padded() const {
    return static_cast<float>((kVolume ? slices.padded : 1) * rows.padded * columns.padded);
  }
  __device__ Pixel first() const { return {kVolume ? slices.begin : 0, rows.begin, columns.begin}; }

  // An element's index in the plane.
  __device__ int64_t IndexOf(const Pixel& at) const {
    const int64_t row = kVolume ? at.slice * input_height + at.row : at.row;
    return row * input_width + at.column;
  }
  // The element of the plane's row `row`, counted through its slices.
  __device__ Pixel PixelOf(int64_t row, int64_t column) const {
    const int64_t slice = kVolume ? row / input_height : 0;
    return {slice, row - slice * input_height, column};
  }
  // Its name: in one byte its position in the window, else that index.
  template <typename Name>
  __device__ Name NameOf(const Pixel& at) const {
    if constexpr (sizeof(Name) == 1) {
      const int64_t row = (kVolume ? (at.slice - front) * kernel_height : 0) + at.row - top;
      return static_cast<Name>(row * kernel_width + at.column - left);
    }
    return static_cast<Name>(IndexOf(at));
  }
  template <typename Name>
  __device__ float IndexOfName(Name name) const {
    if constexpr (sizeof(Name) == 1) {
      int64_t row = name / kernel_width;
      const int64_t slice = kVolume ? row / kernel_height : 0;
      row -= slice * kernel_height;
      return static_cast<float>(IndexOf({front + slice, top + row, left + name % kernel_width}));
    }
    return static_cast<float>(name);
  }

  // body(the lanes, pixel) in the order of memory; input: those of the plane's first pixel.
  template <typename Unit, typename Body>
  __device__ void Visit(const Unit* input, int64_t inner, const Body& body) const {
    const int64_t first_slice = kVolume ? slices.begin : 0, end_slice = kVolume ? slices.end : 1;
    for (int64_t slice = first_slice; slice < end_slice; ++slice) {
      for (int64_t row = rows.begin; row < rows.end; ++row) {
        const Unit* of_row = input + IndexOf({slice, row, 0}) * inner;
        for (int64_t column = columns.begin; column < columns.end; ++column) {
          const Unit lanes = of_row[column * inner];  // a copy: by reference each number would be an access of its own
          body(lanes, Pixel{slice, row, column});
        }
      }
    }
  }
};

// What to make of a window: `Run` returns the lanes of its result, which are lanes `at` of the output; `Empty` is for
// one without any input element, whose result is 0.

// The largest element, the first one of equals.
template <typename Name>
struct MaximumOfWindow {
  Name* saved;     // the elements' names; may be null
  float* indices;  // in the plane; may be null

  template <typename Window, typename Unit>
  __device__ Unit Run(const Window& window, const Unit* input, int64_t inner, int64_t at) const {
    Unit best = input[window.IndexOf(window.first()) * inner];
    Lanes<Unit::kWidth, Name> names;
    for (int k = 0; k < Unit::kWidth; ++k) {
      names.values[k] = window.template NameOf<Name>(window.first());
    }
    window.Visit(input, inner, [&](const Unit& x, const Pixel& pixel) {
      const Name name = window.template NameOf<Name>(pixel);
      for (int k = 0; k < Unit::kWidth; ++k) {
        const bool larger = static_cast<float>(x.values[k]) > static_cast<float>(best.values[k]);
        best.values[k] = larger ? x.values[k] : best.values[k];
        names.values[k] = larger ? name : names.values[k];
      }
    });
    Keep(window, names, at);
    return best;
  }

  template <typename Window, int kWidth>
  __device__ void Keep(const Window& window, const Lanes<kWidth, Name>& names, int64_t at) const {
    if (saved) reinterpret_cast<Lanes<kWidth, Name>*>(saved)[at] = names;
    if (!indices) return;
    for (int k = 0; k < kWidth; ++k) indices[at * kWidth + k] = window.IndexOfName(names.values[k]);
  }

  template <typename Unit>
  __device__ void Empty(int64_t at) const {
    for (int k = 0; indices && k < Unit::kWidth; ++k) indices[at * Unit::kWidth + k] = -1.0f;
  }
};

// The sum of its elements, or their average.
struct SumOfWindow {
  bool divides;

  template <typename Window>
  __device__ float Divisor(const Window& window) const {
    return divides ? window.padded() : 1.0f;
  }

  template <typename Window, typename Unit>
  __device__ Unit Run(const Window& window, const Unit* input, int64_t inner, int64_t) const {
    float sum[Unit::kWidth] = {};
    window.Visit(input, inner, [&](const Unit& x, const Pixel&) {
      for (int k = 0; k < Unit::kWidth; ++k) sum[k] += static_cast<float>(x.values[k]);
    });
    const float divisor = Divisor(window);
    Unit result;
    for (int k = 0; k < Unit::kWidth; ++k) result.values[k] = typename Unit::Value(sum[k] / divisor);
    return result;
  }

  template <typename Unit>
  __device__ void Empty(int64_t) const {}
};

// The first element at which the running sum reaches a random share of the whole.
template <typename Name>
struct DrawnOfWindow {
  Name* saved;  // may be null
  uint64_t seed;
  uint32_t drawer;
  const PassState* state;

  template <typename Window, typename Unit>
  __device__ Unit Run(const Window& window, const Unit* input, int64_t inner, int64_t at) const {
    static_assert(Unit::kWidth == 1);
    float whole = 0, sum = 0;
    window.Visit(input, inner, [&](const Unit& x, const Pixel&) { whole += static_cast<float>(x.values[0]); });
    const RandomStream random(seed, StreamId(drawer, state->pass));
    const float threshold = random.Uniform(static_cast<uint64_t>(at)) * whole;
    bool found = false;
    Unit drawn = {};
    Name name = 0;
    window.Visit(input, inner, [&](const Unit& x, const Pixel& pixel) {
      if (found) return;
      sum += static_cast<float>(x.values[0]);
      found = sum >= threshold;
      drawn = x;  // at last the last one, where rounding kept the sum below
      name = window.template NameOf<Name>(pixel);
    });
    if (saved) saved[at] = name;
    return drawn;
  }

  template <typename Unit>
  __device__ void Empty(int64_t) const {}
};

// The elements weighed by their values.
struct WeighedWindow {
  float* saved;  // the sums of all windows, then their results; may be null
  int64_t outputs;

  template <typename Window, typename Unit>
  __device__ Unit Run(const Window& window, const Unit* input, int64_t inner, int64_t at) const {
    static_assert(Unit::kWidth == 1);
    float sum = 0, squares = 0;
    window.Visit(input, inner, [&](const Unit& lanes, const Pixel&) {
      const float x = lanes.values[0];
      sum += x;
      squares += x * x;
    });
    const float value = sum == 0 ? 0 : squares / sum;
    if (saved) {
      saved[at] = sum;
      saved[outputs + at] = value;
    }
    return Unit{{typename Unit::Value(value)}};
  }

  template <typename Unit>
  __device__ void Empty(int64_t) const {}
};

// The share of an input pixel in the gradient of a window: AddTo adds it. `of`: the lanes of the output.

template <typename Name>
struct GradientOfChosen {
  const Name* saved;

  template <typename Window, typename Unit>
  __device__ void AddTo(float* sum, const Window& window, const Pixel& pixel, const Unit& dy, int64_t of,
                        int64_t) const {
    const auto names = reinterpret_cast<const Lanes<Unit::kWidth, Name>*>(saved)[of];
    const Name name = window.template NameOf<Name>(pixel);
    for (int k = 0; k < Unit::kWidth; ++k) {
      if (names.values[k] == name) sum[k] += static_cast<float>(dy.values[k]);
    }
  }
};

struct GradientOfSum {
  bool divides;

  template <typename Window, typename Unit>
  __device__ void AddTo(float* sum, const Window& window, const Pixel&, const Unit& dy, int64_t, int64_t) const {
    const float divisor = divides ? window.padded() : 1.0f;
    for (int k = 0; k < Unit::kWidth; ++k) sum[k] += static_cast<float>(dy.values[k]) / divisor;
  }
};

// d/dx (sum of x^2 / sum of x) = (2 x - value) / sum of x
template <typename Number>
struct GradientOfWeighed {
  const Number* source;
  const float* saved;
  int64_t outputs;

  template <typename Window, typename Unit>
  __device__ void AddTo(float* sum, const Window&, const Pixel&, const Unit& dy, int64_t of, int64_t at) const {
    const float whole = saved[of], value = saved[outputs + of];
    if (whole == 0) return;
    sum[0] += static_cast<float>(dy.values[0]) * (2 * static_cast<float>(source[at]) - value) / whole;
  }
};

}  // namespace crema::cuda

#endif  // CREMA_CUDA_POOLING_POOLING_WINDOWS_H_
