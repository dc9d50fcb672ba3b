#include "layers/unit_rows.h"

#include "ops/operations.h"

namespace crema {

namespace {

float* Floats(const Buffer& buffer) { return reinterpret_cast<float*>(buffer.data()); }

}  // namespace

void UnitRows::CheckFiller(LayerSetup& setup, const std::string& field, const FillerParameter& filler) {
  if (setup.phase() != TRAIN || filler.type() != "constant" || filler.value() != 0) return;
  setup.Warn(field,
             "weights begin with zeros, which have no direction, so that nothing is learnt unless a file gives others; "
             "set weight_filler { type: \"xavier\" }");
}

void UnitRows::Plan(const LayerPlan& plan) {
  Device& device = *plan.context().device;
  trains_ = plan.trains();
  version_ = 0;
  unit_ = Buffer(device, static_cast<size_t>(problem_.count()) * sizeof(float));
  inverse_ = Buffer(device, static_cast<size_t>(problem_.images) * sizeof(float));
  one_.Upload(device, {1});
}

const float* UnitRows::Forward(const LayerRun& run, const float* weights) {
  if (trains_ || version_ != run.parameters_version) {
    run.ops->NormalizeForward(problem_, weights, one_.data(), Floats(unit_), Floats(inverse_));
    version_ = run.parameters_version;
  }
  return unit();
}

void UnitRows::Backward(const LayerRun& run, const float* weights, float* gradient) const {
  run.ops->NormalizeBackward(problem_, weights, one_.data(), Floats(inverse_), gradient, gradient, nullptr);
}

}  // namespace crema
