#include "layers/anchors.h"

#include <cmath>

#include "base/number_text.h"

namespace crema {

namespace {

void CheckPositive(const LayerSetup& setup, const AnchorFields& fields, const std::string& field,
                   const std::vector<float>& values, const std::string& meaning) {
  for (const float value : values) {
    if (value > 0 && std::isfinite(value)) continue;
    setup.Fail(fields.block + "." + field,
               field + " is " + FormatNumber(value) + " but must be above 0 and finite; it is " + meaning);
  }
}

}  // namespace

Anchors MakeAnchors(const LayerSetup& setup, const AnchorFields& fields, int64_t height, int64_t width) {
  const auto check = [&](const std::string& field, uint32_t value, const std::string& meaning) {
    if (value >= 1 && value <= 1 << 16) return;
    setup.Fail(fields.block + "." + field,
               field + " is " + std::to_string(value) + " but must be in [1, 65536]; it is " + meaning);
  };
  check("feat_stride", fields.feat_stride, "how many pixels of the image one of the feature map stands for");
  check("base_size", fields.base_size, "the side, in pixels, of the square that anchors are made of");
  CheckPositive(setup, fields, "ratio", fields.ratios, "an anchor's height by its width");
  CheckPositive(setup, fields, "scale", fields.scales, "an anchor's side, in base_size");
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
