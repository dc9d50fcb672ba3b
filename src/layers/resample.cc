// Resample: images of another size, a mean of the pixels around each place, edges upon edges (Ilg et al., "FlowNet 2.0:
// Evolution of Optical Flow Estimation with Deep Networks", 2017). Downsample: the same of fewer pixels, corners upon
// corners, without NaNs, as FlowNet makes the flow smaller that it learns. A second bottom only gives the size.
#include <cstdint>
#include <string>

#include "crema/layer.h"
#include "ops/operations.h"

namespace crema {

namespace {

class ResamplingLayer : public Layer {
 public:
  void Plan(LayerPlan& plan) override {
    const size_t bytes = OperationsOf(*plan.context().device).ResamplingWorkspace(problem_);
    plan.Workspace(bytes, plan.backward() ? bytes : 0);
  }

  void Forward(const LayerRun& run) override {
    run.ops->ResamplingForward(problem_, run.bottoms[0].f32(), run.tops[0].f32(), run.workspace);
  }

  void Backward(const LayerRun& run) override {
    run.ops->ResamplingBackward(problem_, run.top_grads[0].f32(), run.bottom_grads[0].f32(), run.workspace);
  }

 protected:
  struct Size {
    int64_t height, width;
  };

  // The size of the top: that of a second bottom, or what `block` says by fields whose names begin with `prefix`.
  static Size ReadSize(LayerSetup& setup, const std::string& block, const std::string& prefix, bool has_height,
                       bool has_width, const Size& size) {
    setup.ExpectBottoms(1, 2);
    setup.ExpectTops(1);
    for (int i = 0; i < setup.bottoms(); ++i) {
      if (setup.bottom_shape(i).axes() == 4 && setup.bottom_shape(i).count(2) > 0) continue;
      setup.Fail("bottom", "takes num x channels x height x width, but " + setup.BottomIs(i));
    }
    const std::string height = prefix + "height", width = prefix + "width";
    if (setup.bottoms() > 1) {
      setup.NoGradient(1);
      if (has_height || has_width) {
        setup.Fail(block + "." + (has_height ? height : width),
                   "the size is that of \"" + setup.param().bottom(1) + "\"; remove " + height + " and " + width);
      }
      return {setup.bottom_shape(1)[2], setup.bottom_shape(1)[3]};
    }
    if (!has_height || !has_width) {
      setup.Fail(block, "the size of the top is not given; give " + height + " and " + width +
                            ", or a second bottom of that size");
    }
    if (size.height < 1 || size.width < 1 || size.height > INT32_MAX / 2 || size.width > INT32_MAX / 2) {
      setup.Fail(block, height + " " + std::to_string(size.height) + " and " + width + " " +
                            std::to_string(size.width) + " cannot be; give sizes from 1 to " +
                            std::to_string(INT32_MAX / 2));
    }
    return size;
  }

  // Setup, when both axes and the filter are known.
  void SetTop(LayerSetup& setup) {
    const Shape& images = setup.bottom_shape(0);
    problem_.planes = images[0] * images[1];
    const Resampling::Axis &rows = problem_.rows, &columns = problem_.columns;
    setup.SetTop(0, {images[0], images[1], rows.result, columns.result});
    setup.SetCoordinateMap({MapOf(rows), MapOf(columns)});
    setup.AllowSplitBatch();
    setup.SetFlops(2.0 * static_cast<double>(problem_.planes * problem_.result_plane()) *
                   static_cast<double>(rows.taps * columns.taps));
  }

  Resampling problem_;

 private:
  static LayerSetup::AxisMap MapOf(const Resampling::Axis& axis) { return {1 / axis.scale, -axis.shift / axis.scale}; }
};

class ResampleLayer : public ResamplingLayer {
 public:
  void Setup(LayerSetup& setup) override {
    const ResampleParameter& param = setup.param().resample_param();
    if (param.type() == ResampleParameter::AREA) {
      setup.Fail("resample_param.type",
                 "type AREA is not there, as in FlowNet's fork; LINEAR with antialias counts every pixel, too");
    }
    const Size size =
        ReadSize(setup, "resample_param", "", param.has_height(), param.has_width(), {param.height(), param.width()});
    problem_.filter = param.type() == ResampleParameter::NEAREST ? Resampling::Filter::kNearest
                      : param.type() == ResampleParameter::CUBIC ? Resampling::Filter::kCubic
                                                                 : Resampling::Filter::kLinear;
    const Shape& images = setup.bottom_shape(0);
    problem_.rows = ResamplingBetweenEdges(problem_.filter, param.antialias(), images[2], size.height);
    problem_.columns = ResamplingBetweenEdges(problem_.filter, param.antialias(), images[3], size.width);
    SetTop(setup);
    if (size.height == images[2] && size.width == images[3]) setup.MakeView();
  }
};

class DownsampleLayer : public ResamplingLayer {
 public:
  void Setup(LayerSetup& setup) override {
    const DownsampleParameter& param = setup.param().downsample_param();
    const Size size = ReadSize(setup, "downsample_param", "top_", param.has_top_height(), param.has_top_width(),
                               {param.top_height(), param.top_width()});
    setup.NoGradient(0);
    const Shape& images = setup.bottom_shape(0);
    problem_.rows = AxisOf(setup, images[2], size.height, "height");
    problem_.columns = AxisOf(setup, images[3], size.width, "width");
    problem_.skips_nan = true;
    SetTop(setup);
  }

 private:
  Resampling::Axis AxisOf(const LayerSetup& setup, int64_t extent, int64_t result, const std::string& name) const {
    if (result > extent) {
      setup.Fail("bottom", "makes images smaller, but the " + name + " of \"" + setup.param().bottom(0) + "\" is " +
                               std::to_string(extent) + " and that of the top " + std::to_string(result) +
                               "; type: \"Resample\" enlarges, too");
    }
    if (result == 1 && extent > 1) {
      setup.Fail("bottom", "lays corners upon corners, and a top of " + name +
                               " 1 has but one; give it 2 or more, or take type: \"Resample\"");
    }
    return ResamplingBetweenCorners(problem_.filter, extent, result);
  }
};

}  // namespace

REGISTER_LAYER(Resample, ResampleLayer, "resample_param");
REGISTER_LAYER(Downsample, DownsampleLayer, "downsample_param");

}  // namespace crema
