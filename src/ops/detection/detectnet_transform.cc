#include "ops/detection/detectnet_transform.h"

#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "ops/detection/detectnet_transform_formulas.h"

namespace crema {

namespace {

constexpr int64_t kRowGrain = 8;  // lines of an image that are worth a thread

}  // namespace

void DrawDetectNetChanges(const DetectNetTransform& problem, const RandomStream& random, DetectNetChange* changes) {
  for (int64_t image = 0; image < problem.images; ++image) {
    changes[image] = detectnet::DrawChange(problem, random, image);
  }
}

void ChangeDetectNetColors(const DetectNetTransform& problem, const DetectNetChange* changes, const float* mean,
                           const float* x, float* y) {
  const DetectNetTransform& p = problem;
  ParallelFor(p.images * p.height, kRowGrain, [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      const int64_t image = line / p.height, row = line % p.height * p.width, first = image * 3 * p.plane() + row;
      const DetectNetChange& change = changes[image];
      for (int64_t i = 0; i < p.width; ++i) {
        detectnet::Pixel pixel;
        for (int c = 0; c < 3; ++c) pixel.values[c] = x[first + c * p.plane() + i];
        if (change.recolors) pixel = detectnet::Recolored(change, pixel);
        for (int c = 0; c < 3; ++c) {
          y[first + c * p.plane() + i] = pixel.values[c] - (mean ? mean[c * p.plane() + row + i] : p.mean[c]);
        }
      }
    }
  });
}

void PlaceDetectNetImages(const DetectNetTransform& problem, const DetectNetChange* changes, const float* x, float* y) {
  const DetectNetTransform& p = problem;
  ParallelFor(p.images * p.out_height, kRowGrain, [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      const int64_t image = line / p.out_height, row = line % p.out_height;
      float* const to = y + image * 3 * p.out_plane() + row * p.out_width;
      for (int64_t i = 0; i < p.out_width; ++i) {
        const detectnet::Pixel pixel = detectnet::PlacedPixel(p, changes[image], x + image * 3 * p.plane(), row, i);
        for (int c = 0; c < 3; ++c) to[c * p.out_plane() + i] = pixel.values[c];
      }
    }
  });
}

void MakeDetectNetLabels(const DetectNetTransform& problem, const DetectNetLabels& labels,
                         const DetectNetChange* changes, const int32_t* place_of, const float* objects, float* y) {
  const DetectNetLabels& l = labels;
  ParallelFor(problem.images, 1, [&](int64_t begin, int64_t end) {
    for (int64_t image = begin; image < end; ++image) {
      const float* const rows = objects + image * l.rows * DetectNetLabels::kNumbers;
      float* const grid = y + image * l.channels() * l.cells();
      std::fill_n(grid, l.channels() * l.cells(), 0.0f);
      for (int64_t i = 1; i <= static_cast<int64_t>(rows[0]); ++i) {
        const detectnet::GridObject object =
            detectnet::ObjectOf(problem, l, changes[image], place_of, rows + i * DetectNetLabels::kNumbers);
        if (object.place < 0) continue;
        const auto cell = [&](float place, int64_t extent) {
          return static_cast<int64_t>(std::clamp(std::floor(place / l.stride), 0.0f, static_cast<float>(extent)));
        };
        const int64_t last_row = std::min(cell(object.covered.lower, l.height), l.height - 1);
        const int64_t last_column = std::min(cell(object.covered.right, l.width), l.width - 1);
        for (int64_t row = cell(object.covered.upper, l.height); row <= last_row; ++row) {
          for (int64_t column = cell(object.covered.left, l.width); column <= last_column; ++column) {
            if (detectnet::Covers(l, object, row, column)) detectnet::WriteCell(l, object, row, column, grid);
          }
        }
      }
    }
  });
}

int64_t FindBadDetectNetObject(const DetectNetTransform& problem, const DetectNetLabels& labels, const float* objects) {
  constexpr int64_t kNumbers = DetectNetLabels::kNumbers;
  const int64_t of_image = labels.rows * kNumbers;
  for (int64_t i = 0; i < problem.images * of_image; ++i) {
    const int64_t at = i % of_image;
    if (detectnet::IsBad(labels, objects + i / of_image * of_image, at / kNumbers, at % kNumbers)) return i;
  }
  return -1;
}

}  // namespace crema
