// FlowWarp: images as a flow says where each pixel comes from (Ilg et al., "FlowNet 2.0: Evolution of Optical Flow
// Estimation with Deep Networks", 2017). Bottoms: images, and the flow, in pixels to the right and down. Warp: the same
// by places instead of distances, columns and rows of the images, which become 0 within a pixel around them; the top is
// as large as there are places. Of LiteFlowNet (Hui, Tang and Loy, 2018).
#include <cstdint>
#include <limits>
#include <string>

#include "crema/layer.h"
#include "ops/operations.h"

namespace crema {

namespace {

class WarpLayer : public Layer {
 public:
  explicit WarpLayer(bool by_flow = false) : by_flow_(by_flow) {}

  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2);
    setup.ExpectTops(1);
    const Shape &shape = setup.bottom_shape(0), &places = setup.bottom_shape(1);
    if (shape.axes() != 4 || shape.count(1) == 0) {
      setup.Fail("bottom", "takes num x channels x height x width, but " + setup.BottomIs(0));
    }
    by_flow_ ? CheckFlow(setup) : CheckPlaces(setup);
    images_ = shape[0];
    // Windows of one pixel: with a stride of 1 they are the images' pixels; with 0 they all begin at the first one.
    const auto axis = [&](int64_t extent, int64_t result) {
      return Im2colProblem::Axis{extent, 1, by_flow_ ? 1 : 0, 0, 1, result};
    };
    pixels_ = {.channels = shape[1], .rows = axis(shape[2], places[2]), .columns = axis(shape[3], places[3])};
    pixels_.fades = !by_flow_;
    pixels_.across_first = true;
    if (setup.param().flow_warp_param().fill_value() == FlowWarpParameter::NOT_A_NUMBER) {
      pixels_.outside = std::numeric_limits<float>::quiet_NaN();
    }
    // Pixels, and what they give to others, are counted by 32 bits.
    if (pixels_.plane() > INT32_MAX / 4 || pixels_.windows() > INT32_MAX / 4) {
      setup.Fail("bottom", "planes of more than 2^29 pixels are not supported, but " + setup.BottomIs(0) + " and " +
                               setup.BottomIs(1));
    }
    const Shape top = {shape[0], shape[1], places[2], places[3]};
    setup.SetTop(0, top);
    setup.AllowSplitBatch();
    setup.SetFlops(8.0 * static_cast<double>(top.count()));
  }

  void Plan(LayerPlan& plan) override {
    if (!plan.backward()) return;
    if (plan.bottom_grad(1)) plan.BackwardReadsBottom(0);
    plan.BackwardReadsBottom(1);
    if (plan.bottom_grad(0)) {
      plan.Workspace(0, OperationsOf(*plan.context().device).DeformableCol2imWorkspace(pixels_));
    }
  }

  void Forward(const LayerRun& run) override {
    for (int64_t i = 0; i < images_; ++i) {
      run.ops->DeformableIm2col(pixels_, Of(run.bottoms[0], i), Of(run.bottoms[1], i), nullptr, Of(run.tops[0], i));
    }
  }

  void Backward(const LayerRun& run) override {
    for (int64_t i = 0; i < images_; ++i) {
      const float *const gradient = Of(run.top_grads[0], i), *const places = Of(run.bottoms[1], i);
      if (run.bottom_grads[0].defined()) {
        run.ops->DeformableCol2im(pixels_, gradient, places, nullptr, Of(run.bottom_grads[0], i), run.workspace);
      }
      if (run.bottom_grads[1].defined()) {
        run.ops->DeformableOffsetGradient(pixels_, gradient, Of(run.bottoms[0], i), places, nullptr,
                                          Of(run.bottom_grads[1], i), nullptr);
      }
    }
  }

 private:
  static void CheckFlow(const LayerSetup& setup) {
    const Shape& shape = setup.bottom_shape(0);
    const Shape flow = {shape[0], 2, shape[2], shape[3]};
    if (setup.bottom_shape(1) == flow) return;
    setup.Fail("bottom", "takes a flow of " + flow.ToString() + ", how far each pixel of \"" + setup.param().bottom(0) +
                             "\" looks to the right and down, but " + setup.BottomIs(1));
  }

  static void CheckPlaces(const LayerSetup& setup) {
    const Shape& places = setup.bottom_shape(1);
    if (places.axes() == 4 && places[0] == setup.bottom_shape(0)[0] && places[1] == 2) return;
    setup.Fail("bottom", "takes places of " + std::to_string(setup.bottom_shape(0)[0]) +
                             "x2xHxW, a column and a row of \"" + setup.param().bottom(0) +
                             "\" for each pixel of the top, but " + setup.BottomIs(1));
  }

  float* Of(const Tensor& tensor, int64_t image) const { return tensor.f32() + image * (tensor.count() / images_); }

  const bool by_flow_;
  int64_t images_ = 0;
  DeformableIm2colProblem pixels_;  // of one image
};

class FlowWarpLayer : public WarpLayer {
 public:
  FlowWarpLayer() : WarpLayer(true) {}
};

}  // namespace

REGISTER_LAYER(FlowWarp, FlowWarpLayer, "flow_warp_param");
REGISTER_LAYER(Warp, WarpLayer);

}  // namespace crema
