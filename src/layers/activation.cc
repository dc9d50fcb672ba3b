#include "layers/activation.h"

#include <cmath>

#include "base/number_text.h"
#include "ops/operations.h"

namespace crema {

namespace {

using Kind = Activation::Kind;

// A constant, a straight line or a parabola needs no power.
Activation ReadPower(const PowerParameter& param) {
  const float power = param.power(), scale = param.scale(), shift = param.shift();
  if (power * scale == 0) return {Kind::kLinear, 0, power == 0 ? 1.0f : std::pow(shift, power)};
  if (power == 1) return {Kind::kLinear, scale, shift};
  if (power == 2) return {Kind::kSquare, scale, shift};
  return {Kind::kPower, scale, shift, power};
}

double LogOfBase(float base) { return base == -1 ? 1.0 : std::log(static_cast<double>(base)); }

Activation ReadExp(const ExpParameter& param) {
  const double log_of_base = LogOfBase(param.base());
  return {Kind::kExp, static_cast<float>(log_of_base * param.scale()),
          static_cast<float>(std::exp(log_of_base * param.shift()))};
}

Activation ReadLog(const LogParameter& param) {
  return {Kind::kLog, param.scale(), param.shift(), static_cast<float>(1 / LogOfBase(param.base()))};
}

}  // namespace

Activation ReadActivation(const LayerParameter& param) {
  const std::string& type = param.type();
  if (type == "ReLU") return {Kind::kRelu, param.relu_param().negative_slope()};
  if (type == "ReLU6") return {Kind::kRelu6};
  if (type == "Sigmoid") return {Kind::kSigmoid};
  if (type == "TanH") return {Kind::kTanh};
  if (type == "Swish") return {Kind::kSwish, param.swish_param().beta()};
  if (type == "HardSwish") return {Kind::kHardSwish};
  if (type == "Mish") return {Kind::kMish};
  if (type == "GELU") {
    return {param.gelu_param().approximate() == GELUParameter::TANH ? Kind::kGeluTanh : Kind::kGelu};
  }
  if (type == "ELU") return {Kind::kElu, param.elu_param().alpha()};
  if (type == "AbsVal") return {Kind::kAbs};
  if (type == "BNLL") return {Kind::kBnll};
  if (type == "Power") return ReadPower(param.power_param());
  if (type == "Exp") return ReadExp(param.exp_param());
  if (type == "Log") return ReadLog(param.log_param());
  if (type == "Clip") return {Kind::kClip, param.clip_param().min(), param.clip_param().max()};
  if (type == "Threshold") return {Kind::kThreshold, param.threshold_param().threshold()};
  return {};
}

double FlopsOf(const Activation& activation) { return activation.is_transcendental() ? 20 : 1; }

void CheckBase(const LayerSetup& setup, const std::string& block, float base) {
  if (base == -1 || (base > 0 && std::isfinite(base))) return;
  setup.Fail(block + ".base", "base " + FormatNumber(base) + " has no logarithm; give a number above 0, or -1 for e");
}

void ActivationLayer::Setup(LayerSetup& setup) {
  setup.ExpectBottoms(1);
  setup.ExpectTops(1);
  activation_ = ReadActivation(setup.param());
  setup.SetTop(0, setup.bottom_shape(0));
  setup.AllowChannelsLast();
  setup.AllowHalfPrecision();
  setup.AllowInPlace();
  setup.AllowSplitBatch();
  setup.SetFlops(FlopsOf(activation_) * static_cast<double>(setup.bottom_shape(0).count()));
}

void ActivationLayer::Plan(LayerPlan& plan) {
  if (!plan.backward() || activation_.gradient_is_constant()) return;
  if (activation_.gradient_reads_output()) {
    plan.BackwardReadsTop(0);
  } else {
    plan.BackwardReadsBottom(0);
  }
}

void ActivationLayer::Forward(const LayerRun& run) { run.ops->Activate(activation_, run.bottoms[0], run.tops[0]); }

void ActivationLayer::Backward(const LayerRun& run) {
  const Tensor& dy = run.top_grads[0];
  const Tensor& known = activation_.gradient_is_constant()    ? dy  // nothing else was kept
                        : activation_.gradient_reads_output() ? run.tops[0]
                                                              : run.bottoms[0];
  run.ops->ActivationGradient(activation_, known, dy, run.bottom_grads[0]);
}

}  // namespace crema
