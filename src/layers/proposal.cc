// Proposal: regions that may hold an object, from what a net says of anchors (Ren et al., "Faster R-CNN", 2015). The
// top has room for as many as there can be; rows that are left over hold -1.
#include <algorithm>
#include <cstdint>
#include <string>

#include "layers/anchors.h"
#include "layers/field_range.h"
#include "ops/operations.h"

namespace crema {

namespace {

class ProposalLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(3);
    setup.ExpectTops(1, 2);
    setup.MakeNonDifferentiable();
    ReadBottoms(setup);
    ReadLimits(setup);
    setup.SetTop(0, {problem_.rows(), kRegionNumbers});
    if (setup.param().top_size() > 1) setup.SetTop(1, {problem_.rows(), 1});
  }

  void Plan(LayerPlan& plan) override {
    plan.Workspace(OperationsOf(*plan.context().device).ProposalWorkspace(problem_), 0);
  }

  void Forward(const LayerRun& run) override {
    run.ops->ProposeRegions(problem_, {run.bottoms[0].f32(), run.bottoms[1].f32(), run.bottoms[2].f32()},
                            run.tops[0].f32(), run.tops.size() > 1 ? run.tops[1].f32() : nullptr, run.workspace);
  }

 private:
  static std::string Field(const std::string& name) { return "proposal_param." + name; }

  void ReadBottoms(const LayerSetup& setup) {
    const Shape &scores = setup.bottom_shape(0), &offsets = setup.bottom_shape(1);
    if (scores.axes() != 4) {
      setup.Fail("bottom", "bottom 0, " + setup.DescribeBottom(0) +
                               ", must be images x 2 A x height x width, of A anchors a pixel");
    }
    problem_.images = scores[0];
    problem_.anchors =
        MakeAnchors(setup, AnchorFieldsOf("proposal_param", setup.param().proposal_param()), scores[2], scores[3]);
    const int64_t shapes = problem_.anchors.shapes;
    const std::string anchors = std::to_string(shapes) + " anchors at each pixel (ratios times scales)";
    if (scores[1] != 2 * shapes) {
      setup.Fail("bottom", "bottom 0, " + setup.DescribeBottom(0) + ", must have " + std::to_string(2 * shapes) +
                               " channels, two scores for each of " + anchors);
    }
    if (offsets != Shape{scores[0], 4 * shapes, scores[2], scores[3]}) {
      setup.Fail("bottom", "bottom 1, " + setup.DescribeBottom(1) + ", must have " + std::to_string(4 * shapes) +
                               " channels of the height and width of " + setup.DescribeBottom(0) +
                               ", four offsets for each of " + anchors);
    }
    if (scores.count() == 0 || scores.count(1) > INT32_MAX / 2) {
      setup.Fail("bottom", "bottom 0, " + setup.DescribeBottom(0) + ", must hold 1 to 2^30 scores of an image");
    }
    CheckImageInfo(setup, 2, problem_.images);
  }

  void ReadLimits(const LayerSetup& setup) {
    const ProposalParameter& param = setup.param().proposal_param();
    const bool trains = setup.phase() == TRAIN;
    problem_.most_overlap = ReadInRange(setup, Field("nms_thresh"), param.nms_thresh(), kFraction,
                                        "of regions that overlap by more one is kept");
    const int64_t keep = param.has_post_nms_topn() ? param.post_nms_topn() : trains ? 2000 : 300;
    if (keep < 1 || keep > INT32_MAX / kRegionNumbers / problem_.images) {
      setup.Fail(Field("post_nms_topn"), "post_nms_topn is " + std::to_string(keep) +
                                             " but must be 1 or more, and few enough for one blob; it is how many "
                                             "regions an image has, 300 is usual");
    }
    const int64_t anchors = problem_.anchors.count();
    const int64_t top_k = param.has_pre_nms_topn() ? param.pre_nms_topn() : trains ? 12000 : 6000;
    problem_.min_size = static_cast<float>(param.min_size());
    problem_.top_k = top_k == 0 ? anchors : std::min(top_k, anchors);
    problem_.keep = keep;
  }

  ProposalProblem problem_;
};

}  // namespace

REGISTER_LAYER(Proposal, ProposalLayer, "proposal_param");

}  // namespace crema
