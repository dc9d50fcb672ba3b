// Permute: the axes in another order; Transpose, which names all of them.
#include <algorithm>
#include <string>
#include <vector>

#include "layers/permutation_layer.h"

namespace crema {

namespace {

class PermuteLayer : public PermutationLayer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1);
    setup.ExpectTops(1);
    const Shape& bottom = setup.bottom_shape(0);
    const std::vector<int> order = ReadOrder(setup, bottom.axes());
    setup.SetTop(0, Shape(Permute(bottom.dims(), order)));
    setup.MoveElements();
    if (moves_nothing()) setup.MakeView();
  }

 private:
  // Which axis of the bottom each axis of the top is.
  static std::vector<int> ReadOrder(const LayerSetup& setup, int axes) {
    const bool all = setup.param().type() == "Transpose";
    const auto& given = all ? setup.param().transpose_param().dim() : setup.param().permute_param().order();
    const std::string name = all ? "dim" : "order", field = all ? "transpose_param.dim" : "permute_param.order";
    // Forks of other meanings name the two axes to be swapped.
    if (all && given.size() != axes) {
      setup.Fail(given.empty() ? "transpose_param" : field,
                 "dim is given " + std::to_string(given.size()) + " times, but " + setup.BottomIs(0) +
                     "; give it once for each axis of the top: which axis of the bottom that is");
    }
    std::vector<int> order;
    const auto has = [&](int axis) { return std::find(order.begin(), order.end(), axis) != order.end(); };
    for (const uint32_t axis : given) {
      if (axis >= static_cast<uint32_t>(axes)) {
        setup.Fail(field, name + " holds " + std::to_string(axis) + ", but " + setup.BottomIs(0) +
                              ", which has axes 0 to " + std::to_string(axes - 1));
      }
      if (has(static_cast<int>(axis))) {
        setup.Fail(field, name + " holds " + std::to_string(axis) + " more than once; give each axis at most once");
      }
      order.push_back(static_cast<int>(axis));
    }
    for (int axis = 0; axis < axes; ++axis) {
      if (!has(axis)) order.push_back(axis);
    }
    return order;
  }
};

}  // namespace

REGISTER_LAYER(Permute, PermuteLayer, "permute_param");
REGISTER_LAYER(Transpose, PermuteLayer, "transpose_param");

}  // namespace crema
