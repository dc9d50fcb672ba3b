// ROIPooling: the maximum of each cell of a grid over rectangles of the images, as in Fast R-CNN. Gradients reach every
// element that was a maximum, also of rectangles whose corners were given the wrong way round.
#include "layers/region_pooling.h"

namespace crema {

namespace {

class RoiPoolingLayer : public RegionPoolingLayer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2);
    setup.ExpectTops(1);
    const ROIPoolingParameter& param = setup.param().roi_pooling_param();
    CheckCells(setup, "roi_pooling_param", "pooled_h", param.has_pooled_h(), param.pooled_h());
    CheckCells(setup, "roi_pooling_param", "pooled_w", param.has_pooled_w(), param.pooled_w());
    SetupRegions(setup, "roi_pooling_param", param.pooled_h(), param.pooled_w(), param.spatial_scale());
    setup.SetTop(0, {problem_.regions, problem_.channels, problem_.pooled_height, problem_.pooled_width});
  }

  void Plan(LayerPlan& plan) override {
    keeps_ = plan.backward();
    if (!keeps_) return;
    plan.BackwardReadsBottom(1);
    plan.Save({Shape{problem_.outputs()}, DType::kI32});
  }

  void Forward(const LayerRun& run) override {
    CheckRegions(run);
    run.ops->RoiPoolingForward(problem_, run.bottoms[0].f32(), run.bottoms[1].f32(), run.tops[0].f32(),
                               keeps_ ? run.saved[0].i32() : nullptr);
  }

  void Backward(const LayerRun& run) override {
    run.ops->RoiPoolingBackward(problem_, run.bottoms[1].f32(), run.saved[0].i32(), run.top_grads[0].f32(),
                                run.bottom_grads[0].f32());
  }

 private:
  bool keeps_ = false;  // where the maxima were
};

}  // namespace

REGISTER_LAYER(ROIPooling, RoiPoolingLayer, "roi_pooling_param");

}  // namespace crema
