// ROIAlign: the mean of points in each cell of a grid over rectangles of the images (He et al., "Mask R-CNN", 2017).
#include <algorithm>

#include "layers/region_pooling.h"

namespace crema {

namespace {

class RoiAlignLayer : public RegionPoolingLayer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2);
    setup.ExpectTops(1);
    const std::string message = "roi_align_param";
    const ROIAlignParameter& param = setup.param().roi_align_param();
    CheckCells(setup, message, "pooled_h", param.has_pooled_h(), param.pooled_h());
    CheckCells(setup, message, "pooled_w", param.has_pooled_w(), param.pooled_w());
    if (param.sampling_ratio() > kMostPoints) {
      setup.Fail(message + ".sampling_ratio", "sampling_ratio is " + std::to_string(param.sampling_ratio()) +
                                                  " but may be " + std::to_string(kMostPoints) +
                                                  " at most; 2 is usual, and 0 takes about a point for each pixel");
    }
    if (param.roi_end_mode() != 0) {
      setup.Fail(message + ".roi_end_mode", "roi_end_mode is " + std::to_string(param.roi_end_mode()) +
                                                ", but only 0 is there: regions end where their corners say");
    }
    SetupRegions(setup, message, param.pooled_h(), param.pooled_w(), param.spatial_scale());
    points_ = std::max(0, param.sampling_ratio());
    setup.SetTop(0, {problem_.regions, problem_.channels, problem_.pooled_height, problem_.pooled_width});
  }

  void Plan(LayerPlan& plan) override {
    if (plan.backward()) plan.BackwardReadsBottom(1);
  }

  void Forward(const LayerRun& run) override {
    CheckRegions(run);
    run.ops->RoiAlignForward({problem_, points_}, run.bottoms[0].f32(), run.bottoms[1].f32(), run.tops[0].f32());
  }

  void Backward(const LayerRun& run) override {
    run.ops->RoiAlignBackward({problem_, points_}, run.bottoms[1].f32(), run.top_grads[0].f32(),
                              run.bottom_grads[0].f32());
  }

 private:
  static constexpr int kMostPoints = 64;

  int32_t points_ = 0;
};

}  // namespace

REGISTER_LAYER(ROIAlign, RoiAlignLayer, "roi_align_param");

}  // namespace crema
