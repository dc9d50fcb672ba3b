// Where an affine map finds the elements of its result, shared by the CPU and kernels of a GPU.
#ifndef CREMA_OPS_SAMPLING_SPATIAL_TRANSFORM_FORMULAS_H_
#define CREMA_OPS_SAMPLING_SPATIAL_TRANSFORM_FORMULAS_H_

#include <cmath>
#include <cstdint>

#include "ops/sampling/bilinear_formulas.h"
#include "ops/sampling/spatial_transform.h"

namespace crema::spatial_transform {

using bilinear::Point;
using bilinear::PointAt;

// Elements [begin, end).
struct Range {
  int32_t begin, end;
};

// Rows or columns of x, in pixels, as a function of the result's.
struct Line {
  float by_row, by_column, offset;

  CREMA_FORMULA float At(int32_t row, int32_t column) const {
    return ::fmaf(by_row, static_cast<float>(row), ::fmaf(by_column, static_cast<float>(column), offset));
  }
};

// The map of one image, from pixels of the result to pixels of x.
struct Map {
  Line rows, columns;

  CREMA_FORMULA Map(const SpatialTransform& p, const float* theta)
      : rows(LineOf(p, theta, 0, p.height)), columns(LineOf(p, theta, 3, p.width)) {}

  CREMA_FORMULA Point RowsOf(const SpatialTransform& p, int32_t row, int32_t column) const {
    return PointAt(rows.At(row, column), static_cast<int32_t>(p.height));
  }
  CREMA_FORMULA Point ColumnsOf(const SpatialTransform& p, int32_t row, int32_t column) const {
    return PointAt(columns.At(row, column), static_cast<int32_t>(p.width));
  }

 private:
  // Such that a map that changes nothing hits the elements exactly.
  CREMA_FORMULA static Line LineOf(const SpatialTransform& p, const float* theta, int first, int64_t extent) {
    const float of_row = Number(p, theta, first), of_column = Number(p, theta, first + 1);
    const float half = 0.5f * static_cast<float>(extent);
    return {of_row * (static_cast<float>(extent) / static_cast<float>(p.result_height)),
            of_column * (static_cast<float>(extent) / static_cast<float>(p.result_width)),
            (Number(p, theta, first + 2) + 1.0f - of_row - of_column) * half};
  }
  CREMA_FORMULA static float Number(const SpatialTransform& p, const float* theta, int i) {
    return p.place[i] >= 0 ? theta[p.place[i]] : p.fixed[i];
  }
};

// Rows or columns of the result as the map takes them, from -1 on.
CREMA_FORMULA float Normalized(int32_t element, int64_t extent) {
  return 2.0f * static_cast<float>(element) / static_cast<float>(extent) - 1.0f;
}

CREMA_FORMULA Range Between(float from, float to, int64_t extent) {
  const auto most = static_cast<float>(extent);
  const float first = std::floor(from) - 1.0f, last = std::ceil(to) + 2.0f;
  // NaN: all of them.
  return {static_cast<int32_t>(first > 0.0f ? (first < most ? first : most) : 0.0f),
          static_cast<int32_t>(last < most ? (last > 0.0f ? last : 0.0f) : most)};
}

// At least the rows of the result that may come from within a pixel around element (row, column) of x.
CREMA_FORMULA Range RowsNear(const SpatialTransform& p, const Map& map, int32_t row, int32_t column) {
  const Line &r = map.rows, &c = map.columns;
  const float down = r.by_row * c.by_column, across = r.by_column * c.by_row, determinant = down - across;
  const float size = std::fabs(determinant);
  // Where rounding may be larger than what is left.
  if (!(size > 1e-3f * (std::fabs(down) + std::fabs(across)))) return {0, static_cast<int32_t>(p.result_height)};
  const float to_row = static_cast<float>(row), to_column = static_cast<float>(column);
  const float middle = (c.by_column * (to_row - r.offset) - r.by_column * (to_column - c.offset)) / determinant;
  const float rounding = 1e-3f * (std::fabs(c.by_column) * (to_row + std::fabs(r.offset)) +
                                  std::fabs(r.by_column) * (to_column + std::fabs(c.offset)));
  const float reach = (std::fabs(c.by_column) + std::fabs(r.by_column) + rounding) / size;
  return Between(middle - reach, middle + reach, p.result_height);
}

// Likewise of the columns of one of its rows, by one axis of x.
CREMA_FORMULA Range ColumnsNear(const SpatialTransform& p, const Line& line, int32_t row, int32_t element) {
  const float begin = ::fmaf(line.by_row, static_cast<float>(row), line.offset);
  const auto to = static_cast<float>(element);
  const float reach = 1.0f + 1e-5f * (to + std::fabs(line.by_row) * static_cast<float>(row) + std::fabs(line.offset));
  if (line.by_column == 0.0f) {
    const bool near = !(std::fabs(begin - to) > reach);
    return {0, near ? static_cast<int32_t>(p.result_width) : 0};
  }
  const float one = (to - reach - begin) / line.by_column, other = (to + reach - begin) / line.by_column;
  return one < other ? Between(one, other, p.result_width) : Between(other, one, p.result_width);
}

}  // namespace crema::spatial_transform

#endif  // CREMA_OPS_SAMPLING_SPATIAL_TRANSFORM_FORMULAS_H_
