#include "layers/labels.h"

#include <algorithm>
#include <cmath>

#include "base/number_text.h"
#include "ops/operations.h"

namespace crema {

namespace {

void CheckLabelShape(const LayerSetup& setup, const ClassAxis& axis, bool has_axis) {
  const Shape &scores = setup.bottom_shape(0), &labels = setup.bottom_shape(1);
  if (scores.axes() == 0) {
    setup.Fail("bottom", "\"" + setup.param().bottom(0) +
                             "\" is a single number, but scores are wanted, one for each " +
                             "class of each item; give the top of the layer that makes them");
  }
  const bool of_as_many = has_axis || labels.axes() == 0 || labels[0] == scores[0];
  if (labels.count() == axis.positions() && of_as_many) return;
  if (labels == scores) {
    setup.Fail("bottom", setup.DescribeBottom(1) + " has the shape of \"" + setup.param().bottom(0) +
                             "\": a share of each class, as MixUp makes them and SoftmaxWithLoss takes them; " +
                             setup.param().type() + " takes one label for each place: give those that it was made of");
  }
  setup.Fail("bottom", "\"" + setup.param().bottom(0) + "\" is " + scores.ToString() + ", which takes " +
                           std::to_string(axis.positions()) + " labels (" +
                           (has_axis ? "every axis but the class axis counts" : "one for each item") + "), but \"" +
                           setup.param().bottom(1) + "\" is " + labels.ToString() + " and holds " +
                           std::to_string(labels.count()) + "; give one label each" +
                           (has_axis ? ", or set the axis that runs over the classes" : ""));
}

}  // namespace

void LabelCheck::Setup(const LayerSetup& setup, const ClassAxis& axis, const LabelRule& rule,
                       const std::string& param) {
  CheckLabelShape(setup, axis, !param.empty());
  const Shape& labels = setup.bottom_shape(1);
  classes_ = axis.classes;
  rule_ = rule;
  labels_of_item_ = std::max<int64_t>(1, labels.count() / (labels.axes() > 0 ? labels[0] : 1));
  scores_ = "\"" + setup.param().bottom(0) + "\"";
  param_ = param;
}

void LabelCheck::SetupOwnClasses(const LayerSetup& setup, int64_t items, int64_t classes, const std::string& field) {
  ClassAxis axis;
  axis.outer = items;
  axis.classes = classes;
  Setup(setup, axis);
  scores_ = "layer \"" + setup.param().name() + "\"";
  field_ = field;
}

void LabelCheck::SetupSequences(const LayerSetup& setup, int64_t classes, int64_t longest, const LabelRule& rule) {
  classes_ = classes;
  rule_ = rule;
  labels_of_item_ = longest;
  scores_ = "\"" + setup.param().bottom(0) + "\"";
}

void LabelCheck::Run(const LayerRun& run) const {
  const Tensor& labels = run.bottoms[1];
  const int64_t bad = run.ops->FindBadLabel(rule_, classes_, labels.count(), labels.f32());
  if (bad >= 0) Refuse(bad, labels.f32()[bad]);
}

void LabelCheck::Refuse(int64_t position, float value) const {
  const std::string text = FormatNumber(value, "%.9g");
  std::string message = "label " + text + " is ";
  if (value != std::floor(value)) {
    message += "no whole number, but " + scores_ + " has " + std::to_string(classes_) + " classes numbered from 0 to " +
               std::to_string(classes_ - 1) + "; labels of a class are integers";
  } else {
    message += "outside the " + std::to_string(classes_) + " classes (0 to " + std::to_string(classes_ - 1) + ") of " +
               scores_ + "; correct the label";
    if (value >= 0 && value < 1e6f) {
      const std::string least = "at least " + std::to_string(static_cast<int64_t>(value) + 1);
      message += field_.empty() ? ", give " + scores_ + " " + least + " outputs" : ", raise " + field_ + " to " + least;
    }
    const bool can_be_ignored = !param_.empty() && std::fabs(value) < 1e9f;
    if (can_be_ignored) message += ", or leave it out with " + param_ + " { ignore_label: " + text + " }";
  }
  throw BadItem(1, position / labels_of_item_, message);
}

}  // namespace crema
