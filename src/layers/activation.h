// Layers that are one function of single elements without learnt parameters (ops/activations/activation.h).
#ifndef CREMA_LAYERS_ACTIVATION_H_
#define CREMA_LAYERS_ACTIVATION_H_

#include "crema/layer.h"
#include "ops/activations/activation.h"

namespace crema {

// The activation that a layer is, whose settings must be checked; kNone for one of another type.
Activation ReadActivation(const LayerParameter& param);

// Operations for each element, for reports.
double FlopsOf(const Activation& activation);

// Fails where `base`, the field of `block` ("exp_param"), is neither -1 (for e) nor a finite number above 0.
void CheckBase(const LayerSetup& setup, const std::string& block, float base);

class ActivationLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override;
  void Plan(LayerPlan& plan) override;
  void Forward(const LayerRun& run) override;
  void Backward(const LayerRun& run) override;

 private:
  Activation activation_;
};

}  // namespace crema

#endif  // CREMA_LAYERS_ACTIVATION_H_
