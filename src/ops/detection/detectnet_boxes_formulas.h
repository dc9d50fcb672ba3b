// What ops/detection/detectnet_boxes.h does with the boxes of one image, for the CPU and for a block of a GPU's
// threads. A `Team` is who does it together: first() and step() share out a loop, Sync() lets all see what each wrote,
// and Sum() adds.
#ifndef CREMA_OPS_DETECTION_DETECTNET_BOXES_FORMULAS_H_
#define CREMA_OPS_DETECTION_DETECTNET_BOXES_FORMULAS_H_

#include <cmath>
#include <cstddef>

#include "ops/arrays/elementary_functions.h"
#include "ops/detection/detectnet_boxes.h"

namespace crema::detectnet {

// A thread that is alone.
struct Alone {
  CREMA_FORMULA int64_t first() const { return 0; }
  CREMA_FORMULA int64_t step() const { return 1; }
  CREMA_FORMULA void Sync() const {}
  CREMA_FORMULA int64_t Sum(int64_t value) const { return value; }
};

// In whole pixels.
struct alignas(16) Rectangle {
  int32_t x, y, width, height;
};

// Of one image, a number for each cell.
struct GroupScratch {
  Rectangle* boxes;  // of the cells that count, then in their place the means of groups
  Rectangle* means;
  int32_t *cells, *labels, *next, *sizes;

  static constexpr size_t kBytesOfCell = 2 * sizeof(Rectangle) + 4 * sizeof(int32_t);

