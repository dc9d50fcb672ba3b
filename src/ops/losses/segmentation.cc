#include "ops/losses/segmentation.h"

#include <algorithm>

#include "ops/losses/label_formulas.h"

namespace crema {

namespace {

constexpr int64_t kTile = 128;  // positions of one outer row that are worked on side by side

// The class that is told at each of `width` <= kTile neighbouring positions, whose classes lie `stride` apart; -1:
// none.
CREMA_MULTIVERSION void TellTile(int64_t width, int64_t classes, int64_t stride, const float* x, int32_t* told) {
  float highest[kTile];
#pragma omp simd
  for (int64_t i = 0; i < width; ++i) {
    highest[i] = classes == 1 ? 0.5f : x[i];
    told[i] = 0;
  }
  for (int64_t c = 0; c < classes; ++c, x += stride) {
    const auto own = static_cast<int32_t>(classes == 1 ? 1 : c);
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) {
      // A NaN stays what is highest, which no number is above.
      const bool above = x[i] > highest[i], none = x[i] != x[i];
      highest[i] = above || none ? x[i] : highest[i];
      told[i] = none ? -1 : above ? own : told[i];
    }
  }
}

}  // namespace

void CountPixels(const PixelCounting& counting, const float* scores, const float* label, const ClassPixels* before,
                 ClassPixels* after, std::byte* workspace) {
  const ClassAxis& axis = counting.axis;
  const int64_t classes = counting.classes();
  auto* const right = reinterpret_cast<uint64_t*>(workspace);
  uint64_t *const labelled = right + classes, *const told = labelled + classes;
  std::fill(right, told + classes, 0);
  int32_t classes_told[kTile];
  for (int64_t outer = 0; outer < axis.outer; ++outer) {
    for (int64_t inner = 0; inner < axis.inner; inner += kTile) {
      const int64_t width = std::min(kTile, axis.inner - inner);
      TellTile(width, axis.classes, axis.inner, scores + outer * axis.classes * axis.inner + inner, classes_told);
      for (int64_t i = 0; i < width; ++i) {
        const float own = label[outer * axis.inner + inner + i];
        if (labels::IsIgnored(counting.rule, own)) continue;
        ++labelled[static_cast<int64_t>(own)];
        if (classes_told[i] < 0) continue;
        ++told[classes_told[i]];
        right[classes_told[i]] += classes_told[i] == static_cast<int64_t>(own);
      }
    }
  }
  for (int64_t c = 0; c < classes; ++c) {
    const ClassPixels* old = before ? before + c : nullptr;
    after[c] = {segmentation::Add(old ? &old->right : nullptr, right[c]),
                segmentation::Add(old ? &old->labelled : nullptr, labelled[c]),
                segmentation::Add(old ? &old->told : nullptr, told[c])};
  }
}

void MeasureSegmentation(int64_t classes, const ClassPixels* pixels, float* measures) {
  segmentation::MeasureAll(classes, pixels, measures);
}

void MeasureClass(const ClassPixels* pixels, float* measures) { segmentation::MeasureOne(*pixels, measures); }

}  // namespace crema
