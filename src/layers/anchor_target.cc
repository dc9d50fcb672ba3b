// AnchorTarget: what a net that proposes regions should say of its anchors (Ren et al., "Faster R-CNN", 2015, section
// 3.1.2). As in the authors' own layer, but for an object that no anchor inside the image overlaps: there it makes
// every such anchor an object, here none.
#include <cmath>
#include <cstdint>
#include <string>

#include "layers/anchors.h"
#include "layers/field_range.h"
#include "layers/region_objects.h"
#include "ops/operations.h"

namespace crema {

namespace {

constexpr const char* kParameters = "anchor_target_param";

class AnchorTargetLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(3, 4);
    setup.ExpectTops(4);
    setup.MakeNonDifferentiable();
    const AnchorTargetParameter& param = setup.param().anchor_target_param();
    const Shape& map = setup.bottom_shape(0);
    if (map.axes() != 4) {
      setup.Fail("bottom", "\"" + setup.param().bottom(0) + "\" is " + map.ToString() +
                               ", but the first bottom is of the feature map's extents, num x channels x height x "
                               "width, as the scores of anchors are");
    }
    problem_ = {};
    problem_.anchors = MakeAnchors(setup, AnchorFieldsOf(kParameters, param), map[2], map[3]);
    object_check_.Setup(setup, 1, 0);
    problem_.objects = object_check_.objects();
    CheckExtents(setup);
    CheckImageInfo(setup, 2, problem_.objects.images);
    problem_.allowed_border = static_cast<float>(param.allowed_border());
    problem_.batch = ReadInRange(setup, Field("batch_size"), param.batch_size(), {1, 65536},
                                 "it is how many anchors of an image count");
    const float share = ReadInRange(setup, Field("fg_fraction"), param.fg_fraction(), kFraction,
                                    "it is the share of batch_size that may be objects");
    problem_.foreground = static_cast<int64_t>(std::floor(share * static_cast<float>(problem_.batch)));
    problem_.positive_overlap = ReadInRange(setup, Field("positive_overlap"), param.positive_overlap(), kFraction,
                                            "it is how much an anchor overlaps an object that it is for");
    problem_.negative_overlap =
        ReadInRange(setup, Field("negative_overlap"), param.negative_overlap(), kFraction,
                    "it is what an anchor overlaps each object by less than that is background");
    problem_.clobber_positives = param.clobber_positives();

    const Anchors& anchors = problem_.anchors;
    const int64_t images = problem_.objects.images;
    setup.SetTop(0, {images, 1, anchors.shapes * anchors.height, anchors.width});
    for (int i = 1; i < 4; ++i) setup.SetTop(i, {images, 4 * anchors.shapes, anchors.height, anchors.width});
  }

  void Plan(LayerPlan& plan) override {
    plan.Workspace(OperationsOf(*plan.context().device).AnchorTargetWorkspace(problem_), 0);
  }

  void Forward(const LayerRun& run) override {
    object_check_.Run(run);
    const RandomStream random(run.context->draw_seed(), StreamId(static_cast<uint32_t>(run.layer_index), run.pass));
    run.ops->MakeAnchorTargets(problem_, random, run.bottoms[2].f32(), run.bottoms[1].f32(),
                               {run.tops[0].f32(), run.tops[1].f32(), run.tops[2].f32(), run.tops[3].f32()},
                               run.workspace);
  }

  void OnBadValue(int64_t position, float value) const override { object_check_.Refuse(position, value); }

 private:
  static std::string Field(const std::string& name) { return std::string(kParameters) + "." + name; }

  void CheckExtents(const LayerSetup& setup) const {
    if (setup.bottom_shape(0)[0] != problem_.objects.images) {
      setup.Fail("bottom", setup.BottomIs(0) + ", but " + setup.BottomIs(1) + ", objects of " +
                               std::to_string(problem_.objects.images) + " image(s); give both as many images");
    }
    constexpr int64_t kMost = INT32_MAX / 4;
    if (problem_.anchors.pixels() > kMost / problem_.anchors.shapes) {
      setup.Fail("bottom", setup.BottomIs(0) + ", which is too large a feature map for " +
                               std::to_string(problem_.anchors.shapes) + " anchors at each pixel");
    }
  }

  AnchorTargetProblem problem_;
  RegionObjectCheck object_check_;
};

}  // namespace

REGISTER_LAYER(AnchorTarget, AnchorTargetLayer, "anchor_target_param");

}  // namespace crema
