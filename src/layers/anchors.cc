#include "layers/anchors.h"

#include <cmath>

#include "base/number_text.h"
#include "layers/field_range.h"

namespace crema {

Anchors MakeAnchors(const LayerSetup& setup, const AnchorFields& fields, int64_t height, int64_t width) {
  ReadInRange(setup, fields.block + ".feat_stride", fields.feat_stride, {1, 65536},
              "it is how many pixels of the image one of the feature map stands for");
  ReadInRange(setup, fields.block + ".base_size", fields.base_size, {1, 65536},
              "it is the side, in pixels, of the square that anchors are made of");
  for (const float ratio : fields.ratios) {
    ReadInRange(setup, fields.block + ".ratio", ratio, kPositive, "it is an anchor's height by its width");
  }
  for (const float scale : fields.scales) {
    ReadInRange(setup, fields.block + ".scale", scale, kPositive, "it is an anchor's side, in base_size");
  }
  const std::vector<float> ratios = fields.ratios.empty() ? std::vector<float>{0.5f, 1, 2} : fields.ratios;
  const std::vector<float> scales = fields.scales.empty() ? std::vector<float>{8, 16, 32} : fields.scales;
  if (ratios.size() * scales.size() > Anchors::kMostShapes) {
    setup.Fail(fields.block, std::to_string(ratios.size()) + " ratios of " + std::to_string(scales.size()) +
                                 " scales are too many; there can be " + std::to_string(Anchors::kMostShapes) +
                                 " anchors at a pixel");
  }
  Anchors made;
  made.height = height;
  made.width = width;
  made.stride = static_cast<float>(fields.feat_stride);
  made.shapes = 0;
  const double base = fields.base_size, centre = base / 2;
  for (const float ratio : ratios) {
    const double columns = std::nearbyint(std::sqrt(base * base / ratio)), rows = std::nearbyint(columns * ratio);
    if (columns < 1 || rows < 1) {
      setup.Fail(fields.block + ".ratio", "ratio " + FormatNumber(ratio) + " makes anchors of less than a pixel of a " +
                                              "square of base_size " + std::to_string(fields.base_size) +
                                              "; take one nearer to 1");
    }
    for (const float scale : scales) {
      const double x = columns * scale / 2, y = rows * scale / 2;
      made.boxes[made.shapes++] = {static_cast<float>(centre - x), static_cast<float>(centre - y),
                                   static_cast<float>(centre + x), static_cast<float>(centre + y)};
    }
  }
  return made;
}

void CheckImageInfo(const LayerSetup& setup, int i, int64_t images) {
  const Shape& shape = setup.bottom_shape(i);
  if (shape.axes() >= 1 && shape[0] == images && shape.count() == images * ScaledImage::kNumbers) return;
  setup.Fail("bottom", "\"" + setup.param().bottom(i) + "\" is " + shape.ToString() + ", but im_info is " +
                           std::to_string(images) +
                           " x 3: height and width of each image in pixels, and what it was scaled by");
}

}  // namespace crema
