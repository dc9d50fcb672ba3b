#include "cuda/arrays/lanes.h"
#include "cuda/device/faults.h"
#include "cuda/operations.h"
#include "ops/detection/detectnet_transform_formulas.h"

namespace crema::cuda {

namespace {

struct ChangePixel {
  DetectNetTransform p;
  const DetectNetChange* changes;
  const float *mean, *x;
  float* y;
  __device__ void operator()(int64_t i) const {
    int64_t image = i;
    const int64_t place = SplitOff(&image, p.plane()), first = image * 3 * p.plane() + place;
    detectnet::Pixel pixel;
    for (int c = 0; c < 3; ++c) pixel.values[c] = x[first + c * p.plane()];
    if (changes[image].recolors) pixel = detectnet::Recolored(changes[image], pixel);
    for (int c = 0; c < 3; ++c) {
      y[first + c * p.plane()] = pixel.values[c] - (mean ? mean[c * p.plane() + place] : p.mean[c]);
    }
  }
};

struct PlacePixel {
  DetectNetTransform p;
  const DetectNetChange* changes;
  const float* x;
  float* y;
  __device__ void operator()(int64_t i) const {
    int64_t image = i;
    const int64_t place = SplitOff(&image, p.out_plane());
    int64_t row = place;
    const int64_t column = SplitOff(&row, p.out_width);
    const detectnet::Pixel pixel = detectnet::PlacedPixel(p, changes[image], x + image * 3 * p.plane(), row, column);
    for (int c = 0; c < 3; ++c) y[(image * 3 + c) * p.out_plane() + place] = pixel.values[c];
  }
};

// A cell is the last object's that covers it.
struct LabelCell {
  DetectNetTransform p;
  DetectNetLabels l;
  const DetectNetChange* changes;
  const int32_t* place_of;
  const float* objects;
  float* y;
  __device__ void operator()(int64_t i) const {
    int64_t image = i;
    const int64_t cell = SplitOff(&image, l.cells()), row = cell / l.width, column = cell % l.width;
    const float* const rows = objects + image * l.rows * DetectNetLabels::kNumbers;
    float* const grid = y + image * l.channels() * l.cells();
    const float count = rows[0];
    if (count >= 1.0f && count < static_cast<float>(l.rows)) {
      for (auto k = static_cast<int64_t>(count); k >= 1; --k) {
        const float* const object_row = rows + k * DetectNetLabels::kNumbers;
        if (!(object_row[5] >= 0.0f)) continue;  // of which the host learns when the pass is over
        const detectnet::GridObject object = detectnet::ObjectOf(p, l, changes[image], place_of, object_row);
        if (object.place < 0 || !detectnet::Covers(l, object, row, column)) continue;
        return detectnet::WriteCell(l, object, row, column, grid);
      }
    }
    for (int64_t c = 0; c < l.channels(); ++c) grid[c * l.cells() + cell] = 0.0f;
  }
};

struct IsBadObject {
  DetectNetLabels l;
  const float* objects;
  __device__ bool operator()(float, int64_t position) const {
    const int64_t of_image = l.rows * DetectNetLabels::kNumbers, at = position % of_image;
    return detectnet::IsBad(l, objects + position / of_image * of_image, at / DetectNetLabels::kNumbers,
                            at % DetectNetLabels::kNumbers);
  }
};

}  // namespace

void CudaOperations::DrawDetectNetChanges(const DetectNetTransform& problem, const RandomStream& random,
                                          DetectNetChange* changes) {
  const PassState* state = gpu_.state();
  const uint64_t seed = random.seed();
  const auto drawer = static_cast<uint32_t>(random.stream() >> 40);
  ForEach(queue(), problem.images, [=] __device__(int64_t image) {
    changes[image] = detectnet::DrawChange(problem, RandomStream(seed, StreamId(drawer, state->pass)), image);
  });
}

void CudaOperations::ChangeDetectNetColors(const DetectNetTransform& problem, const DetectNetChange* changes,
                                           const float* mean, const float* x, float* y) {
  ForEach(queue(), problem.images * problem.plane(), ChangePixel{problem, changes, mean, x, y});
}

void CudaOperations::PlaceDetectNetImages(const DetectNetTransform& problem, const DetectNetChange* changes,
                                          const float* x, float* y) {
  ForEach(queue(), problem.images * problem.out_plane(), PlacePixel{problem, changes, x, y});
}

void CudaOperations::MakeDetectNetLabels(const DetectNetTransform& problem, const DetectNetLabels& labels,
                                         const DetectNetChange* changes, const int32_t* place_of, const float* objects,
                                         float* y) {
  ForEach(queue(), problem.images * labels.cells(), LabelCell{problem, labels, changes, place_of, objects, y});
}

int64_t CudaOperations::FindBadDetectNetObject(const DetectNetTransform& problem, const DetectNetLabels& labels,
                                               const float* objects) {
  ReportFirst(queue(), gpu_.state(), gpu_.unit(), problem.images * labels.rows * DetectNetLabels::kNumbers, objects,
              IsBadObject{labels, objects});
  return -1;
}

}  // namespace crema::cuda
