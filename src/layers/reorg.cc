// Reorg: pixels become channels, or channels pixels, as in YOLO's forks (Redmon and Farhadi, "YOLO9000", 2016). They
// move as Darknet moves them, whose weights expect it: for pixels to channels the order of memory is that of a bottom
// of stride^2 times fewer channels and as many times more pixels, whatever shape it says.
#include <cstdint>
#include <string>

#include "layers/permutation_layer.h"

namespace crema {

namespace {

class ReorgLayer : public PermutationLayer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1);
    setup.ExpectTops(1);
    const ReorgParameter& param = setup.param().reorg_param();
    const Shape& shape = setup.bottom_shape(0);
    const std::string bottom = setup.DescribeBottom(0);
    if (shape.axes() != 4) setup.Fail("bottom", "takes num x channels x height x width, but not " + bottom);
    const int64_t stride = param.stride();
    if (stride < 1 || stride > INT16_MAX) {
      setup.Fail(param.has_stride() ? "reorg_param.stride" : "reorg_param",
                 "stride must be in [1, 32767]; it is how many pixels on a side become channels");
    }
    const std::string square = std::to_string(stride * stride);
    if (shape[1] % (stride * stride) != 0) {
      setup.Fail("reorg_param.stride", "the " + std::to_string(shape[1]) + " channels of " + bottom +
                                           " cannot be divided by stride^2, " + square);
    }
    if (!param.reverse() && (shape[2] % stride != 0 || shape[3] % stride != 0)) {
      setup.Fail("reorg_param.stride",
                 "height and width of " + bottom + " cannot be divided by stride, " + std::to_string(stride));
    }
    const int64_t few = shape[1] / (stride * stride), height = shape[2], width = shape[3];
    // Of the finer image: its channels, rows in rows, columns in columns; of the coarser one: channels in channels.
    const int64_t fine[] = {shape[0], few, height, stride, width, stride};
    const int64_t coarse[] = {shape[0], stride, stride, few, height, width};
    const int to_coarse[] = {0, 3, 5, 1, 2, 4}, to_fine[] = {0, 3, 4, 1, 5, 2};
    if (param.reverse()) {
      Permute(coarse, to_fine);
    } else {
      Permute(fine, to_coarse);
    }
    setup.SetTop(0, param.reverse() ? Shape{shape[0], few, height * stride, width * stride}
                                    : Shape{shape[0], shape[1] * stride * stride, height / stride, width / stride});
    setup.MoveElements();
    if (moves_nothing()) setup.MakeView();
  }
};

}  // namespace

REGISTER_LAYER(Reorg, ReorgLayer, "reorg_param");

}  // namespace crema
