#include "layers/region_objects.h"

#include <cmath>

#include "base/number_text.h"
#include "ops/detection/region_targets_formulas.h"
#include "ops/operations.h"

namespace crema {

void RegionObjectCheck::Setup(const LayerSetup& setup, int bottom, int64_t classes) {
  const Shape& shape = setup.bottom_shape(bottom);
  bottom_ = bottom;
  any_class_ = classes == 0;
  name_ = setup.param().bottom(bottom);
  const int axes = shape.axes();
  if ((axes != 2 && axes != 3) || shape[axes - 1] != kRegionObjectNumbers || shape.count() == 0) {
    setup.Fail("bottom", "\"" + name_ + "\" is " + shape.ToString() +
                             ", but the objects are images x rows x 5, or of one image rows x 5 (x1, y1, x2, y2, "
                             "class), as AnnotatedData gives them as the last of three tops");
  }
  objects_.images = axes == 3 ? shape[0] : 1;
  objects_.rows = shape[axes - 2];
  if (!any_class_) objects_.classes = classes;
}

void RegionObjectCheck::Run(const LayerRun& run) const {
  const float* values = run.bottoms[bottom_].f32();
  const int64_t bad = run.ops->FindBadRegionObject(objects_, values);
  if (bad >= 0) Refuse(bad, values[bad]);
}

void RegionObjectCheck::Refuse(int64_t position, float value) const {
  static constexpr const char* kNames[] = {"x1", "y1", "x2", "y2"};
  const int64_t number = position % kRegionObjectNumbers, row = position / kRegionObjectNumbers % objects_.rows;
  const int64_t image = position / kRegionObjectNumbers / objects_.rows;
  std::string message = "row " + std::to_string(row) + " of \"" + name_ + "\" (image " + std::to_string(image) +
                        ") has " + (number < 4 ? kNames[number] : "class") + " = " + FormatNumber(value, "%.9g") + ", ";
  if (number < 4) {
    const bool near = number < 2 || !(std::fabs(value) <= region_targets::kFarthest);
    message += near ? "but corners lie in pixels of the image; correct it"
                    : "but the far corner is not before the near one; correct it";
  } else if (value != std::floor(value)) {
    message += "but classes are whole numbers; correct it";
  } else if (any_class_ || value < 1) {
    message += "but objects have classes from 1 on, as 0 is the background; correct it, rows that are no object are -1";
  } else {
    message += "but num_classes " + std::to_string(objects_.classes) + " gives classes 1 to " +
               std::to_string(objects_.classes - 1) + "; correct it or num_classes";
  }
  throw BadItem(bottom_, image, message);
}

}  // namespace crema
