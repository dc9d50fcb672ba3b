// PSROIPooling: the mean of each cell of a grid over rectangles of the images, each cell from channels of its own (Dai
// et al., "R-FCN: Object Detection via Region-based Fully Convolutional Networks", 2016).
#include "layers/region_pooling.h"

namespace crema {

namespace {

class PsroiPoolingLayer : public RegionPoolingLayer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2);
    setup.ExpectTops(1);
    const std::string message = "psroi_pooling_param";
    const PSROIPoolingParameter& param = setup.param().psroi_pooling_param();
    const int64_t channels = param.output_dim(), cells = param.group_size();
    CheckCount(setup, message, "output_dim", param.has_output_dim(), channels, "how many channels the top has");
    CheckCount(setup, message, "group_size", param.has_group_size(), cells,
               "how many cells a region is cut into from top to bottom and from left to right");
    SetupRegions(setup, message, cells, cells, param.spatial_scale());
    if (problem_.channels != channels * cells * cells) {
      const std::string group = std::to_string(cells), outputs = std::to_string(channels);
      setup.Fail("bottom", "\"" + setup.param().bottom(0) + "\" has " + std::to_string(problem_.channels) +
                               " channels (" + setup.bottom_shape(0).ToString() + "), but output_dim " + outputs +
                               " and group_size " + group + " take " + outputs + " x " + group + " x " + group + " = " +
                               std::to_string(channels * cells * cells));
    }
    problem_.channels = channels;
    setup.SetTop(0, {problem_.regions, channels, cells, cells});
  }

  void Plan(LayerPlan& plan) override {
    if (plan.backward()) plan.BackwardReadsBottom(1);
  }

  void Forward(const LayerRun& run) override {
    CheckRegions(run);
    run.ops->PositionPoolingForward(problem_, run.bottoms[0].f32(), run.bottoms[1].f32(), run.tops[0].f32());
  }

  void Backward(const LayerRun& run) override {
    run.ops->PositionPoolingBackward(problem_, run.bottoms[1].f32(), run.top_grads[0].f32(), run.bottom_grads[0].f32());
  }
};

}  // namespace

REGISTER_LAYER(PSROIPooling, PsroiPoolingLayer, "psroi_pooling_param");

}  // namespace crema
