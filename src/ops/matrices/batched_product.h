// Products of many pairs of matrices of one size, f32, row-major and dense, each right behind the one before: what
// attention multiplies.
#ifndef CREMA_OPS_MATRICES_BATCHED_PRODUCT_H_
#define CREMA_OPS_MATRICES_BATCHED_PRODUCT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "crema/tensor.h"
#include "ops/kernel_choice.h"

namespace crema {

// C[m][n] = alpha * op(A)[m][k] * op(B)[k][n] of each pair, op transposing where asked: A is then stored k x m, B n x
// k. m, n and k are at least 1; there may be no pair.
struct BatchedProductProblem {
  int64_t batches = 1, m = 1, n = 1, k = 1;
  bool transpose_a = false, transpose_b = false;
  float alpha = 1;
  Factors factors = Factors::kF32;  // all tensors are f32
};

// The products that give dA and dB of C = alpha * op(A) * op(B), as A and B are stored. That of A reads dC and B, or B
// and dC where A is transposed; that of B reads A and dC, or dC and A where B is transposed.
BatchedProductProblem GradientOfA(const BatchedProductProblem& product);
BatchedProductProblem GradientOfB(const BatchedProductProblem& product);

// As ConvolutionKernel: allocates nothing when run, one thread at a time.
class BatchedProductKernel {
 public:
  virtual ~BatchedProductKernel() = default;
  virtual size_t workspace() const { return 0; }
  // Overwrites all of c, which is not read and lies apart from a and b.
  virtual void Run(const float* a, const float* b, float* c, std::byte* workspace) = 0;
};

// Chooses from {"oneDNN bf16", "oneDNN", "gemm", "reference"}; `only` forces one of them.
std::unique_ptr<BatchedProductKernel> MakeBatchedProduct(const BatchedProductProblem& problem, const Device& device,
                                                         KernelChoice* choice, std::string_view only = {});

}  // namespace crema

#endif  // CREMA_OPS_MATRICES_BATCHED_PRODUCT_H_
