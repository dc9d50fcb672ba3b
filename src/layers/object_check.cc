#include "layers/object_check.h"

#include <cmath>

#include "base/number_text.h"
#include "ops/operations.h"

namespace crema {

int64_t ExpectRows(const LayerSetup& setup, int bottom, int64_t width, const std::string& what,
                   const std::string& maker) {
  const Shape& shape = setup.bottom_shape(bottom);
  if (shape.axes() == 4 && shape[0] == 1 && shape[1] == 1 && shape[3] == width) return shape[2];
  setup.Fail("bottom", "\"" + setup.param().bottom(bottom) + "\" is " + shape.ToString() + ", but must be " + what +
                           ", 1 x 1 x rows x " + std::to_string(width) + ", as " + maker + " gives them");
}

int64_t TrueObjectRows(const LayerSetup& setup, int bottom) {
  return ExpectRows(setup, bottom, ObjectRows::kNumbers, "the true objects", "AnnotatedData");
}

void ObjectCheck::Setup(const LayerSetup& setup, int bottom, const ObjectRows& objects, const std::string& without) {
  bottom_ = bottom;
  objects_ = objects;
  name_ = setup.param().bottom(bottom);
  without_ = without;
}

void ObjectCheck::Run(const LayerRun& run) const {
  const float* values = run.bottoms[bottom_].f32();
  const int64_t bad = run.ops->FindBadObject(objects_, values);
  if (bad >= 0) Refuse(bad, values[bad % (objects_.rows * ObjectRows::kNumbers)]);
}

void ObjectCheck::Refuse(int64_t position, float value) const {
  static constexpr const char* kNames[] = {"", "", "", "xmin", "ymin", "xmax", "ymax"};
  const int64_t numbers = objects_.rows * ObjectRows::kNumbers, image = position / numbers;
  const int64_t number = position % ObjectRows::kNumbers;
  const std::string text = FormatNumber(value, "%.9g"), classes = std::to_string(objects_.classes);
  const std::string which =
      "row " + std::to_string(position % numbers / ObjectRows::kNumbers) + " of \"" + name_ + "\" ";
  if (number == 0) {
    const bool whole = object_rows::IsNumberOf(value, ObjectRows::kAnyImage);
    std::string message = which + "is of image " + text + ", but ";
    if (objects_.images == ObjectRows::kAnyImage) {
      message += "images are numbered from 0; correct it, rows that are no object have -1 there";
    } else {
      message += "there are images 0 to " + std::to_string(objects_.images - 1) +
                 "; correct it, rows that are no object have -1 there, or let predictions and objects be of batches of "
                 "one size";
    }
    throw BadItem(bottom_, whole ? static_cast<int64_t>(value) : -1, message);
  }
  std::string message = which + "(image " + std::to_string(image) + ") has ";
  if (number > 1) throw BadItem(bottom_, image, message + kNames[number] + " = " + text + "; give finite numbers");
  message += "label " + text + ", ";
  if (value != std::floor(value)) {
    message += "but labels of a class are whole numbers";
  } else if (value == static_cast<float>(objects_.background) && without_.empty()) {
    message += "which is background_label_id, the class that is no object; correct the label or background_label_id";
  } else if (objects_.classes == ObjectRows::kAnyClass) {
    message += "but objects have labels from 1 on; correct it";
  } else if (!without_.empty()) {
    const std::string most = std::to_string(objects_.classes - 1);
    message += "but " + without_ + " " + most + " gives labels 1 to " + most + "; correct the label or " + without_;
  } else {
    message += "but num_classes " + classes + " gives labels 0 to " + std::to_string(objects_.classes - 1) +
               "; correct the label or num_classes";
  }
  throw BadItem(bottom_, image, message);
}

}  // namespace crema
