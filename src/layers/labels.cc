#include "layers/labels.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace crema {

void CheckLabelShape(const LayerSetup& setup, const ClassAxis& axis) {
  const Shape &scores = setup.bottom_shape(0), &labels = setup.bottom_shape(1);
  if (labels.count() == axis.positions()) return;
  setup.Fail("bottom", "\"" + setup.param().bottom(0) + "\" is " + scores.ToString() + ", which takes " +
                           std::to_string(axis.positions()) + " labels (every axis but the class axis counts), but \"" +
                           setup.param().bottom(1) + "\" is " + labels.ToString() + " and holds " +
                           std::to_string(labels.count()) +
                           "; give one label each, or set the axis that runs over the classes");
}

void CheckLabels(const Tensor& labels, const ClassAxis& axis, const LabelRule& rule, const std::string& scores,
                 const std::string& param) {
  const int64_t bad = FindBadLabel(rule, axis.classes, labels.count(), labels.f32());
  if (bad < 0) return;
  const float value = labels.f32()[bad];
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", static_cast<double>(value));
  std::string message = "label " + std::string(text) + " is ";
  if (value != std::floor(value)) {
    message += "no whole number, but \"" + scores + "\" has " + std::to_string(axis.classes) +
               " classes numbered from 0 to " + std::to_string(axis.classes - 1) + "; labels of a class are integers";
  } else {
    message += "outside the " + std::to_string(axis.classes) + " classes (0 to " + std::to_string(axis.classes - 1) +
               ") of \"" + scores + "\"; correct the label";
    if (value >= 0 && value < 1e6f) {
      message += ", give \"" + scores + "\" at least " + std::to_string(static_cast<int64_t>(value) + 1) + " outputs";
    }
    if (std::fabs(value) < 1e9f) message += ", or leave it out with " + param + " { ignore_label: " + text + " }";
  }
  const int64_t items = labels.shape().axes() > 0 ? labels.shape()[0] : 1;
  throw BadItem(1, bad / std::max<int64_t>(1, labels.count() / items), message);
}

}  // namespace crema
