// MultiLabelAccuracy: how well outputs that are each by itself yes or no are told. Bottoms: scores, and as many labels,
// above 0 for yes, below for no, 0 for those that do not count. Top, 1 x 5 x 1 x 1: the measures of MeasureMultiLabel
// (ops/losses/multi_label.h). Of forks of Caffe.
#include "crema/layer.h"
#include "layers/loss.h"
#include "ops/operations.h"

namespace crema {

namespace {

class MultiLabelAccuracyLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2);
    setup.ExpectTops(1);
    ExpectSameItems(setup, 1);
    if (AllBottomsAlike(setup)) setup.AllowChannelsLast();
    setup.MakeNonDifferentiable();
    setup.SetTop(0, {1, kMultiLabelMeasures, 1, 1});
  }

  void Forward(const LayerRun& run) override {
    run.ops->MeasureMultiLabel(run.bottoms[0].count(), run.bottoms[0].f32(), run.bottoms[1].f32(), run.tops[0].f32());
  }
};

}  // namespace

REGISTER_LAYER(MultiLabelAccuracy, MultiLabelAccuracyLayer);

}  // namespace crema
