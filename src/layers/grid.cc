// Grid: where each pixel lies, its column and its row, for a Warp: N x 2 x height x width of the bottom, of which the
// shape alone counts. Of LiteFlowNet. Its top is written once.
#include "layers/constant_source.h"

namespace crema {

namespace {

class GridLayer : public ConstantSource {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1);
    setup.ExpectTops(1);
    const Shape& shape = setup.bottom_shape(0);
    if (shape.axes() != 4) setup.Fail("bottom", "takes num x channels x height x width, but " + setup.BottomIs(0));
    setup.SetTop(0, {shape[0], 2, shape[2], shape[3]});
    MakeConstant(setup);
  }

 private:
  void Write(const Tensor& top) const override {
    const Shape& shape = top.shape();
    float* to = top.f32();
    for (int64_t image = 0; image < shape[0]; ++image) {
      for (const bool rows : {false, true}) {
        for (int64_t row = 0; row < shape[2]; ++row) {
          for (int64_t column = 0; column < shape[3]; ++column) *to++ = static_cast<float>(rows ? row : column);
        }
      }
    }
  }
};

}  // namespace

REGISTER_LAYER(Grid, GridLayer);

}  // namespace crema
