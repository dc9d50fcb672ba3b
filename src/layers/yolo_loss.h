// What the layers share that say how wrong YOLO's predictions of one grid are.
#ifndef CREMA_LAYERS_YOLO_LOSS_H_
#define CREMA_LAYERS_YOLO_LOSS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "crema/layer.h"
#include "layers/object_check.h"
#include "ops/detection/yolo.h"

namespace crema {

// Bottoms: predictions and objects. Top: the loss. Setup fills in loss_.
class YoloLossLayer : public Layer {
 public:
  void Plan(LayerPlan& plan) override;
  void Forward(const LayerRun& run) override;
  void Backward(const LayerRun& run) override;
  void OnBadValue(int64_t position, float value) const override { object_check_.Refuse(position, value); }

 protected:
  // Before loss_ is filled in, and behind; `classes`: the field that counts them.
  void BeginSetup(LayerSetup& setup);
  void EndSetup(LayerSetup& setup, const std::string& classes);

  YoloLoss loss_;

 private:
  int64_t predictions() const { return loss_.grid.images * loss_.grid.of_image(); }
  float* GradientOf(const LayerRun& run) const { return run.saved[static_cast<size_t>(gradient_)].f32(); }

  ObjectCheck object_check_;
  int gradient_ = -1;     // which of the saved tensors
  size_t losses_at_ = 0;  // in the workspace; 0: the gradient is saved, else it lies before
};

}  // namespace crema

#endif  // CREMA_LAYERS_YOLO_LOSS_H_
