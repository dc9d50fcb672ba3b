// ArgMax: the indices of the largest elements, the largest first; of equal ones the larger index first, as in Caffe.
// Along an axis, or of each item as one vector: the top is then items x 1 x top_k, with out_max_val items x 2 x top_k,
// which hold the indices and, behind them, the values.
#include <algorithm>
#include <string>
#include <vector>

#include "crema/layer.h"
#include "layers/loss.h"
#include "ops/operations.h"

namespace crema {

namespace {

class ArgMaxLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1);
    setup.ExpectTops(1);
    const ArgMaxParameter& param = setup.param().argmax_param();
    const Shape& shape = setup.bottom_shape(0);
    if (param.has_axis()) {
      const int axis = setup.CanonicalAxis("argmax_param.axis", param.axis());
      problem_ = {ClassAxis(shape, axis), param.top_k(), !param.out_max_val(), param.out_max_val()};
      Shape top = shape;
      top.set(axis, param.top_k());
      setup.SetTop(0, top);
    } else {
      problem_ = {ItemsAsRows(shape), param.top_k(), true, param.out_max_val()};
      std::vector<int64_t> top(std::max(3, shape.axes()), 1);
      top[0] = problem_.axis.outer;
      top[1] = param.out_max_val() ? 2 : 1;
      top[2] = param.top_k();
      setup.SetTop(0, Shape(std::move(top)));
    }
    if (problem_.top_k < 1 || problem_.top_k > problem_.axis.classes) {
      setup.Fail("argmax_param.top_k", "top_k " + std::to_string(problem_.top_k) + " is outside 1 to " +
                                           std::to_string(problem_.axis.classes) + ", the number of elements of \"" +
                                           setup.param().bottom(0) + "\" that are compared");
    }
    setup.MakeNonDifferentiable();
  }

  void Forward(const LayerRun& run) override { run.ops->ArgMax(problem_, run.bottoms[0].f32(), run.tops[0].f32()); }

 private:
  ArgMaxProblem problem_;
};

}  // namespace

REGISTER_LAYER(ArgMax, ArgMaxLayer, "argmax_param");

}  // namespace crema
