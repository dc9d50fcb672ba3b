// Where the points of a region lie, shared by the CPU and kernels of a GPU. Interpolated as Detectron's layer does: the
// middle of pixel i is i.
#ifndef CREMA_OPS_SAMPLING_ROI_ALIGN_FORMULAS_H_
#define CREMA_OPS_SAMPLING_ROI_ALIGN_FORMULAS_H_

#include "ops/sampling/roi_align.h"
#include "ops/sampling/roi_pooling_formulas.h"

namespace crema::roi_align {

using roi_pooling::Larger;
using roi_pooling::Range;
using roi_pooling::Smaller;

// A point on one axis lies between two elements, or on one twice.
struct Point {
  int32_t low, high;
  float of_low, of_high;  // what they count

  CREMA_FORMULA float Of(int32_t element) const {
    return (element == low ? of_low : 0.0f) + (element == high ? of_high : 0.0f);
  }
};

// The points of a region on one axis, counted through all of its cells.
struct Axis {
  float begin, step;
  int32_t points;  // of a cell
  int32_t extent;  // of the image
  Range inside;    // the points that are not too far outside of it

  Axis() = default;
  // Of a region without length there is a pixel.
  CREMA_FORMULA Axis(float first, float last, bool is_region, float scale, int64_t cells, int32_t wanted, int64_t image)
      : extent(static_cast<int32_t>(image)), inside{0, 0} {
    constexpr float kMost = 16384.0f;  // points of a cell, of which 2^16 are counted in 32 bits
    begin = first * scale;
    const float whole = ::fmaf(last, scale, -begin), length = whole > 1.0f ? whole : 1.0f;  // rounded once everywhere
    const float cell = length / static_cast<float>(cells);
    points = wanted > 0 ? wanted : static_cast<int32_t>(std::ceil(cell < kMost ? cell : kMost));
    step = cell / static_cast<float>(points);
    const int32_t all = points * static_cast<int32_t>(cells);
    if (!is_region || extent == 0) return;
    inside = Around(-1.0f, static_cast<float>(extent), all);
    while (!inside.empty() && !(Position(inside.begin) >= -1.0f)) ++inside.begin;
    while (!inside.empty() && !(Position(inside.end - 1) <= static_cast<float>(extent))) --inside.end;
  }

  // Of a cell, those inside.
  CREMA_FORMULA Range Cell(int64_t i) const {
    const auto first = static_cast<int32_t>(i) * points;
    return {Larger(inside.begin, first), Smaller(inside.end, first + points)};
  }

  // All inside to which an element may count, and some beside them.
  CREMA_FORMULA Range Near(int32_t element) const {
    const Range near = Around(static_cast<float>(element) - 1.0f, static_cast<float>(element) + 1.0f, inside.end);
    return {Larger(inside.begin, near.begin), near.end};
  }

  // Of a point inside.
  CREMA_FORMULA Point At(int32_t i) const {
    const float position = Position(i), at = position > 0.0f ? position : 0.0f;
    const int32_t low = Smaller(static_cast<int32_t>(at), extent - 1);
    if (low == extent - 1) return {low, low, 1.0f, 0.0f};
    const float beyond = at - static_cast<float>(low);
    return {low, low + 1, 1.0f - beyond, beyond};
  }

 private:
  CREMA_FORMULA float Position(int32_t i) const { return ::fmaf(static_cast<float>(i) + 0.5f, step, begin); }

  // At least the points between two positions, of the first `count`.
  CREMA_FORMULA Range Around(float from, float to, int32_t count) const {
    const auto most = static_cast<float>(count);
    return {Clip(std::floor((from - begin) / step - 0.5f) - 1.0f, most),
            Smaller(Clip(std::ceil((to - begin) / step - 0.5f) + 2.0f, most), count)};
  }
  CREMA_FORMULA static int32_t Clip(float x, float most) {
    x = x < most ? x : most;
    return static_cast<int32_t>(x > 0.0f ? x : 0.0f);
  }
};

struct Region {
  int64_t image;
  Axis rows, columns;

  Region() = default;
  CREMA_FORMULA Region(const RoiAlignProblem& p, const float* numbers)
      : image(roi_pooling::ImageOf(p.grid, numbers)),
        rows(numbers[2], numbers[4], numbers[0] != kNoRegion, p.grid.scale, p.grid.pooled_height, p.points,
             p.grid.height),
        columns(numbers[1], numbers[3], numbers[0] != kNoRegion, p.grid.scale, p.grid.pooled_width, p.points,
                p.grid.width) {}

  // What a point counts in its cell.
  CREMA_FORMULA float share() const {
    return 1.0f / (static_cast<float>(rows.points) * static_cast<float>(columns.points));
  }
};

}  // namespace crema::roi_align

#endif  // CREMA_OPS_SAMPLING_ROI_ALIGN_FORMULAS_H_
