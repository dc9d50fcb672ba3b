#include "ops/detection/yolo.h"

#include <algorithm>

#include "base/parallel.h"
#include "ops/detection/yolo_formulas.h"

namespace crema {

namespace {

// Rows that hold all objects of an image; those of others may be among them.
struct Rows {
  int64_t begin = 0, end = 0;
};

Rows RowsOf(const YoloLoss& loss, const float* objects, int64_t image) {
  Rows rows{loss.objects, 0};
  for (int64_t r = 0; r < loss.objects; ++r) {
    if (objects[r * ObjectRows::kNumbers] != static_cast<float>(image)) continue;
    rows.begin = std::min(rows.begin, r);
    rows.end = r + 1;
  }
  return rows;
}

constexpr int64_t kGrain = 256;  // predictions that are worth a thread

}  // namespace

void LearnYolo(const YoloLoss& loss, uint64_t pass, const float* predictions, const float* objects, float* gradient,
               float* losses) {
  const YoloGrid& grid = loss.grid;
  const int64_t blocks = grid.images * grid.anchors, cells = grid.cells();
  ParallelFor(blocks, std::max<int64_t>(1, kGrain / cells), [&](int64_t begin, int64_t end) {
    std::fill(gradient + begin * grid.numbers() * cells, gradient + end * grid.numbers() * cells, 0.0f);
    for (int64_t block = begin; block < end; ++block) {
      const Rows rows = RowsOf(loss, objects, block / grid.anchors);
      for (int64_t i = block * cells; i < (block + 1) * cells; ++i) {
        losses[i] = yolo::Learn(loss, pass, predictions, objects, rows.begin, rows.end, i, gradient);
      }
    }
  });
}

void DecodeYolo(const YoloGrid& grid, const float* predictions, const YoloBoxes& boxes) {
  ParallelFor(grid.images * grid.of_image(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) yolo::Decode(grid, predictions, i, boxes);
  });
}

}  // namespace crema
