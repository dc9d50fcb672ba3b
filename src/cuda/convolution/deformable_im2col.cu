#include <bit>

#include "cuda/arrays/lanes.h"
#include "cuda/arrays/radix_sort.h"
#include "cuda/operations.h"
#include "ops/convolution/deformable_im2col_formulas.h"

namespace crema::cuda {

namespace {

using bilinear::Corners;
using bilinear::Point;
using Problem = DeformableIm2colProblem;

constexpr int kTogether = 8;  // channels of a thread, which have their places in common

__host__ __device__ int64_t PartsOf(const Problem& p) { return (p.group_channels() + kTogether - 1) / kTogether; }

// Where an element of the columns comes from, in all channels of a group: a place of the window, and a window.
struct Source {
  int64_t place, window;
  Point down, across;

  // `element`: of places x windows.
  __device__ Source(const Problem& p, int64_t group, int64_t element, const float* offsets)
      : place(element), window(SplitOff(&place, p.windows())) {
    const float* const pair = offsets + PairOf(p, group);
    int64_t i = place, row = window;
    const int64_t j = SplitOff(&i, p.columns.kernel), column = SplitOff(&row, p.columns.output);
    down = deformable::PointOf(p.rows, p.fades, row, i, pair[p.first_down()]);
    across = deformable::PointOf(p.columns, p.fades, column, j, pair[p.first_across()]);
  }

  // Its two numbers in arrays of groups x places x 2 x windows: of the first of both.
  __device__ int64_t PairOf(const Problem& p, int64_t group) const {
    return (group * p.places() + place) * 2 * p.windows() + window;
  }
  __device__ bool IsInside() const { return bilinear::IsInside(down.shares) && bilinear::IsInside(across.shares); }

  // Of a plane.
  __device__ Corners CornersOf(const float* x, int64_t width) const {
    const float *const upper = x + down.low * width, *const lower = x + down.high * width;
    return {upper[across.low], upper[across.high], lower[across.low], lower[across.high]};
  }
};

// One element of the columns, in some channels.
struct SampleColumns {
  Problem p;
  const float *image, *offsets, *factors;
  float* columns;

  __device__ void operator()(int64_t at) const {
    const int64_t size = p.places() * p.windows();
    int64_t group = at;
    const int64_t element = SplitOff(&group, size), part = SplitOff(&group, PartsOf(p));
    const Source source(p, group, element, offsets);
    const float factor = factors ? factors[group * size + element] : 1.0f;
    const int64_t channel = group * p.group_channels() + part * kTogether, end = (group + 1) * p.group_channels();
    const bool outside = !p.fades && !factors && !source.IsInside();
    for (int64_t c = channel; c < channel + kTogether && c < end; ++c) {
      const Corners corners = source.CornersOf(image + c * p.plane(), p.columns.input);
      const float value = factor * corners.Value(source.down.shares, source.across.shares);
      columns[c * size + element] = outside ? p.outside : value;
    }
  }
};

// What an element of the columns gives to pixels of the image is the same in all channels of a group: up to four
// pixels, and the share of each. They are sorted by pixels, so that each has a sum of one order.
constexpr int kCorners = 4;

struct Gifts {
  SortedKeys<uint32_t> to;  // pixels, and which gifts of the group; `plane`: to none
  float* shares;            // groups x corners x elements
};

struct FindGifts {
  Problem p;
  const float *offsets, *factors;
  Gifts gifts;

  __device__ void operator()(int64_t at) const {
    const int64_t size = p.places() * p.windows();
    int64_t group = at;
    const int64_t element = SplitOff(&group, size);
    const Source source(p, group, element, offsets);
    const float factor = factors ? factors[at] : 1.0f;
    const Point &down = source.down, &across = source.across;
    const float above = factor * down.shares.low, below = factor * down.shares.high;
    Set(group, element, down.low, across.low, above * across.shares.low);
    Set(group, size + element, down.low, across.high, above * across.shares.high);
    Set(group, 2 * size + element, down.high, across.low, below * across.shares.low);
    Set(group, 3 * size + element, down.high, across.high, below * across.shares.high);
  }

 private:
  __device__ void Set(int64_t group, int64_t gift, int64_t row, int64_t column, float share) const {
    const int64_t at = group * kCorners * p.places() * p.windows() + gift;
    gifts.to.keys[at] = static_cast<uint32_t>(share != 0.0f ? row * p.columns.input + column : p.plane());
    gifts.to.items[at] = static_cast<int32_t>(gift);
    gifts.shares[at] = share;
  }
};

// Where the gifts to a pixel of a group begin; behind the last one, where they end.
struct FindBegins {
  int64_t pixels, gifts;  // of a group
  const uint32_t* keys;
  int32_t* begins;

  __device__ void operator()(int64_t at) const {
    int64_t group = at;
    const auto pixel = static_cast<uint32_t>(SplitOff(&group, pixels + 1));
    const uint32_t* const of_group = keys + group * gifts;
    int64_t low = 0, high = gifts;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (of_group[middle] < pixel) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    begins[at] = static_cast<int32_t>(low);
  }
};

// One pixel, in some channels.
struct GatherGifts {
  Problem p;
  const float* columns;
  const int32_t *begins, *items;
  const float* shares;
  float* image;

