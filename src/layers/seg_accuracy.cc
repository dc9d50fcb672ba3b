// SegAccuracy: how well the classes of pixels are told (DeepLab's SegAccuracyLayer; Chen et al., "Semantic Image
// Segmentation with Deep Convolutional Nets and Fully Connected CRFs", 2015). Bottoms: scores N x C x H x W, of one
// channel those of class 1 against 0.5, and labels N x 1 x H x W or N x H x W. Tops, 1 x 1 x 1 x 3 each: those of
// MeasureSegmentation, then, for each output_label, those of MeasureClass (ops/losses/segmentation.h).
#include <string>
#include <vector>

#include "crema/layer.h"
#include "device/device.h"
#include "layers/labels.h"
#include "ops/operations.h"

namespace crema {

namespace {

class SegAccuracyLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2);
    const SegAccuracyParameter& param = setup.param().seg_accuracy_param();
    CheckShapes(setup);
    counting_.axis = ClassAxis(setup.bottom_shape(0), 1);
    CheckClasses(setup, param);
    ReadIgnored(param);
    ClassAxis labelled = counting_.axis;
    labelled.classes = counting_.classes();
    labels_.Setup(setup, labelled, counting_.rule, "seg_accuracy_param");
    goes_on_ = !param.reset();
    setup.MakeNonDifferentiable();
    for (int i = 0; i < setup.tops(); ++i) setup.SetTop(i, {1, 1, 1, 3});
  }

  void Plan(LayerPlan& plan) override {
    Device& device = *plan.context().device;
    if (also_ignored_.size() > 0) {
      ignored_on_device_.Upload(device, also_ignored_);
      counting_.rule.also_ignored = ignored_on_device_.data();
      counting_.rule.also_ignored_count = static_cast<int>(also_ignored_.size());
      labels_.set_rule(counting_.rule);
    }
    plan.Workspace(counting_.workspace() + (goes_on_ ? 0 : PixelBytes()), 0);
    if (!goes_on_) return;
    Operations& ops = OperationsOf(device);
    for (Buffer* pixels : {&before_, &after_}) {
      *pixels = Buffer(device, PixelBytes());
      ops.Fill(0, StateOf(*pixels));
    }
  }

  void Forward(const LayerRun& run) override {
    labels_.Run(run);
    if (goes_on_ && !run.replay) run.ops->Copy(after_.data(), before_.data(), PixelBytes());
    const auto* before = goes_on_ ? reinterpret_cast<const ClassPixels*>(before_.data()) : nullptr;
    auto* pixels = reinterpret_cast<ClassPixels*>(goes_on_ ? after_.data() : run.workspace + counting_.workspace());
    run.ops->CountPixels(counting_, run.bottoms[0].f32(), run.bottoms[1].f32(), before, pixels, run.workspace);
    run.ops->MeasureSegmentation(counting_.classes(), pixels, run.tops[0].f32());
    for (size_t i = 0; i < measured_.size(); ++i) {
      run.ops->MeasureClass(pixels + measured_[i], run.tops[i + 1].f32());
    }
  }

  void OnBadValue(int64_t position, float value) const override { labels_.Refuse(position, value); }

  Tensor recurrent_state() const override { return goes_on_ ? StateOf(after_) : Tensor(); }

 private:
  static void CheckShapes(const LayerSetup& setup) {
    const Shape &scores = setup.bottom_shape(0), &labels = setup.bottom_shape(1);
    if (scores.axes() != 4 || scores[1] < 1) {
      setup.Fail("bottom", setup.BottomIs(0) + ", but must be the scores of classes at pixels, N x C x H x W");
    }
    const Shape plain{scores[0], scores[2], scores[3]}, with_axis{scores[0], 1, scores[2], scores[3]};
    if (labels == plain || labels == with_axis) return;
    setup.Fail("bottom", setup.BottomIs(0) + ", which takes labels of " + with_axis.ToString() + ", but " +
                             setup.BottomIs(1) + "; bring both to one size, e.g. with an Interp layer");
  }

  void CheckClasses(const LayerSetup& setup, const SegAccuracyParameter& param) {
    measured_.assign(param.output_label().begin(), param.output_label().end());
    for (const int64_t label : measured_) {
      if (label >= 0 && label < counting_.classes()) continue;
      setup.Fail("seg_accuracy_param.output_label", "output_label " + std::to_string(label) + " is outside the " +
                                                        std::to_string(counting_.classes()) + " classes (0 to " +
                                                        std::to_string(counting_.classes() - 1) + ") of \"" +
                                                        setup.param().bottom(0) + "\"");
    }
    if (setup.tops() == 1 + param.output_label_size()) return;
    setup.Fail("top", "takes " + std::to_string(1 + param.output_label_size()) + " top(s), one and one for each of " +
                          std::to_string(param.output_label_size()) + " output_label, but " +
                          std::to_string(setup.tops()) + " are given");
  }

  void ReadIgnored(const SegAccuracyParameter& param) {
    if (param.ignore_label_size() == 0) return;
    counting_.rule.has_ignore = true;
    counting_.rule.ignore = param.ignore_label(0);
    also_ignored_.assign(param.ignore_label().begin() + 1, param.ignore_label().end());
  }

  size_t PixelBytes() const { return static_cast<size_t>(counting_.classes()) * sizeof(ClassPixels); }
  Tensor StateOf(const Buffer& pixels) const {
    return Tensor(pixels.data(), {Shape{static_cast<int64_t>(PixelBytes() / sizeof(float))}, DType::kF32});
  }

  PixelCounting counting_;
  LabelCheck labels_;
  std::vector<int64_t> measured_;    // classes that have a top
  std::vector<float> also_ignored_;  // labels behind the first
  DeviceTable<float> ignored_on_device_;
  bool goes_on_ = false;   // with the counts of the pass before
  Buffer before_, after_;  // ClassPixels before and after the latest pass, where it does
};

}  // namespace

REGISTER_LAYER(SegAccuracy, SegAccuracyLayer, "seg_accuracy_param");

}  // namespace crema
