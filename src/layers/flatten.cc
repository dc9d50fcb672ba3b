// Flatten: joins the axes from `axis` to `end_axis` into one.
#include "crema/layer.h"

namespace crema {

namespace {

class FlattenLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1);
    setup.ExpectTops(1);
    const FlattenParameter& param = setup.param().flatten_param();
    const Shape& shape = setup.bottom_shape(0);
    const int first = setup.CanonicalAxis("flatten_param.axis", param.axis());
    const int last = setup.CanonicalAxis("flatten_param.end_axis", param.end_axis());
    if (last < first) {
      setup.Fail("flatten_param.end_axis", "end_axis " + std::to_string(param.end_axis()) + " lies before axis " +
                                               std::to_string(param.axis()) + " of the " +
                                               std::to_string(shape.axes()) + "-axis \"" + setup.param().bottom(0) +
                                               "\"; end_axis is the last axis to join");
    }
    std::vector<int64_t> dims(shape.dims().begin(), shape.dims().begin() + first);
    dims.push_back(shape.count(first, last + 1));
    dims.insert(dims.end(), shape.dims().begin() + last + 1, shape.dims().end());
    setup.SetTop(0, Shape(std::move(dims)));
    setup.MakeView();
  }
};

}  // namespace

REGISTER_LAYER(Flatten, FlattenLayer, "flatten_param");

}  // namespace crema