  static size_t Bytes(const DetectNetGrid& grid) {
    return static_cast<size_t>(grid.images * grid.cells()) * kBytesOfCell;
  }
  CREMA_FORMULA static GroupScratch In(const DetectNetGrid& grid, int64_t image, std::byte* workspace) {
    const int64_t cells = grid.cells();
    GroupScratch scratch;
    scratch.boxes = reinterpret_cast<Rectangle*>(workspace + image * cells * static_cast<int64_t>(kBytesOfCell));
    scratch.means = scratch.boxes + cells;
    scratch.cells = reinterpret_cast<int32_t*>(scratch.means + cells);
    scratch.labels = scratch.cells + cells;
    scratch.next = scratch.labels + cells;
    scratch.sizes = scratch.next + cells;
    return scratch;
  }
};

struct Sides {
  float left, upper, right, lower;
};

CREMA_FORMULA Sides SidesAt(const DetectNetGrid& grid, const float* boxes, int64_t image, int64_t cell) {
  const int64_t row = cell / grid.columns, column = cell % grid.columns, plane = grid.height * grid.width;
  const float* const at = boxes + image * 4 * plane + row * grid.width + column;
  const float x = static_cast<float>(column) * grid.stride, y = static_cast<float>(row) * grid.stride;
  return {at[0] + x, at[plane] + y, at[2 * plane] + x, at[3 * plane] + y};
}

CREMA_FORMULA float CoverageAt(const DetectNetGrid& grid, const float* coverage, int64_t image, int64_t cell) {
  const int64_t row = cell / grid.columns, column = cell % grid.columns;
  return coverage[((image * grid.classes + grid.which) * grid.height + row) * grid.width + column];
}

// Boxes of a net that has gone astray are nowhere.
CREMA_FORMULA bool IsSomewhere(const Sides& sides) {
  constexpr float kFarthest = 16777216.0f;
  return fabsf(sides.left) <= kFarthest && fabsf(sides.upper) <= kFarthest && fabsf(sides.right) <= kFarthest &&
         fabsf(sides.lower) <= kFarthest;
}

// Lists the cells for which counts(cell) holds, in order; returns how many there are. Uses scratch.next.
CREMA_HOST_DEVICE_TEMPLATE
template <typename Team, typename Counts>
CREMA_HOST_DEVICE inline int64_t ListCells(const DetectNetGrid& grid, const Team& team, const Counts& counts,
                                           const GroupScratch& scratch) {
  int64_t count = 0;
  for (int64_t cell = team.first(); cell < grid.cells(); cell += team.step()) {
    scratch.next[cell] = counts(cell);
    count += scratch.next[cell];
  }
  count = team.Sum(count);
  team.Sync();
  // Each thread numbers the cells of a stretch of its own.
  const int64_t stretch = (grid.cells() + team.step() - 1) / team.step();
  const int64_t begin = team.first() * stretch, end = begin + stretch < grid.cells() ? begin + stretch : grid.cells();
  int64_t place = 0;
  for (int64_t cell = 0; cell < begin && cell < grid.cells(); ++cell) place += scratch.next[cell];
  for (int64_t cell = begin; cell < end; ++cell) {
    if (scratch.next[cell]) scratch.cells[place++] = static_cast<int32_t>(cell);
  }
  team.Sync();
  return count;
}

CREMA_FORMULA int32_t Apart(int32_t a, int32_t b) { return a > b ? a - b : b - a; }

CREMA_FORMULA bool BelongTogether(const Rectangle& a, const Rectangle& b, float similarity) {
  const int32_t width = a.width < b.width ? a.width : b.width, height = a.height < b.height ? a.height : b.height;
  const double most = static_cast<double>(similarity) * (static_cast<double>(width) + height) * 0.5;
  return Apart(a.x, b.x) <= most && Apart(a.y, b.y) <= most && Apart(a.x + a.width, b.x + b.width) <= most &&
         Apart(a.y + a.height, b.y + b.height) <= most;
}

// Gives all boxes that belong together the number of their first one.
CREMA_HOST_DEVICE_TEMPLATE
template <typename Team>
CREMA_HOST_DEVICE inline void LabelGroups(int64_t count, float similarity, const Team& team, GroupScratch* scratch) {
  for (int64_t i = team.first(); i < count; i += team.step()) scratch->labels[i] = static_cast<int32_t>(i);
  team.Sync();
  for (int64_t changed = 1; changed > 0;) {
    changed = 0;
    for (int64_t i = team.first(); i < count; i += team.step()) {
      int32_t label = scratch->labels[scratch->labels[i]];
      for (int64_t k = 0; k < count; ++k) {
        const int32_t other = scratch->labels[k];
        if (other < label && BelongTogether(scratch->boxes[i], scratch->boxes[k], similarity)) label = other;
      }
      scratch->next[i] = label;
      changed += label != scratch->labels[i];
    }
    changed = team.Sum(changed);
    team.Sync();
    int32_t* const swapped = scratch->labels;
    scratch->labels = scratch->next;
    scratch->next = swapped;
  }
}

CREMA_FORMULA int32_t Mean(int64_t sum, int64_t count) {
  return static_cast<int32_t>(rint(static_cast<double>(sum) / static_cast<double>(count)));
}

// The size of each group at the place of its first box, 0 elsewhere, and there the mean of its boxes.
CREMA_HOST_DEVICE_TEMPLATE
template <typename Team>
CREMA_HOST_DEVICE inline void AverageGroups(int64_t count, const Team& team, const GroupScratch& scratch) {
  for (int64_t i = team.first(); i < count; i += team.step()) {
    scratch.sizes[i] = 0;
    if (scratch.labels[i] != i) continue;
    int64_t size = 0, x = 0, y = 0, width = 0, height = 0;
    for (int64_t k = i; k < count; ++k) {
      if (scratch.labels[k] != i) continue;
      const Rectangle& box = scratch.boxes[k];
      ++size;
      x += box.x;
      y += box.y;
      width += box.width;
      height += box.height;
    }
    scratch.sizes[i] = static_cast<int32_t>(size);
    scratch.means[i] = {Mean(x, size), Mean(y, size), Mean(width, size), Mean(height, size)};
  }
  team.Sync();
}

// Whether a group's mean lies within another's, to a share of that one's sides, which has more boxes.
CREMA_FORMULA bool LiesWithin(const Rectangle& a, int32_t size, const Rectangle& b, int32_t other, float similarity) {
  const auto more_x = static_cast<int32_t>(rint(static_cast<double>(b.width) * similarity));
  const auto more_y = static_cast<int32_t>(rint(static_cast<double>(b.height) * similarity));
  const int32_t limit = size > 3 ? size : 3;
  return a.x >= b.x - more_x && a.y >= b.y - more_y && a.x + a.width <= b.x + b.width + more_x &&
         a.y + a.height <= b.y + b.height + more_y && (other > limit || size < 3);
}

// Of groups i and k, which comes first where not all have room.
CREMA_FORMULA bool HasMore(const int32_t* sizes, int64_t i, int64_t k) {
  return sizes[i] != sizes[k] ? sizes[i] > sizes[k] : i < k;
}

// The groups that are objects, into scratch.next: 1 where one begins that is.
CREMA_HOST_DEVICE_TEMPLATE
template <typename Team>
CREMA_HOST_DEVICE inline void ChooseGroups(const DetectNetGrid& grid, const DetectNetGrouping& grouping, int64_t count,
                                           const Team& team, const GroupScratch& scratch) {
  int64_t chosen = 0;
  for (int64_t i = team.first(); i < count; i += team.step()) {
    const int32_t size = scratch.sizes[i];
    bool is_object = size > grouping.least && scratch.means[i].height >= grouping.height;
    for (int64_t k = 0; is_object && grouping.least > 0 && k < count; ++k) {
      if (k == i || scratch.sizes[k] <= grouping.least) continue;
      is_object = !LiesWithin(scratch.means[i], size, scratch.means[k], scratch.sizes[k], grouping.similarity);
    }
    scratch.next[i] = is_object;
    chosen += is_object;
  }
  chosen = team.Sum(chosen);
  team.Sync();
  if (chosen <= grid.objects) return;
  for (int64_t i = team.first(); i < count; i += team.step()) {
    int64_t before = 0;
    for (int64_t k = 0; k < count; ++k) before += scratch.next[k] && HasMore(scratch.sizes, k, i);
    scratch.labels[i] = scratch.next[i] && before < grid.objects;
  }
  team.Sync();
  for (int64_t i = team.first(); i < count; i += team.step()) scratch.next[i] = scratch.labels[i];
  team.Sync();
}

// Writes row(i) of each of `count` for which scratch.next[i] is 1, in order, and rows of 0 behind.
CREMA_HOST_DEVICE_TEMPLATE
template <typename Team, typename Row>
CREMA_HOST_DEVICE inline void WriteRows(const DetectNetGrid& grid, int64_t count, const Team& team, const Row& row,
                                        const GroupScratch& scratch, float* objects) {
  constexpr int64_t kNumbers = DetectNetGrid::kNumbers;
  int64_t written = 0;
  for (int64_t i = team.first(); i < count; i += team.step()) {
    if (!scratch.next[i]) continue;
    int64_t place = 0;
    for (int64_t k = 0; k < i; ++k) place += scratch.next[k];
    row(i, objects + place * kNumbers);
    ++written;
  }
  written = team.Sum(written);
  for (int64_t i = written * kNumbers + team.first(); i < grid.objects * kNumbers; i += team.step()) objects[i] = 0.0f;
}

struct Covered {
  const DetectNetGrid& grid;
  const float *coverage, *boxes;
  int64_t image;
  float least;
  CREMA_FORMULA bool operator()(int64_t cell) const {
    return CoverageAt(grid, coverage, image, cell) >= least && IsSomewhere(SidesAt(grid, boxes, image, cell));
  }
};

struct GroupRow {
  const GroupScratch& scratch;
  CREMA_FORMULA void operator()(int64_t i, float* row) const {
    const Rectangle& mean = scratch.means[i];
    row[0] = static_cast<float>(mean.x);
    row[1] = static_cast<float>(mean.y);
    row[2] = static_cast<float>(mean.x + mean.width);
    row[3] = static_cast<float>(mean.y + mean.height);
    row[4] = static_cast<float>(log(static_cast<double>(scratch.sizes[i])));
  }
};

// Groups of one image; `objects` are its rows.
CREMA_HOST_DEVICE_TEMPLATE
template <typename Team>
CREMA_HOST_DEVICE inline void GroupImage(const DetectNetGrid& grid, const DetectNetGrouping& grouping,
                                         const float* coverage, const float* boxes, int64_t image, const Team& team,
                                         GroupScratch scratch, float* objects) {
  const int64_t count = ListCells(grid, team, Covered{grid, coverage, boxes, image, grouping.coverage}, scratch);
  for (int64_t i = team.first(); i < count; i += team.step()) {
    const Sides sides = SidesAt(grid, boxes, image, scratch.cells[i]);
    scratch.boxes[i] = {static_cast<int32_t>(rintf(sides.left)), static_cast<int32_t>(rintf(sides.upper)),
                        static_cast<int32_t>(rintf(sides.right - sides.left)),
                        static_cast<int32_t>(rintf(sides.lower - sides.upper))};
  }
  team.Sync();
  if (grouping.least > 0) {
    LabelGroups(count, grouping.similarity, team, &scratch);
  } else {
    for (int64_t i = team.first(); i < count; i += team.step()) scratch.labels[i] = static_cast<int32_t>(i);
    team.Sync();
  }
  AverageGroups(count, team, scratch);
  ChooseGroups(grid, grouping, count, team, scratch);
  WriteRows(grid, count, team, GroupRow{scratch}, scratch, objects);
}

CREMA_FORMULA bool AreSame(const Sides& a, const Sides& b) {
  constexpr float kMost = 1.0f / 64;
  return fabsf(a.left - b.left) < kMost && fabsf(a.upper - b.upper) < kMost && fabsf(a.right - b.right) < kMost &&
         fabsf(a.lower - b.lower) < kMost;
}

struct IsCovered {
  const DetectNetGrid& grid;
  const float* coverage;
  int64_t image;
  CREMA_FORMULA bool operator()(int64_t cell) const { return CoverageAt(grid, coverage, image, cell) > 0.0f; }
};

struct SidesRow {
  const DetectNetGrid& grid;
  const float* boxes;
  int64_t image;
  const GroupScratch& scratch;
  CREMA_FORMULA void operator()(int64_t i, float* row) const {
    const Sides sides = SidesAt(grid, boxes, image, scratch.cells[i]);
    row[0] = sides.left;
    row[1] = sides.upper;
    row[2] = sides.right;
    row[3] = sides.lower;
    row[4] = 0.0f;
  }
};

CREMA_HOST_DEVICE_TEMPLATE
template <typename Team>
CREMA_HOST_DEVICE inline void ListImage(const DetectNetGrid& grid, const float* coverage, const float* boxes,
                                        int64_t image, const Team& team, const GroupScratch& scratch, float* objects) {
  const int64_t count = ListCells(grid, team, IsCovered{grid, coverage, image}, scratch);
  for (int64_t i = team.first(); i < count; i += team.step()) {
    const Sides sides = SidesAt(grid, boxes, image, scratch.cells[i]);
    bool is_new = true;
    for (int64_t k = 0; is_new && k < i; ++k) is_new = !AreSame(sides, SidesAt(grid, boxes, image, scratch.cells[k]));
    scratch.next[i] = is_new;
  }
  team.Sync();
  WriteRows(grid, count, team, SidesRow{grid, boxes, image, scratch}, scratch, objects);
}

// --- What is right. ---

CREMA_FORMULA bool IsBox(const float* row) { return row[0] != 0 || row[1] != 0 || row[2] != 0 || row[3] != 0; }

CREMA_FORMULA float OverlapOf(const float* a, const float* b) {
  const float width = (a[2] < b[2] ? a[2] : b[2]) - (a[0] > b[0] ? a[0] : b[0]);
  const float height = (a[3] < b[3] ? a[3] : b[3]) - (a[1] > b[1] ? a[1] : b[1]);
  if (!(width > 0.0f && height > 0.0f)) return 0.0f;
  const float common = width * height;
  return common / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - common);
}

