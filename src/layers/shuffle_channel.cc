// ShuffleChannel: channel i of group g becomes channel i * group + g.
#include "layers/field_range.h"
#include "layers/permutation_layer.h"

namespace crema {

namespace {

class ShuffleChannelLayer : public PermutationLayer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1);
    setup.ExpectTops(1);
    const Shape& shape = setup.bottom_shape(0);
    groups_ = setup.param().shuffle_channel_param().group();
    if (shape.axes() < 2) {
      setup.Fail("bottom",
                 "takes num x channels and more, but \"" + setup.param().bottom(0) + "\" is " + shape.ToString());
    }
    ReadInRange(setup, "shuffle_channel_param.group", groups_, {.low = 1});
    if (shape[1] % groups_ != 0) {
      setup.Fail("shuffle_channel_param.group", "group " + std::to_string(groups_) + " does not divide the " +
                                                    std::to_string(shape[1]) + " channels of " +
                                                    setup.DescribeBottom(0));
    }
    setup.SetTop(0, shape);
    setup.MoveElements();
    setup.AllowChannelsLast();
    setup.AllowHalfPrecision();
    setup.AllowSplitBatch();
    if (groups_ == 1 || groups_ == shape[1]) setup.MakeView();
  }

  void Plan(LayerPlan& plan) override {
    const Shape& shape = plan.bottom(0).shape;
    const bool channels_last = plan.bottom(0).layout == Layout::kChannelsLast;
    const int64_t pixels = shape.count(2);
    // Channels are groups x others; they become others x groups.
    const int64_t extents[] = {channels_last ? shape[0] * pixels : shape[0], groups_, shape[1] / groups_,
                               channels_last ? 1 : pixels};
    const int order[] = {0, 2, 1, 3};
    Permute(extents, order);
  }

 private:
  int64_t groups_ = 1;
};

}  // namespace

REGISTER_LAYER(ShuffleChannel, ShuffleChannelLayer, "shuffle_channel_param");

}  // namespace crema
