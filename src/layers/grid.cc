// Grid: where each pixel lies, its column and its row, for a Warp: N x 2 x height x width of the bottom, of which the
// shape alone counts. Of LiteFlowNet. Its top is written once.
#include "crema/layer.h"

namespace crema {

namespace {

class GridLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1);
    setup.ExpectTops(1);
    const Shape& shape = setup.bottom_shape(0);
    if (shape.axes() != 4) setup.Fail("bottom", "takes num x channels x height x width, but " + setup.BottomIs(0));
    setup.SetTop(0, {shape[0], 2, shape[2], shape[3]});
    setup.MakeNonDifferentiable();
    setup.MakeSource();
  }

  void Forward(const LayerRun& run) override {
    const Tensor& top = run.tops[0];
    wrote_ = written_ != top.raw();
    if (!wrote_) return;
    const Shape& shape = top.shape();
    float* to = top.f32();
    for (int64_t image = 0; image < shape[0]; ++image) {
      for (const bool rows : {false, true}) {
        for (int64_t row = 0; row < shape[2]; ++row) {
          for (int64_t column = 0; column < shape[3]; ++column) *to++ = static_cast<float>(rows ? row : column);
        }
      }
    }
    written_ = top.raw();
  }

  bool wrote_tops() const override { return wrote_; }

 private:
  const void* written_ = nullptr;  // where the top lay when it was written
  bool wrote_ = false;
};

}  // namespace

REGISTER_LAYER(Grid, GridLayer);

}  // namespace crema
