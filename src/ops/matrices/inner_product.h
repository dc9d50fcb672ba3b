// Fully connected layers: destination[rows][outputs] = source[rows][inputs] * weights^T + bias, f32.
#ifndef CREMA_OPS_MATRICES_INNER_PRODUCT_H_
#define CREMA_OPS_MATRICES_INNER_PRODUCT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "crema/tensor.h"
#include "ops/kernel_choice.h"

namespace crema {

struct InnerProductProblem {
  int64_t rows = 1, inputs = 1, outputs = 1;
  bool transpose = false;           // weights are stored inputs x outputs instead of outputs x inputs
  bool bias = true;                 // Forward adds it
  Factors factors = Factors::kF32;  // all tensors are f32
  bool source_gradient = false, weights_gradient = false, bias_gradient = false;  // which gradients Backward writes
};

// As ConvolutionKernel: allocates nothing when run, one thread at a time.
class InnerProductKernel {
 public:
  virtual ~InnerProductKernel() = default;
  virtual size_t forward_workspace() const { return 0; }
  virtual size_t backward_workspace() const { return 0; }
  virtual void Forward(const float* source, const float* weights, const float* bias, float* destination,
                       std::byte* workspace) = 0;
  // Overwrites all of the gradients that the problem asks for; pointers to others are ignored.
  virtual void Backward(const float* source, const float* weights, const float* destination_gradient,
                        float* source_gradient, float* weights_gradient, float* bias_gradient,
                        std::byte* workspace) = 0;
};

// Chooses from {"oneDNN bf16", "gemm", "reference"}; `only` forces one of them.
std::unique_ptr<InnerProductKernel> MakeInnerProduct(const InnerProductProblem& problem, const Device& device,
                                                     KernelChoice* choice, std::string_view only = {});

}  // namespace crema

#endif  // CREMA_OPS_MATRICES_INNER_PRODUCT_H_
