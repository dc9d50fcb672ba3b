#include "cuda/arrays/elementwise.h"
#include "cuda/operations.h"
#include "ops/activations/activation_formulas.h"

namespace crema::cuda {

namespace {

struct Reversed {
  GradientScale scale;
  const PassState* state;
  __device__ float operator()(float dy) const { return -scale.FactorOf(state->pass) * dy; }
};

}  // namespace

void CudaOperations::Fill(float value, const Tensor& y) {
  gpu_.UseHere();  // solvers clear states between passes, in threads that did not use this GPU yet
  Map(queue(), formula::Constant{value}, y);
}

void CudaOperations::FillTimes(float value, const float* factor, const Tensor& y) {
  Map(queue(), formula::ConstantTimes{value, factor}, y);
}

void CudaOperations::Activate(const Activation& activation, const Tensor& x, const Tensor& y) {
  WithFormula(activation, [&](const auto& formula) { Map(queue(), formula, y, x); });
}

void CudaOperations::ActivationGradient(const Activation& activation, const Tensor& known, const Tensor& dy,
                                        const Tensor& dx) {
  WithGradient(activation, [&](const auto& formula) { Map(queue(), formula, dx, dy, known); });
}

void CudaOperations::WeightedSum(float a_weight, const Tensor& a, float b_weight, const Tensor& b, const Tensor& y) {
  Map(queue(), formula::WeightedSum{a_weight, b_weight}, y, a, b);
}

void CudaOperations::Multiply(float factor, const Tensor& x, const Tensor& y) {
  Map(queue(), formula::Multiple{factor}, y, x);
}

void CudaOperations::ReverseGradient(const GradientScale& scale, uint64_t, const Tensor& dy, const Tensor& dx) {
  Map(queue(), Reversed{scale, gpu_.state()}, dx, dy);
}

void CudaOperations::Product(const Tensor& a, const Tensor& b, const Tensor& y) {
  Map(queue(), formula::Product{}, y, a, b);
}

void CudaOperations::Maximum(const Tensor& a, const Tensor& b, const Tensor& y) {
  Map(queue(), formula::Maximum{}, y, a, b);
}

void CudaOperations::SumRelu(const Tensor& a, const Tensor& b, const Tensor& y) {
  Map(queue(), formula::SumRelu{}, y, a, b);
}

void CudaOperations::QuotientGradient(const Tensor& dy, const Tensor& y, const Tensor& x, const Tensor& dx) {
  Map(queue(), formula::QuotientGradient{}, dx, dy, y, x);
}

void CudaOperations::Axpy(int64_t n, float a, const float* x, float* y) {
  const TensorSpec spec{Shape{n}, DType::kF32};
  const Tensor sum(y, spec);
  Map(queue(), formula::WeightedSum{a, 1}, sum, Tensor(const_cast<float*>(x), spec), sum);
}

}  // namespace crema::cuda
