// ProposalTarget: of the regions that a net proposes those to learn from, and what should be said of them (Girshick,
// "Fast R-CNN", 2015, section 2.3). As in the authors' own layer, but that an image always gives batch_size regions:
// where there are too few they are taken again, so that shares of objects stay.
#include <cmath>
#include <cstdint>
#include <string>

#include "base/number_text.h"
#include "layers/box_variance.h"
#include "layers/field_range.h"
#include "layers/region_objects.h"
#include "ops/operations.h"

namespace crema {

namespace {

constexpr const char* kParameterBlock = "proposal_target_param";

class ProposalTargetLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2);
    setup.ExpectTops(5);
    setup.MakeNonDifferentiable();
    problem_ = {};
    const int64_t classes = ReadClasses(setup);
    problem_.classes = classes;
    object_check_.Setup(setup, 1, classes == 2 ? 0 : classes);
    problem_.objects = object_check_.objects();
    ReadProposals(setup);
    ReadSample(setup);
    problem_.variance = VarianceOf(setup, Field("variance"), setup.param().proposal_target_param().variance(), 1);

    const int64_t rows = problem_.objects.images * problem_.batch, numbers = 4 * classes;
    if (rows > INT32_MAX / numbers) {
      setup.Fail(Field("batch_size"), "offsets of " + std::to_string(rows) + " regions to objects of " +
                                          std::to_string(classes) + " classes are too many for one blob; " +
                                          (problem_.takes_all ? "give a batch_size" : "lower batch_size"));
    }
    setup.SetTop(0, {rows, kRegionNumbers});
    setup.SetTop(1, {rows, 1});
    for (int i = 2; i < 5; ++i) setup.SetTop(i, {rows, numbers});
  }

  void Plan(LayerPlan& plan) override {
    plan.Workspace(OperationsOf(*plan.context().device).RegionTargetWorkspace(problem_), 0);
  }

  void Forward(const LayerRun& run) override {
    object_check_.Run(run);
    const RandomStream random(run.context->draw_seed(), StreamId(static_cast<uint32_t>(run.layer_index), run.pass));
    run.ops->MakeRegionTargets(
        problem_, random, run.bottoms[0].f32(), run.bottoms[1].f32(),
        {run.tops[0].f32(), run.tops[1].f32(), run.tops[2].f32(), run.tops[3].f32(), run.tops[4].f32()}, run.workspace);
  }

  void OnBadValue(int64_t position, float value) const override { object_check_.Refuse(position, value); }

 private:
  static std::string Field(const std::string& name) { return std::string(kParameterBlock) + "." + name; }

  static int64_t ReadClasses(const LayerSetup& setup) {
    const ProposalTargetParameter& param = setup.param().proposal_target_param();
    constexpr uint32_t kMost = 1 << 24;
    if (param.num_classes() >= 2 && param.num_classes() <= kMost) return param.num_classes();
    setup.Fail(param.has_num_classes() ? Field("num_classes") : kParameterBlock,
               "num_classes must be in [2, " + std::to_string(kMost) +
                   "]; it is how many classes there are, the background, 0, among them");
  }

  void ReadProposals(const LayerSetup& setup) {
    const Shape& shape = setup.bottom_shape(0);
    const int64_t images = problem_.objects.images;
    const std::string told = "\"" + setup.param().bottom(0) + "\" is " + shape.ToString();
    if (shape.axes() < 1 || shape.count() != shape[0] * kRegionNumbers) {
      setup.Fail("bottom", told +
                               ", but the first bottom is regions x 5 (image, x1, y1, x2, y2), as Proposal gives "
                               "them");
    }
    if (shape[0] % images != 0) {
      setup.Fail("bottom", told + ", but " + setup.BottomIs(1) + ", objects of " + std::to_string(images) +
                               " images; give an equal number of regions of each image");
    }
    problem_.proposals = shape[0] / images;
    if (problem_.proposals > INT32_MAX - problem_.objects.rows) setup.Fail("bottom", told + ", which is too many");
  }

  void ReadSample(LayerSetup& setup) {
    const ProposalTargetParameter& param = setup.param().proposal_target_param();
    problem_.takes_all = param.batch_size() == 0;
    const float share = ReadInRange(setup, Field("fg_fraction"), param.fg_fraction(), kFraction,
                                    "it is the share of batch_size that may be objects");
    if (problem_.takes_all) {
      problem_.batch = problem_.foreground = problem_.proposals + problem_.objects.rows;
      if (param.has_fg_fraction()) {
        setup.Warn(Field("fg_fraction"), "fg_fraction has no effect with batch_size: 0, which takes all objects");
      }
    } else {
      problem_.batch = ReadInRange(setup, Field("batch_size"), param.batch_size(), {1, 65536},
                                   "it is how many regions of an image are taken");
      problem_.foreground = static_cast<int64_t>(std::nearbyint(share * static_cast<float>(problem_.batch)));
    }
    problem_.foreground_overlap = ReadInRange(setup, Field("fg_thresh"), param.fg_thresh(), kFraction,
                                              "it is how much a region overlaps an object that it is for");
    problem_.background_below = ReadInRange(setup, Field("bg_thresh_hi"), param.bg_thresh_hi(), kFraction,
                                            "it is what a region overlaps each object by less than that is background");
    problem_.background_above = ReadInRange(setup, Field("bg_thresh_lo"), param.bg_thresh_lo(), kFraction,
                                            "it is how much a region that is background overlaps some object at least");
    if (problem_.background_above <= problem_.background_below) return;
    setup.Fail(Field(param.has_bg_thresh_lo() ? "bg_thresh_lo" : "bg_thresh_hi"),
               "bg_thresh_lo " + FormatNumber(problem_.background_above) + " exceeds bg_thresh_hi " +
                   FormatNumber(problem_.background_below) + ", so that no region is background");
  }

  RegionTargetProblem problem_;
  RegionObjectCheck object_check_;
};

}  // namespace

REGISTER_LAYER(ProposalTarget, ProposalTargetLayer, "proposal_target_param");

}  // namespace crema
