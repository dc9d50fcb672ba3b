// ScoreDetections: which of the objects that ClusterDetections found are right. PrecisionRecall: how many of all. As
// the layers in Python of NVIDIA's fork, which calls the second one mAP.
#include "crema/layer.h"
#include "ops/operations.h"

namespace crema {

namespace {

// Rows of objects of an image.
int64_t BoxRowsOf(const LayerSetup& setup, int bottom, const std::string& maker) {
  const Shape& shape = setup.bottom_shape(bottom);
  if (shape.axes() == 3 && shape[2] == DetectNetGrid::kNumbers && shape.count() > 0) return shape[1];
  setup.Fail("bottom",
             setup.DescribeBottom(bottom) + " must be boxes of images, N x rows x 5, as " + maker + " gives them");
}

class ScoreDetectionsLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2);
    setup.ExpectTops(1);
    setup.MakeNonDifferentiable();
    scoring_.truths = BoxRowsOf(setup, 0, "ClusterGroundtruth");
    scoring_.found = BoxRowsOf(setup, 1, "ClusterDetections");
    scoring_.images = setup.bottom_shape(0)[0];
    if (setup.bottom_shape(1)[0] != scoring_.images) {
      setup.Fail("bottom", setup.DescribeBottom(0) + " and " + setup.DescribeBottom(1) +
                               " are of batches of different sizes; give both the same images");
    }
    setup.SetTop(0, {scoring_.images, scoring_.rows(), DetectNetGrid::kNumbers});
  }

  void Plan(LayerPlan& plan) override {
    plan.Workspace(OperationsOf(*plan.context().device).DetectNetScoreWorkspace(scoring_), 0);
  }

  void Forward(const LayerRun& run) override {
    run.ops->ScoreDetectNetBoxes(scoring_, run.bottoms[0].f32(), run.bottoms[1].f32(), run.tops[0].f32(),
                                 run.workspace);
  }

 private:
  DetectNetScoring scoring_;
};

class PrecisionRecallLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1);
    setup.ExpectTops(3);
    setup.MakeNonDifferentiable();
    const int64_t rows = BoxRowsOf(setup, 0, "ScoreDetections");
    rows_ = setup.bottom_shape(0)[0] * rows;
    for (int i = 0; i < 3; ++i) setup.SetTop(i, {1});
  }

  void Forward(const LayerRun& run) override {
    run.ops->MeasureDetectNetBoxes(rows_, run.bottoms[0].f32(),
                                   {run.tops[0].f32(), run.tops[1].f32(), run.tops[2].f32()});
  }

 private:
  int64_t rows_ = 0;
};

}  // namespace

REGISTER_LAYER(ScoreDetections, ScoreDetectionsLayer);
REGISTER_LAYER(PrecisionRecall, PrecisionRecallLayer);

}  // namespace crema
