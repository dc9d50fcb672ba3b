// Tile: repeats its bottom along an axis.
#include "crema/layer.h"
#include "layers/memory_axes.h"
#include "ops/operations.h"

namespace crema {

namespace {

class TileLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1);
    setup.ExpectTops(1);
    const TileParameter& param = setup.param().tile_param();
    axis_ = setup.CanonicalAxis("tile_param.axis", param.axis());
    if (param.tiles() < 1) {
      setup.Fail(param.has_tiles() ? "tile_param.tiles" : "tile_param",
                 "tiles must be at least 1; it is how often the bottom is repeated");
    }
    copies_.reduced = param.tiles();
    Shape top = setup.bottom_shape(0);
    int64_t extent = 0;
    if (__builtin_mul_overflow(top[axis_], int64_t{param.tiles()}, &extent)) {
      setup.Fail("tile_param.tiles", "more tiles than a machine holds; lower tiles");
    }
    top.set(axis_, extent);
    setup.SetTop(0, std::move(top));
    setup.MoveElements();
    setup.AllowChannelsLast();
    if (param.tiles() == 1) setup.MakeView();
  }

  void Plan(LayerPlan& plan) override {
    const Shape shape = InMemoryOrder(plan.bottom(0));
    const int axis = AxisInMemory(plan.bottom(0), axis_);
    copies_.outer = shape.count(0, axis);
    copies_.inner = shape.count(axis);
  }

  void Forward(const LayerRun& run) override {
    run.ops->ReduceGradient(copies_, run.bottoms[0].f32(), nullptr, run.tops[0].f32());
  }

  void Backward(const LayerRun& run) override {
    run.ops->Reduce(copies_, run.top_grads[0].f32(), run.bottom_grads[0].f32());
  }

 private:
  int axis_ = 1;
  // The copies are an axis of the top; their sum is the gradient, and the gradient of a sum is what it repeats.
  Reduction copies_;
};

}  // namespace

REGISTER_LAYER(Tile, TileLayer, "tile_param");

}  // namespace crema
