// GroupNorm: the pixels of each group of channels of an image to mean 0 and variance 1, times a learnt scale, plus a
// learnt shift. Blobs: scale and shift, [channels].
#include <string>

#include "layers/channel_shape.h"
#include "layers/group_normalization.h"

namespace crema {

namespace {

class GroupNormLayer : public GroupNormalization {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1);
    const GroupNormParameter& param = setup.param().group_norm_param();
    const Shape& shape = setup.bottom_shape(0);
    ExpectChannels(setup);
    const int64_t groups = param.num_groups();
    if (groups < 1 || shape[1] % groups != 0) {
      setup.Fail(param.has_num_groups() ? "group_norm_param.num_groups" : "bottom",
                 "\"" + setup.param().bottom(0) + "\" has " + std::to_string(shape[1]) +
                     " channels, which are not to be dealt out to " + std::to_string(groups) +
                     " groups; give a num_groups that divides " + std::to_string(shape[1]));
    }
    const GroupNormProblem rows = {
        .images = shape[0], .groups = groups, .channels = shape[1] / groups, .pixels = shape.count(2)};
    SetupRows(setup, param, "group_norm_param", rows, {shape[1]});
  }
};

}  // namespace

REGISTER_LAYER(GroupNorm, GroupNormLayer, "group_norm_param");

}  // namespace crema
