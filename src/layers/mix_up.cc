// MixUp: while training, images of a batch mixed with each other and a share of every class for each (mixup, CutMix);
// while testing, the images themselves and their labels as such shares.
#include <string>

#include "crema/layer.h"
#include "layers/field_range.h"
#include "layers/labels.h"
#include "ops/operations.h"

namespace crema {

namespace {

class MixUpLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2);
    setup.ExpectTops(2);
    setup.MakeNonDifferentiable();
    const MixUpParameter& param = setup.param().mixup_param();
    const Shape& images = setup.bottom_shape(0);
    if (images.axes() == 0) {
      setup.Fail("bottom",
                 "\"" + setup.param().bottom(0) + "\" is a single number; give a batch of images, N x any shape");
    }
    constexpr uint32_t kMostClasses = 1 << 24;  // up to which floats hold every whole number
    if (param.num_classes() < 2 || param.num_classes() > kMostClasses) {
      setup.Fail(param.has_num_classes() ? "mixup_param.num_classes" : "mixup_param",
                 "num_classes must be from 2 to " + std::to_string(kMostClasses) +
                     "; it is the number of classes that labels are of, as many as the net has scores");
    }
    problem_ = {};
    problem_.images = images[0];
    problem_.classes = param.num_classes();
    ReadDistributions(setup);
    if (problem_.cutmix_alpha > 0 && images.axes() != 4) {
      setup.Fail("mixup_param.cutmix_alpha",
                 "CutMix cuts rectangles out of images, N x channels x height x width, but " + setup.DescribeBottom(0) +
                     " has other axes; set cutmix_alpha to 0 for mixup alone");
    }
    mixes_ = setup.phase() == TRAIN && problem_.probability > 0 && problem_.images > 1;
    if (setup.phase() == TRAIN && problem_.images == 1) {
      setup.Warn("bottom", setup.DescribeBottom(0) + " is a batch of one image, so that nothing is mixed; give a " +
                               "batch_size of 2 or more");
    }
    labels_.SetupOwnClasses(setup, problem_.images, problem_.classes, "num_classes");
    setup.SetTop(0, images);
    setup.SetTop(1, {problem_.images, problem_.classes});
    // Labels of as many axes as images have would lie, and be rounded, as those do.
    if (setup.bottom_shape(1).axes() < 3) {
      setup.AllowChannelsLast();
      setup.AllowHalfPrecision();
    }
    if (!mixes_) setup.AllowInPlace();
    setup.SetFlops(mixes_ ? 3.0 * static_cast<double>(images.count()) : 0);
  }

  void Plan(LayerPlan& plan) override {
    const TensorSpec& images = plan.bottom(0);
    problem_.channels = images.shape.count(1);
    if (images.shape.axes() == 4) {
      const bool channels_last = images.layout == Layout::kChannelsLast;
      problem_.planes = channels_last ? 1 : images.shape[1];
      problem_.height = images.shape[2];
      problem_.width = images.shape[3];
      problem_.channels = channels_last ? images.shape[1] : 1;
    }
    if (mixes_) plan.Workspace(static_cast<size_t>(problem_.images) * sizeof(ImageMix), 0);
  }

  void Forward(const LayerRun& run) override {
    labels_.Run(run);
    const Tensor &images = run.bottoms[0], &top = run.tops[0];
    auto* const mixes = mixes_ ? reinterpret_cast<ImageMix*>(run.workspace) : nullptr;
    if (mixes) {
      const RandomStream random(run.context->draw_seed(), StreamId(static_cast<uint32_t>(run.layer_index), run.pass));
      run.ops->DrawMixes(problem_, random, mixes);
      run.ops->MixImages(problem_, mixes, images, top);
    } else if (top.raw() != images.raw()) {
      run.ops->Copy(images.raw(), top.raw(), images.bytes());
    }
    run.ops->MixLabels(problem_, mixes, run.bottoms[1].f32(), run.tops[1].f32());
  }

  void OnBadValue(int64_t position, float value) const override { labels_.Refuse(position, value); }

 private:
  void ReadDistributions(LayerSetup& setup) {
    const MixUpParameter& param = setup.param().mixup_param();
    problem_.alpha = ReadInRange(setup, "mixup_param.alpha", param.alpha(), kNotNegative);
    problem_.cutmix_alpha = ReadInRange(setup, "mixup_param.cutmix_alpha", param.cutmix_alpha(), kNotNegative);
    problem_.cutmix_share =
        ReadInRange(setup, "mixup_param.cutmix_share", param.cutmix_share(), kFraction, "it is a share of images");
    problem_.probability =
        ReadInRange(setup, "mixup_param.probability", param.probability(), kFraction, "it is a share of images");
    const bool both = problem_.alpha > 0 && problem_.cutmix_alpha > 0;
    if (problem_.alpha == 0 && problem_.cutmix_alpha == 0) {
      setup.Fail(
          "mixup_param.alpha",
          "alpha and cutmix_alpha are both 0, so that nothing is mixed; set one of them, or leave the layer out");
    }
    if (param.has_cutmix_share() && !both) {
      setup.Warn("mixup_param.cutmix_share", std::string("cutmix_share has no effect where ") +
                                                 (problem_.alpha > 0 ? "cutmix_alpha" : "alpha") + " is 0");
    }
    if (both && problem_.cutmix_share == 0) {
      setup.Warn("mixup_param.cutmix_alpha", "cutmix_alpha has no effect with a cutmix_share of 0");
    }
    if (both && problem_.cutmix_share == 1 && param.has_alpha()) {
      setup.Warn("mixup_param.alpha", "alpha has no effect with a cutmix_share of 1");
    }
    if (problem_.probability == 0) setup.Warn("mixup_param.probability", "probability is 0, so that nothing is mixed");
  }

  MixUpProblem problem_;
  LabelCheck labels_;
  bool mixes_ = false;
};

}  // namespace

REGISTER_LAYER(MixUp, MixUpLayer, "mixup_param");

}  // namespace crema
