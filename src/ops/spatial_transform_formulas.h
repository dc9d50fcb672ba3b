// Where an affine map finds the elements of its result, shared by the CPU and kernels of a GPU.
#ifndef CREMA_OPS_SPATIAL_TRANSFORM_FORMULAS_H_
#define CREMA_OPS_SPATIAL_TRANSFORM_FORMULAS_H_

#include <cmath>
#include <cstdint>

#include "ops/functors.h"
#include "ops/spatial_transform.h"

namespace crema::spatial_transform {

// What two neighbouring elements of an axis count for a position between them; 0 what is not in the image.
struct Shares {
  float low, high;
  float low_in, high_in;  // 1: is in the image
};

// Their indices; of one that is not in the image that of some other.
struct Point {
  int32_t low, high;
  Shares shares;

  CREMA_FORMULA float Of(int32_t element) const {
    return (element == low ? shares.low : 0.0f) + (element == high ? shares.high : 0.0f);
  }
};

CREMA_FORMULA Point PointAt(float position, int32_t extent) {
  const bool inside = position > -1.0f && position < static_cast<float>(extent);
  const float floor = std::floor(inside ? position : 0.0f);
  const float beyond = (inside ? position : 0.0f) - floor;
  const auto first = static_cast<int32_t>(floor);
  const float low_in = inside && first >= 0 ? 1.0f : 0.0f, high_in = inside && first + 1 < extent ? 1.0f : 0.0f;
  return {first >= 0 ? first : 0,
          first + 1 < extent ? first + 1 : extent - 1,
          {low_in * (1.0f - beyond), high_in * beyond, low_in, high_in}};
}

// The elements around a position.
struct Corners {
  float upper_left, upper_right, lower_left, lower_right;

  CREMA_FORMULA float Above(const Shares& across) const { return across.low * upper_left + across.high * upper_right; }
  CREMA_FORMULA float Below(const Shares& across) const { return across.low * lower_left + across.high * lower_right; }

  CREMA_FORMULA float Value(const Shares& down, const Shares& across) const {
    return down.low * Above(across) + down.high * Below(across);
  }
  // For each pixel that the position moves down, or to the right.
  CREMA_FORMULA float SlopeDown(const Shares& down, const Shares& across) const {
    return down.high_in * Below(across) - down.low_in * Above(across);
  }
  CREMA_FORMULA float SlopeAcross(const Shares& down, const Shares& across) const {
    const float left = down.low * upper_left + down.high * lower_left;
    const float right = down.low * upper_right + down.high * lower_right;
    return across.high_in * right - across.low_in * left;
  }
};

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

#endif  // CREMA_OPS_SPATIAL_TRANSFORM_FORMULAS_H_
