// What layers share that undo pooling: bottom 0, images, becomes larger ones.
#ifndef CREMA_LAYERS_UNPOOLED_IMAGES_H_
#define CREMA_LAYERS_UNPOOLED_IMAGES_H_

#include <cstdint>
#include <memory>
#include <string>

#include "crema/layer.h"
#include "ops/operations.h"

namespace crema {

// Setup of a derived class ends with one of the two ways.
class UnpooledImages : public Layer {
 public:
  void Plan(LayerPlan& plan) override;
  void Forward(const LayerRun& run) override;
  void Backward(const LayerRun& run) override;
  void OnBadValue(int64_t position, float value) const override;

 protected:
  // Fails unless there is one top, and bottom 0 is images.
  static void ExpectImages(const LayerSetup& setup);
  // Each element goes to where bottom 1 says, the second top of a Pooling layer, in a top of this size, which `block`
  // gave; 0 elsewhere. `remedy`: what to give where an index lies outside.
  void PutBack(LayerSetup& setup, const std::string& block, int64_t height, int64_t width, std::string remedy);
  // Each element is added to all of its window of the top: what pooling the top by `method` (kSum, kAverage) would give
  // to its gradient.
  void Spread(LayerSetup& setup, const std::string& block, PoolingMethod method, const PoolingWindow& vertical,
              const PoolingWindow& horizontal, int64_t height, int64_t width);
  // Each element belongs to its window of the top, wherever in it: the layer's coordinate map.
  static void StandInWindows(LayerSetup& setup, const PoolingWindow& vertical, const PoolingWindow& horizontal);

 private:
  bool by_mask_ = false;
  UnpoolingProblem places_;  // by_mask_
  int64_t height_ = 1, width_ = 1;
  std::string mask_, remedy_;
  PoolingProblem windows_;  // else
  std::unique_ptr<PoolingKernel> kernel_;
};

}  // namespace crema

#endif  // CREMA_LAYERS_UNPOOLED_IMAGES_H_
