// Input: tops that the program running the net writes; nothing happens in a pass.
#include "crema/layer.h"
#include "schema/blob_shape.h"

namespace crema {

namespace {

class InputLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(0);
    setup.ExpectTops(1, -1);
    setup.MakeSource();
    const InputParameter& param = setup.param().input_param();
    if (param.shape_size() > 1 && param.shape_size() != setup.tops()) {
      setup.Fail("input_param.shape", "gives " + std::to_string(param.shape_size()) + " shapes for " +
                                          std::to_string(setup.tops()) +
                                          " tops; give one for all, or one for each top");
    }
    for (int i = 0; i < setup.tops(); ++i) {
      if (const Shape* shape = setup.shape_override(i)) {
        setup.SetTop(i, *shape);
      } else if (param.shape_size() > 0) {
        setup.SetTop(i, ReadShape(setup, param.shape(param.shape_size() == 1 ? 0 : i)));
      } else {
        setup.Fail("input_param", "does not say the shape of \"" + setup.param().top(i) +
                                      "\"; add input_param { shape { dim: ... } }, or pass --shape=" +
                                      setup.param().top(i) + "=N,C,H,W");
      }
    }
  }

 private:
  static Shape ReadShape(const LayerSetup& setup, const BlobShape& blob_shape) {
    const Shape shape = ShapeOf(blob_shape);
    for (int64_t extent : shape.dims()) {
      if (extent < 1) {
        setup.Fail("input_param.shape", "shape " + shape.ToString() + " has the extent " + std::to_string(extent) +
                                            "; every dim must be at least 1");
      }
    }
    return shape;
  }
};

}  // namespace

// transform_param is for `crema predict` and `evaluate`: how images are made ready for the tops. Caffe ignores it, too.
REGISTER_LAYER(Input, InputLayer, "input_param", "transform_param");

}  // namespace crema