enum : int32_t { kNone = 0, kRight = 1, kWrong = 2, kMissed = 3 };

inline size_t KindBytes(const DetectNetScoring& scoring) {
  return static_cast<size_t>(scoring.images * scoring.rows()) * sizeof(int32_t);
}

// Of one image. `kinds`: a number for each of its rows, those that were found first.
CREMA_HOST_DEVICE inline void ScoreImage(const DetectNetScoring& scoring, const float* truths, const float* found,
                                         float* scored, int32_t* kinds) {
  constexpr int64_t kNumbers = DetectNetGrid::kNumbers;
  for (int64_t k = 0; k < scoring.found; ++k) kinds[k] = IsBox(found + k * kNumbers) ? kWrong : kNone;
  for (int64_t i = 0; i < scoring.truths; ++i) {
    const float* const truth = truths + i * kNumbers;
    int32_t* const kind = kinds + scoring.found + i;
    *kind = kNone;
    if (!IsBox(truth)) continue;
    *kind = kMissed;
    for (int64_t k = 0; k < scoring.found; ++k) {
      if (kinds[k] != kWrong || !(OverlapOf(found + k * kNumbers, truth) >= DetectNetScoring::kLeastOverlap)) continue;
      kinds[k] = kRight;
      *kind = kNone;
      break;
    }
  }
  int64_t rows = 0;
  for (int32_t kind = kRight; kind <= kMissed; ++kind) {
    for (int64_t k = 0; k < scoring.rows(); ++k) {
      if (kinds[k] != kind) continue;
      const float* const box = k < scoring.found ? found + k * kNumbers : truths + (k - scoring.found) * kNumbers;
      float* const row = scored + rows++ * kNumbers;
      for (int i = 0; i < 4; ++i) row[i] = box[i];
      row[4] = static_cast<float>(kind);
    }
  }
  for (int64_t i = rows * kNumbers; i < scoring.rows() * kNumbers; ++i) scored[i] = 0.0f;
}

CREMA_FORMULA float Percent(int64_t part, int64_t of) {
  return of > 0 ? 100.0f * static_cast<float>(part) / static_cast<float>(of) : 0.0f;
}

CREMA_FORMULA void WriteMeasures(int64_t right, int64_t wrong, int64_t missed, const DetectNetMeasures& measures) {
  const float precision = Percent(right, right + wrong), recall = Percent(right, right + missed);
  *measures.product = precision * recall / 100.0f;
  *measures.precision = precision;
  *measures.recall = recall;
}

}  // namespace crema::detectnet

#endif  // CREMA_OPS_DETECTION_DETECTNET_BOXES_FORMULAS_H_
