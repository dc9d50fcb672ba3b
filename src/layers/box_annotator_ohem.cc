// BoxAnnotatorOHEM: of the regions of each image only those that the net is most wrong about are learnt from
// (Shrivastava et al., "Training Region-based Object Detectors with Online Hard Example Mining", 2016, as R-FCN does
// it). Bottoms: regions, the loss of each, their labels, and the weights of their boxes' losses; tops: labels and
// weights of those that are kept. Rows that are no region never are; those of one image may stand anywhere.
#include <string>

#include "crema/layer.h"
#include "ops/operations.h"

namespace crema {

namespace {

class BoxAnnotatorOhemLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(4);
    setup.ExpectTops(2);
    setup.MakeNonDifferentiable();
    const BoxAnnotatorOHEMParameter& param = setup.param().box_annotator_ohem_param();
    const Shape &regions = setup.bottom_shape(0), &weights = setup.bottom_shape(3);
    if (regions.axes() < 1 || regions.count() == 0 || regions.count() != regions[0] * kRegionNumbers ||
        regions[0] >= UINT32_MAX) {
      setup.Fail("bottom", "bottom 0, " + setup.DescribeBottom(0) +
                               ", must be regions x 5 (image, x1, y1, x2, y2), as ProposalTarget gives them");
    }
    problem_.regions = regions[0];
    ExpectOneOfEach(setup, 1, "the loss");
    ExpectOneOfEach(setup, 2, "the label");
    if (weights.axes() < 1 || weights[0] != problem_.regions) {
      setup.Fail("bottom", "bottom 3, " + setup.DescribeBottom(3) + ", must have a row of weights for each of the " +
                               std::to_string(problem_.regions) + " regions of \"" + setup.param().bottom(0) + "\"");
    }
    problem_.weights = weights.count(1);
    problem_.per_image = param.roi_per_img();
    if (problem_.per_image == 0) {
      setup.Fail(param.has_roi_per_img() ? "box_annotator_ohem_param.roi_per_img" : "box_annotator_ohem_param",
                 "roi_per_img must be 1 or more; it is how many regions of an image are learnt from, 128 is usual");
    }
    problem_.ignore = static_cast<float>(param.ignore_label());
    setup.SetTop(0, setup.bottom_shape(2));
    setup.SetTop(1, weights);
  }

  void Plan(LayerPlan& plan) override {
    plan.Workspace(OperationsOf(*plan.context().device).HardRegionWorkspace(problem_), 0);
  }

  void Forward(const LayerRun& run) override {
    run.ops->KeepHardRegions(problem_,
                             {run.bottoms[0].f32(), run.bottoms[1].f32(), run.bottoms[2].f32(), run.bottoms[3].f32()},
                             run.tops[0].f32(), run.tops[1].f32(), run.workspace);
  }

 private:
  void ExpectOneOfEach(const LayerSetup& setup, int bottom, const std::string& what) const {
    if (setup.bottom_shape(bottom).count() == problem_.regions) return;
    setup.Fail("bottom", "bottom " + std::to_string(bottom) + ", " + setup.DescribeBottom(bottom) + ", must hold " +
                             what + " of each of the " + std::to_string(problem_.regions) + " regions of \"" +
                             setup.param().bottom(0) + "\"");
  }

  HardRegionProblem problem_;
};

}  // namespace

REGISTER_LAYER(BoxAnnotatorOHEM, BoxAnnotatorOhemLayer, "box_annotator_ohem_param");

}  // namespace crema
