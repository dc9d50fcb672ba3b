// Where the cells of a region lie, shared by the CPU and kernels of a GPU. Rounded as in Fast R-CNN's and R-FCN's own
// layers, in f32, so that the same elements belong to a cell.
#ifndef CREMA_OPS_SAMPLING_ROI_POOLING_FORMULAS_H_
#define CREMA_OPS_SAMPLING_ROI_POOLING_FORMULAS_H_

#include <cfloat>
#include <cmath>

#include "ops/arrays/functors.h"
#include "ops/sampling/roi_pooling.h"

namespace crema::roi_pooling {

// Whether number `which` of a region cannot be used. Fractions of images' numbers are dropped.
CREMA_FORMULA bool IsBad(const RoiPoolingProblem& problem, int64_t which, float value) {
  if (which > 0) return !(__builtin_fabsf(value) <= FLT_MAX);
  if (value == kNoRegion) return false;
  return !(problem.images > 0 && value > -1.0f && value < static_cast<float>(problem.images));
}

// An image that is none was reported; what follows in this pass must only stay inside the images.
CREMA_FORMULA int64_t ImageOf(const RoiPoolingProblem& problem, const float* numbers) {
  return IsBad(problem, 0, numbers[0]) || numbers[0] < 0.0f ? 0 : static_cast<int64_t>(numbers[0]);
}

// A row that is no region lies outside of every image.
CREMA_FORMULA float CoordinateOf(const float* numbers, int which) {
  return numbers[0] == kNoRegion ? FLT_MAX : numbers[which];
}

// Pixels or cells [begin, end).
struct Range {
  int32_t begin, end;
  CREMA_FORMULA bool empty() const { return begin >= end; }
};

CREMA_FORMULA int32_t Smaller(int32_t a, int32_t b) { return a < b ? a : b; }
CREMA_FORMULA int32_t Larger(int32_t a, int32_t b) { return a > b ? a : b; }

// One axis of a region: where it begins and how long its cells are.
struct Span {
  int32_t begin;
  float cell;

  CREMA_FORMULA Span(float first, float last, float scale, int64_t cells) {
    begin = Pixel(first * scale);
    const int32_t length = Larger(Pixel(last * scale) - begin + 1, 1);  // also where the corners were swapped
    cell = static_cast<float>(length) / static_cast<float>(cells);
  }
  Span() = default;

  // The elements of a cell, of an image of so many.
  CREMA_FORMULA Range Elements(int64_t i, int64_t extent) const {
    const auto most = static_cast<int32_t>(extent);
    const int32_t first = begin + First(i), last = begin + Last(i);
    return {Smaller(Larger(first, 0), most), Smaller(Larger(last, 0), most)};
  }

  // The cells that hold an element. They may overlap, and one of a cell's border may lie past the last of the region.
  CREMA_FORMULA Range Cells(int64_t element, int64_t cells) const {
    const auto most = static_cast<int32_t>(cells);
    const int32_t offset = static_cast<int32_t>(element) - begin;
    const float near = static_cast<float>(offset) / cell, far = static_cast<float>(offset + 1) / cell;
    if (!(far >= -1.0f && near <= static_cast<float>(cells) + 1.0f)) return {0, 0};
    Range range = {Larger(static_cast<int32_t>(near) - 2, 0), Smaller(static_cast<int32_t>(far) + 2, most)};
    while (range.begin < range.end && Last(range.begin) <= offset) ++range.begin;
    while (range.begin < range.end && First(range.end - 1) > offset) --range.end;
    return range;
  }

  // All elements of the region, of an image of so many.
  CREMA_FORMULA Range Whole(int64_t cells, int64_t extent) const {
    return {Elements(0, extent).begin, Elements(cells - 1, extent).end};
  }

 private:
  // Far enough from the ends of int32_t for the sums above.
  CREMA_FORMULA static int32_t Pixel(float x) {
    constexpr float kFarthest = 536870912.0f;  // 2^29
    x = ::roundf(x);
    x = x > kFarthest ? kFarthest : x;
    return static_cast<int32_t>(x >= -kFarthest ? x : -kFarthest);  // also where it is no number
  }
  CREMA_FORMULA int32_t First(int64_t i) const {
    return static_cast<int32_t>(std::floor(static_cast<float>(i) * cell));
  }
  CREMA_FORMULA int32_t Last(int64_t i) const {
    return static_cast<int32_t>(std::ceil(static_cast<float>(i + 1) * cell));
  }
};

struct Region {
  int64_t image;
  Span rows, columns;

  Region() = default;
  CREMA_FORMULA Region(const RoiPoolingProblem& p, const float* numbers)
      : image(ImageOf(p, numbers)),
        rows(CoordinateOf(numbers, 2), CoordinateOf(numbers, 4), p.scale, p.pooled_height),
        columns(CoordinateOf(numbers, 1), CoordinateOf(numbers, 3), p.scale, p.pooled_width) {}
};

// One axis of a region as R-FCN has it, in fractions of pixels. With one rounding where its kernels for GPUs have one,
// so that all compilers agree on which elements are a cell's.
struct FractionSpan {
  float begin, cell;

  CREMA_FORMULA FractionSpan(float first, float last, float scale, int64_t cells) {
    begin = ::roundf(first) * scale;
    const float length = ::fmaf(::roundf(last) + 1.0f, scale, -begin);
    cell = (length > 0.1f ? length : 0.1f) / static_cast<float>(cells);
  }

  // The elements of a cell, of an image of so many.
  CREMA_FORMULA Range Elements(int64_t i, int64_t extent) const {
    const auto most = static_cast<float>(extent);
    const float first = std::floor(::fmaf(static_cast<float>(i), cell, begin));
    const float last = std::ceil(::fmaf(static_cast<float>(i + 1), cell, begin));
    return {Clip(first, most), Clip(last, most)};
  }

 private:
  CREMA_FORMULA static int32_t Clip(float x, float most) {
    x = x < most ? x : most;
    return static_cast<int32_t>(x > 0.0f ? x : 0.0f);
  }
};

// A cell of a region as R-FCN has it.
struct PositionCell {
  int64_t image;
  Range rows, columns;

  CREMA_FORMULA PositionCell(const RoiPoolingProblem& p, const float* numbers, int64_t row, int64_t column)
      : image(ImageOf(p, numbers)),
        rows(FractionSpan(CoordinateOf(numbers, 2), CoordinateOf(numbers, 4), p.scale, p.pooled_height)
                 .Elements(row, p.height)),
        columns(FractionSpan(CoordinateOf(numbers, 1), CoordinateOf(numbers, 3), p.scale, p.pooled_width)
                    .Elements(column, p.width)) {}

  CREMA_FORMULA bool empty() const { return rows.empty() || columns.empty(); }
  CREMA_FORMULA float area() const {
    return static_cast<float>(rows.end - rows.begin) * static_cast<float>(columns.end - columns.begin);
  }
};

}  // namespace crema::roi_pooling

#endif  // CREMA_OPS_SAMPLING_ROI_POOLING_FORMULAS_H_
