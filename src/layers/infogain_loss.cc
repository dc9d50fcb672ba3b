// InfogainLoss: softmax along an axis, then the cross-entropy in which H[label][class] weighs the logarithm of each
// class's probability. H, classes x classes, is the third bottom or comes from a file. Tops: the loss; optionally the
// probabilities, whose gradient is not propagated.
#include <string>
#include <vector>

#include "crema/layer.h"
#include "device/device.h"
#include "layers/labels.h"
#include "layers/loss.h"
#include "ops/operations.h"
#include "schema/blob_reader.h"

namespace crema {

namespace {

class InfogainLossLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2, 3);
    setup.ExpectTops(1, 2);
    const Shape& scores = setup.bottom_shape(0);
    const InfogainLossParameter& infogain = setup.param().infogain_loss_param();
    const ClassAxis axis(scores, setup.CanonicalAxis("infogain_loss_param.axis", infogain.axis()));
    const LossParameter& param = setup.param().loss_param();
    if (param.has_normalize()) {
      setup.Fail("loss_param.normalize", std::string("normalize is of SoftmaxWithLoss; write normalization: ") +
                                             (param.normalize() ? "VALID" : "BATCH_SIZE"));
    }
    RefuseSoftmaxSettings(setup);
    RefuseBalance(setup);
    loss_ = {axis, ReadLabelRule(param), ReadNormalizer(setup, LossParameter::VALID, axis.positions(), axis.outer)};
    labels_.Setup(setup, axis, loss_.rule, "loss_param");
    has_infogain_bottom_ = setup.bottoms() == 3;
    if (has_infogain_bottom_) {
      CheckInfogainBottom(setup);
    } else {
      ReadInfogain(setup);
    }
    has_probability_top_ = setup.tops() == 2;
    setup.SetTop(0, Shape());
    if (has_probability_top_) setup.SetTop(1, scores);
    setup.MakeLoss();
    setup.NoGradient(1);
    if (has_infogain_bottom_) setup.NoGradient(2);
    setup.SetFlops(30.0 * static_cast<double>(scores.count()));
  }

  void Plan(LayerPlan& plan) override {
    infogain_on_device_.Upload(*plan.context().device, infogain_);
    const size_t probability_bytes = has_probability_top_ ? 0 : plan.bottom(0).bytes();
    if (!plan.backward()) return plan.Workspace(kNormalizerBytes + probability_bytes, 0);
    plan.BackwardReadsBottom(1);
    if (has_infogain_bottom_) plan.BackwardReadsBottom(2);
    if (has_probability_top_) plan.BackwardReadsTop(1);
    plan.Save({Shape{1}});  // what the sum was divided by
    if (!has_probability_top_) plan.Save(plan.bottom(0));
    plan.Workspace(0, loss_.axis.classes * sizeof(float));
  }

  void Forward(const LayerRun& run) override {
    labels_.Run(run);
    float* probability = Probability(run);
    float* normalizer = run.saved.empty() ? reinterpret_cast<float*>(run.workspace) : run.saved[0].f32();
    run.ops->SoftmaxForward(loss_.axis, run.bottoms[0].f32(), probability);
    run.ops->InfogainLossForward(loss_, Infogain(run), probability, run.bottoms[1].f32(), normalizer,
                                 run.tops[0].f32());
  }

  void Backward(const LayerRun& run) override {
    run.ops->InfogainLossBackward(loss_, run.top_grads[0].f32(), run.saved[0].f32(), Infogain(run), Probability(run),
                                  run.bottoms[1].f32(), reinterpret_cast<float*>(run.workspace),
                                  run.bottom_grads[0].f32());
  }

  void OnBadValue(int64_t position, float value) const override { labels_.Refuse(position, value); }

 private:
  static constexpr size_t kNormalizerBytes = 64;  // a number, so that what follows it is aligned

  std::string Wanted() const {
    const std::string classes = std::to_string(loss_.axis.classes);
    return "H takes " + classes + " x " + classes + ", a row for each label";
  }

  void CheckInfogainBottom(LayerSetup& setup) const {
    if (setup.param().infogain_loss_param().has_source()) {
      setup.Warn("infogain_loss_param.source", "H is the third bottom; source is not read");
    }
    const Shape& shape = setup.bottom_shape(2);
    if (shape.count() == loss_.axis.classes * loss_.axis.classes) return;
    setup.Fail("bottom", "\"" + setup.param().bottom(2) + "\" is " + shape.ToString() + ", but " + Wanted());
  }

  void ReadInfogain(LayerSetup& setup) {
    const InfogainLossParameter& param = setup.param().infogain_loss_param();
    if (!param.has_source()) {
      setup.Fail("infogain_loss_param",
                 "H is missing: give its file as infogain_loss_param { source: ... }, or a third bottom");
    }
    const std::string path = setup.ResolvePath(param.source());
    LayerWeights::Blob blob;
    try {
      blob = ReadBlobFile(path);
    } catch (const UserError& error) {
      setup.Fail("infogain_loss_param.source",
                 "H cannot be read: " + path + ": " + error.diagnostics().front().message);
    }
    if (blob.shape.count() != loss_.axis.classes * loss_.axis.classes) {
      setup.Fail("infogain_loss_param.source", path + " holds " + blob.shape.ToString() + " values, but " + Wanted());
    }
    infogain_ = std::move(blob.data);
  }

  const float* Infogain(const LayerRun& run) const {
    return has_infogain_bottom_ ? run.bottoms[2].f32() : infogain_on_device_.data();
  }

  float* Probability(const LayerRun& run) const {
    if (has_probability_top_) return run.tops[1].f32();
    return run.saved.empty() ? reinterpret_cast<float*>(run.workspace + kNormalizerBytes) : run.saved[1].f32();
  }

  InfogainLoss loss_;
  std::vector<float> infogain_;
  DeviceTable<float> infogain_on_device_;
  LabelCheck labels_;
  bool has_infogain_bottom_ = false, has_probability_top_ = false;
};

}  // namespace

REGISTER_LAYER(InfogainLoss, InfogainLossLayer, "loss_param", "infogain_loss_param");

}  // namespace crema