  __device__ void operator()(int64_t at) const {
    const int64_t size = p.places() * p.windows();
    int64_t group = at;
    const int64_t pixel = SplitOff(&group, p.plane()), part = SplitOff(&group, PartsOf(p));
    const int32_t* const range = begins + group * (p.plane() + 1) + pixel;
    const int64_t first = group * kCorners * size;
    const int64_t channel = group * p.group_channels() + part * kTogether;
    const int64_t left = (group + 1) * p.group_channels() - channel;
    float sums[kTogether] = {};
    for (int64_t i = range[0]; i < range[1]; ++i) {
      const int64_t gift = items[first + i];
      int64_t corner = gift;
      const float share = shares[first + gift];
      const float* const from = columns + channel * size + SplitOff(&corner, size);
      CREMA_UNROLL
      for (int c = 0; c < kTogether; ++c) {
        if (c < left) sums[c] += share * from[c * size];
      }
    }
    CREMA_UNROLL
    for (int c = 0; c < kTogether; ++c) {
      if (c < left) image[(channel + c) * p.plane() + pixel] = sums[c];
    }
  }
};

// Of one place of the window, of one group, at one window.
struct SumOffsetGradient {
  Problem p;
  const float *columns, *image, *offsets, *factors;
  float *offset_gradient, *factor_gradient;

  __device__ void operator()(int64_t at) const {
    const int64_t size = p.places() * p.windows();
    int64_t group = at;
    const int64_t element = SplitOff(&group, size);
    const Source source(p, group, element, offsets);
    float by_row = 0, by_column = 0, by_factor = 0;
    const bool is_sampled = source.IsInside();  // else the gradient may be infinite or no number
    for (int64_t c = group * p.group_channels(); c < (group + 1) * p.group_channels(); ++c) {
      const float gradient = is_sampled ? columns[c * size + element] : 0.0f;
      const Corners corners = source.CornersOf(image + c * p.plane(), p.columns.input);
      by_row += gradient * corners.SlopeDown(source.down.shares, source.across.shares);
      by_column += gradient * corners.SlopeAcross(source.down.shares, source.across.shares);
      by_factor += gradient * corners.Value(source.down.shares, source.across.shares);
    }
    if (offset_gradient) {
      const float factor = factors ? factors[at] : 1.0f;
      float* const pair = offset_gradient + source.PairOf(p, group);
      pair[p.first_down()] = factor * by_row;
      pair[p.first_across()] = factor * by_column;
    }
    if (factor_gradient) factor_gradient[at] = by_factor;
  }
};

int64_t GiftsOf(const Problem& p) { return kCorners * p.places() * p.windows(); }  // of a group

}  // namespace

void CudaOperations::DeformableIm2col(const DeformableIm2colProblem& problem, const float* image, const float* offsets,
                                      const float* factors, float* columns) {
  ForEach(queue(), problem.groups * PartsOf(problem) * problem.places() * problem.windows(),
          SampleColumns{problem, image, offsets, factors, columns});
}

size_t CudaOperations::DeformableCol2imWorkspace(const DeformableIm2colProblem& problem) {
  const int64_t numbers = problem.groups * (GiftsOf(problem) + problem.plane() + 1);
  return RadixSort<uint32_t>::Bytes(problem.groups, GiftsOf(problem)) + static_cast<size_t>(numbers) * sizeof(float);
}

void CudaOperations::DeformableCol2im(const DeformableIm2colProblem& problem, const float* columns,
                                      const float* offsets, const float* factors, float* image, std::byte* workspace) {
  const Problem& p = problem;
  const int bits = std::bit_width(static_cast<uint32_t>(p.plane()));
  const RadixSort<uint32_t> sort(p.groups, GiftsOf(p), bits, &workspace);
  auto* const shares = radix_sort::Take<float>(p.groups * GiftsOf(p), &workspace);
  auto* const begins = radix_sort::Take<int32_t>(p.groups * (p.plane() + 1), &workspace);
  ForEach(queue(), p.groups * p.places() * p.windows(), FindGifts{p, offsets, factors, {sort.unsorted(), shares}});
  sort.Run(queue());
  ForEach(queue(), p.groups * (p.plane() + 1), FindBegins{p.plane(), GiftsOf(p), sort.sorted().keys, begins});
  ForEach(queue(), p.groups * PartsOf(p) * p.plane(),
          GatherGifts{p, columns, begins, sort.sorted().items, shares, image});
}

void CudaOperations::DeformableOffsetGradient(const DeformableIm2colProblem& problem, const float* columns,
                                              const float* image, const float* offsets, const float* factors,
                                              float* offset_gradient, float* factor_gradient) {
  ForEach(queue(), problem.groups * problem.places() * problem.windows(),
          SumOffsetGradient{problem, columns, image, offsets, factors, offset_gradient, factor_gradient});
}

}  // namespace crema::cuda
