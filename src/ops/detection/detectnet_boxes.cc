#include "ops/detection/detectnet_boxes.h"

#include "base/parallel.h"
#include "ops/detection/detectnet_boxes_formulas.h"

namespace crema {

size_t DetectNetGroupWorkspace(const DetectNetGrid& grid) { return detectnet::GroupScratch::Bytes(grid); }

void GroupDetectNetBoxes(const DetectNetGrid& grid, const DetectNetGrouping& grouping, const float* coverage,
                         const float* boxes, float* objects, std::byte* workspace) {
  ParallelFor(grid.images, 1, [&](int64_t begin, int64_t end) {
    for (int64_t image = begin; image < end; ++image) {
      detectnet::GroupImage(grid, grouping, coverage, boxes, image, detectnet::Alone(),
                            detectnet::GroupScratch::In(grid, image, workspace),
                            objects + image * grid.objects * DetectNetGrid::kNumbers);
    }
  });
}

void ListDetectNetBoxes(const DetectNetGrid& grid, const float* coverage, const float* boxes, float* objects,
                        std::byte* workspace) {
  ParallelFor(grid.images, 1, [&](int64_t begin, int64_t end) {
    for (int64_t image = begin; image < end; ++image) {
      detectnet::ListImage(grid, coverage, boxes, image, detectnet::Alone(),
                           detectnet::GroupScratch::In(grid, image, workspace),
                           objects + image * grid.objects * DetectNetGrid::kNumbers);
    }
  });
}

size_t DetectNetScoreWorkspace(const DetectNetScoring& scoring) { return detectnet::KindBytes(scoring); }

void ScoreDetectNetBoxes(const DetectNetScoring& scoring, const float* truths, const float* found, float* scored,
                         std::byte* workspace) {
  constexpr int64_t kNumbers = DetectNetGrid::kNumbers;
  ParallelFor(scoring.images, 1, [&](int64_t begin, int64_t end) {
    for (int64_t image = begin; image < end; ++image) {
      detectnet::ScoreImage(scoring, truths + image * scoring.truths * kNumbers,
                            found + image * scoring.found * kNumbers, scored + image * scoring.rows() * kNumbers,
                            reinterpret_cast<int32_t*>(workspace) + image * scoring.rows());
    }
  });
}

void MeasureDetectNetBoxes(int64_t rows, const float* scored, const DetectNetMeasures& measures) {
  int64_t counts[4] = {0, 0, 0, 0};
  for (int64_t i = 0; i < rows; ++i) {
    for (int kind = detectnet::kRight; kind <= detectnet::kMissed; ++kind) {
      counts[kind] += scored[i * DetectNetGrid::kNumbers + 4] == static_cast<float>(kind);
    }
  }
  detectnet::WriteMeasures(counts[detectnet::kRight], counts[detectnet::kWrong], counts[detectnet::kMissed], measures);
}

}  // namespace crema
