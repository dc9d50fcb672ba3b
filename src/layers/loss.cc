#include "layers/loss.h"

#include <algorithm>
#include <string>

namespace crema {

int64_t BatchOf(const Shape& shape) { return shape.axes() > 0 ? shape[0] : 1; }

ClassAxis ItemsAsRows(const Shape& shape) {
  ClassAxis axis;
  axis.outer = BatchOf(shape);
  axis.classes = shape.axes() > 0 ? shape.count(1) : 1;
  return axis;
}

void ExpectSameItems(const LayerSetup& setup, int bottom) {
  const Shape &first = setup.bottom_shape(0), &other = setup.bottom_shape(bottom);
  if (BatchOf(first) == BatchOf(other) && first.count() == other.count()) return;
  setup.Fail("bottom", "\"" + setup.param().bottom(0) + "\" is " + first.ToString() + ", but \"" +
                           setup.param().bottom(bottom) + "\" is " + other.ToString() +
                           "; give both as many items (the first axis) of as many values each");
}

int64_t ElementsOfWeight(LayerSetup& setup, int bottom, int64_t elements, const std::string& element) {
  const int64_t items = BatchOf(setup.bottom_shape(0)), weights = setup.bottom_shape(bottom).count();
  setup.NoGradient(bottom);
  if (weights == elements) return 1;
  if (weights == items) return elements / std::max<int64_t>(1, items);
  setup.Fail("bottom", "\"" + setup.param().bottom(bottom) + "\" holds " + std::to_string(weights) +
                           " weights, but \"" + setup.param().bottom(0) + "\" has " + std::to_string(items) +
                           " items and " + std::to_string(elements) + " " + element + "s; give a weight for each item" +
                           " or for each " + element);
}

bool AllBottomsAlike(const LayerSetup& setup) {
  for (int i = 1; i < setup.bottoms(); ++i) {
    if (setup.bottom_shape(i) != setup.bottom_shape(0)) return false;
  }
  return true;
}

LabelRule ReadLabelRule(const LossParameter& param) { return {param.has_ignore_label(), param.ignore_label()}; }

int64_t ReadNormalizer(const LayerSetup& setup, LossParameter::NormalizationMode unset, int64_t places, int64_t batch,
                       bool weighted) {
  const LossParameter& param = setup.param().loss_param();
  auto mode = unset;
  if (param.has_normalization()) {
    mode = param.normalization();
  } else if (param.has_normalize()) {
    mode = param.normalize() ? LossParameter::VALID : LossParameter::BATCH_SIZE;
  }
  if (mode == LossParameter::PRE_FIXED) {
    setup.Fail("loss_param.normalization",
               "PRE_FIXED is for SmoothL1LossOHEM; take VALID, FULL, BATCH_SIZE or NONE, "
               "and a loss_weight of your own");
  }
  if (mode == LossParameter::NONE) return 1;
  if (mode == LossParameter::BATCH_SIZE) return std::max<int64_t>(1, batch);
  if (mode == LossParameter::VALID && (weighted || param.has_ignore_label())) return 0;
  return std::max<int64_t>(1, places);
}

void RefuseBalance(LayerSetup& setup) {
  const LossParameter& param = setup.param().loss_param();
  const std::string reason = setup.param().type() + " does not read ";
  if (param.class_balanced()) {
    setup.Fail("loss_param.class_balanced", reason + "class_balanced, which is SigmoidCrossEntropyLoss's; remove it");
  }
  if (param.has_negative_weight()) {
    setup.Fail("loss_param.negative_weight", reason + "negative_weight, which is SigmoidCrossEntropyLoss's; remove it");
  }
}

void RefuseSoftmaxSettings(LayerSetup& setup) {
  const LossParameter& param = setup.param().loss_param();
  const std::string reason = setup.param().type() + " does not read ";
  if (param.label_smoothing() != 0) {
    setup.Fail("loss_param.label_smoothing", reason + "label_smoothing, which is SoftmaxWithLoss's; remove it");
  }
  if (param.focal_gamma() != 0) {
    setup.Fail("loss_param.focal_gamma", reason + "focal_gamma, which is SoftmaxWithLoss's; remove it");
  }
  if (param.weight_by_label_freqs()) {
    setup.Fail("loss_param.weight_by_label_freqs",
               reason + "weight_by_label_freqs, which is SoftmaxWithLoss's; remove it");
  }
  if (param.class_weight_size() > 0) setup.Warn("loss_param.class_weight", reason + "class_weight; remove it");
}

}  // namespace crema
