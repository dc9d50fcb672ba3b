// What layers share whose top is the bottom with its axes, or what they are made of, in another order.
#ifndef CREMA_LAYERS_PERMUTATION_LAYER_H_
#define CREMA_LAYERS_PERMUTATION_LAYER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "crema/layer.h"
#include "ops/operations.h"

namespace crema {

class PermutationLayer : public Layer {
 public:
  void Forward(const LayerRun& run) override { run.ops->PermuteAxes(forward_, run.bottoms[0], run.tops[0]); }
  void Backward(const LayerRun& run) override {
    run.ops->PermuteAxes(backward_, run.top_grads[0], run.bottom_grads[0]);
  }

 protected:
  // For Setup or Plan: the bottom has these extents, and axis i of the top is its axis order[i]. Returns the top's.
  std::vector<int64_t> Permute(std::span<const int64_t> extents, std::span<const int> order) {
    std::vector<int64_t> top;
    std::vector<int> back(order.size());
    for (size_t i = 0; i < order.size(); ++i) {
      top.push_back(extents[order[i]]);
      back[order[i]] = static_cast<int>(i);
    }
    forward_ = AxisPermutation(extents, order);
    backward_ = AxisPermutation(top, back);
    return top;
  }
  bool moves_nothing() const { return forward_.moves_nothing(); }

 private:
  AxisPermutation forward_, backward_;
};

}  // namespace crema

#endif  // CREMA_LAYERS_PERMUTATION_LAYER_H_
