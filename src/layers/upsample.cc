// Upsample: each element of bottom 0 goes where bottom 1 says, the index in the plane that a Pooling layer gives as its
// second top; 0 elsewhere (SegNet). Where several have one index the last one stays, and all get its gradient.
#include <cstdint>
#include <string>

#include "base/number_text.h"
#include "crema/layer.h"
#include "ops/operations.h"

namespace crema {

namespace {

class UpsampleLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2);
    setup.ExpectTops(1);
    const Shape &values = setup.bottom_shape(0), &mask = setup.bottom_shape(1);
    for (int i = 0; i < 2; ++i) bottom_[i] = setup.param().bottom(i);
    if (values.axes() != 4) {
      setup.Fail("bottom", "takes num x channels x height x width, but \"" + bottom_[0] + "\" is " + values.ToString());
    }
    if (mask != values) {
      setup.Fail("bottom", "takes one index for each value, the second top of a Pooling layer, but \"" + bottom_[0] +
                               "\" is " + values.ToString() + " and \"" + bottom_[1] + "\" is " + mask.ToString());
    }
    ReadSize(setup);
    // Each must be a float's value.
    constexpr int64_t kMost = 1 << 24;
    if (height_ > kMost || width_ > kMost || height_ * width_ > kMost) {
      setup.Fail("upsample_param", "a top of height " + std::to_string(height_) + " and width " +
                                       std::to_string(width_) + " has more elements than can be told apart, 2^24");
    }
    problem_ = {values[0], values[1], values.count(2), height_ * width_};
    setup.SetTop(0, {values[0], values[1], height_, width_});
    setup.AllowSplitBatch();
    setup.NoGradient(1);
    setup.AllowChannelsLast();
  }

  void Plan(LayerPlan& plan) override {
    problem_.layout = plan.bottom(0).layout;
    if (plan.backward()) plan.BackwardReadsBottom(1);
  }

  void Forward(const LayerRun& run) override {
    const float* index = run.bottoms[1].f32();
    const int64_t bad = run.ops->FindBadIndex(Indices(), index);
    if (bad >= 0) OnBadValue(bad, index[bad]);
    run.ops->UnpoolingForward(problem_, run.bottoms[0].f32(), index, run.tops[0].f32());
  }

  void OnBadValue(int64_t position, float value) const override {
    throw BadItem(1, position / (problem_.channels * problem_.pixels),
                  "\"" + bottom_[1] + "\" holds " + FormatNumber(value, "%.9g") + ", but the top's planes of " +
                      std::to_string(height_) + " x " + std::to_string(width_) + " have elements 0 to " +
                      std::to_string(problem_.result_pixels - 1) +
                      "; give upsample_h and upsample_w, the size of what was pooled");
  }

  void Backward(const LayerRun& run) override {
    run.ops->UnpoolingBackward(problem_, run.bottoms[1].f32(), run.top_grads[0].f32(), run.bottom_grads[0].f32());
  }

 private:
  EmbedProblem Indices() const { return {problem_.inputs(), problem_.result_pixels, 1}; }

  void ReadSize(const LayerSetup& setup) {
    const UpsampleParameter& param = setup.param().upsample_param();
    const auto both = [&](const char* h, bool has_h, const char* w, bool has_w) {
      if (has_h == has_w) return;
      setup.Fail(std::string("upsample_param.") + (has_h ? h : w),
                 std::string("has ") + (has_h ? h : w) + " without " + (has_h ? w : h) + "; give both");
    };
    both("upsample_h", param.has_upsample_h(), "upsample_w", param.has_upsample_w());
    both("scale_h", param.has_scale_h(), "scale_w", param.has_scale_w());
    if (param.has_upsample_h()) {
      height_ = param.upsample_h();
      width_ = param.upsample_w();
      if (height_ < 1) setup.Fail("upsample_param.upsample_h", "upsample_h must be at least 1");
      if (width_ < 1) setup.Fail("upsample_param.upsample_w", "upsample_w must be at least 1");
      return;
    }
    if (param.has_scale() && param.has_scale_h()) {
      setup.Fail("upsample_param.scale", "has both scale and scale_h; keep one of the two forms");
    }
    const Shape& values = setup.bottom_shape(0);
    height_ = Scaled(setup, values[2], param.has_scale_h() ? "scale_h" : "scale",
                     param.has_scale_h() ? param.scale_h() : param.scale(), "pad_out_h", param.pad_out_h());
    width_ = Scaled(setup, values[3], param.has_scale_w() ? "scale_w" : "scale",
                    param.has_scale_w() ? param.scale_w() : param.scale(), "pad_out_w", param.pad_out_w());
  }

  // One less where what was pooled was odd, as pad_out says.
  static int64_t Scaled(const LayerSetup& setup, int64_t extent, const std::string& name, int64_t scale,
                        const std::string& pad_name, bool pad) {
    if (scale < 1 || scale > INT16_MAX) setup.Fail("upsample_param." + name, name + " must be in [1, 32767]");
    if (pad && scale != 2) {
      setup.Fail("upsample_param." + pad_name, pad_name + " needs a scale of 2, but " + name + " is " +
                                                   std::to_string(scale) +
                                                   "; give upsample_h and upsample_w, the size of what was pooled");
    }
    return extent * scale - (pad ? 1 : 0);
  }

  UnpoolingProblem problem_;
  int64_t height_ = 1, width_ = 1;  // of the top
  std::string bottom_[2];           // their names, for messages
};

}  // namespace

REGISTER_LAYER(Upsample, UpsampleLayer, "upsample_param");

}  // namespace crema
