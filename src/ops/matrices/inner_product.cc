#include "ops/matrices/inner_product.h"

#include <algorithm>

#include "base/parallel.h"
#include "ops/arrays/vector_math.h"
#include "ops/matrices/gemm.h"
#include "ops/matrices/inner_product_kernels.h"

namespace crema {

namespace {

// The two kernels differ only in the matrix product they call.
using Product = void (*)(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
                         const float* a, const float* b, float beta, float* c);

class GemmInnerProduct final : public InnerProductKernel {
 public:
  GemmInnerProduct(const InnerProductProblem& problem, Product product) : problem_(problem), product_(product) {}

  void Forward(const float* source, const float* weights, const float* bias, float* destination, std::byte*) override {
    const int64_t outputs = problem_.outputs;
    if (problem_.bias) {
      // The product then adds to the bias, which saves a pass over destination.
      ParallelFor(problem_.rows, std::max<int64_t>(1, 65536 / outputs), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) std::copy_n(bias, outputs, destination + row * outputs);
      });
    }
    product_(false, !problem_.transpose, problem_.rows, outputs, problem_.inputs, 1, source, weights,
             problem_.bias ? 1.0f : 0.0f, destination);
  }

  void Backward(const float* source, const float* weights, const float* destination_gradient, float* source_gradient,
                float* weights_gradient, float* bias_gradient, std::byte*) override {
    const int64_t rows = problem_.rows, inputs = problem_.inputs, outputs = problem_.outputs;
    if (problem_.source_gradient) {
      product_(false, problem_.transpose, rows, inputs, outputs, 1, destination_gradient, weights, 0, source_gradient);
    }
    if (problem_.weights_gradient && !problem_.transpose) {
      product_(true, false, outputs, inputs, rows, 1, destination_gradient, source, 0, weights_gradient);
    }
    if (problem_.weights_gradient && problem_.transpose) {
      product_(true, false, inputs, outputs, rows, 1, source, destination_gradient, 0, weights_gradient);
    }
    if (problem_.bias_gradient) SumRows(rows, outputs, destination_gradient, bias_gradient);
  }

 private:
  InnerProductProblem problem_;
  Product product_;
};

template <Product product>
std::unique_ptr<InnerProductKernel> Make(const InnerProductProblem& problem, const Device& device,
                                         std::string* why_not) {
  if (device.type() != DeviceType::kCpu) {
    *why_not = "runs on the CPU only";
    return nullptr;
  }
  return std::make_unique<GemmInnerProduct>(problem, product);
}

constexpr KernelCandidate<InnerProductKernel, InnerProductProblem> kTable[] = {
    {"oneDNN bf16", MakeInnerProductBFloat16},
    {"gemm", Make<Gemm>},
    {"reference", Make<GemmReference>},
};

}  // namespace

std::unique_ptr<InnerProductKernel> MakeInnerProduct(const InnerProductProblem& problem, const Device& device,
                                                     KernelChoice* choice, std::string_view only) {
  return ChooseKernel(kTable, problem, device, only, choice);
}

}  // namespace crema
