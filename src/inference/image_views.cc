#include "inference/image_views.h"

#include <algorithm>

#include "base/check.h"

namespace crema {

bool IsViewCount(int views) { return views == 1 || views == 2 || views == 5 || views == 10; }

void CutViews(const float* image, const ImageSize& size, const ImageSize& view, int views, float* out) {
  CREMA_CHECK(IsViewCount(views) && size.channels == view.channels && size.height >= view.height &&
              size.width >= view.width);
  const int below = size.height - view.height, beside = size.width - view.width;
  const struct { int top, left; } crops[] = {{below / 2, beside / 2}, {0, 0}, {0, beside}, {below, 0}, {below, beside}};
  const bool mirrors = views % 2 == 0;
  const int count = mirrors ? views / 2 : views;
  for (int v = 0; v < views; ++v) {
    const auto& crop = crops[v % count];
    for (int row = 0; row < view.channels * view.height; ++row, out += view.width) {
      const int channel = row / view.height, y = row % view.height;
      const float* from = image + (int64_t{channel} * size.height + crop.top + y) * size.width + crop.left;
      if (v < count) {
        std::copy_n(from, view.width, out);
      } else {
        std::reverse_copy(from, from + view.width, out);
      }
    }
  }
}

void AverageViews(const float* rows, int views, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) {
    double sum = 0;
    for (int v = 0; v < views; ++v) sum += rows[v * count + i];
    out[i] = static_cast<float>(sum / views);
  }
}

}  // namespace crema
