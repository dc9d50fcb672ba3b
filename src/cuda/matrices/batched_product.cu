#include "cuda/operations.h"

namespace crema::cuda {

namespace {

class BatchedProductByCublas final : public BatchedProductKernel {
 public:
  BatchedProductByCublas(const BatchedProductProblem& problem, MatrixProducts& products) : products_(products) {
    product_.transpose_a = problem.transpose_a;
    product_.transpose_b = problem.transpose_b;
    product_.m = problem.m;
    product_.n = problem.n;
    product_.k = problem.k;
    product_.alpha = problem.alpha;
    product_.factors = problem.factors;
    product_.batches = problem.batches;
  }

  void Run(const float* a, const float* b, float* c, std::byte*) override { products_.Multiply(product_, a, b, c); }

 private:
  Product product_;
  MatrixProducts& products_;
};

}  // namespace

std::unique_ptr<BatchedProductKernel> CudaOperations::MakeBatchedProduct(const BatchedProductProblem& problem,
                                                                         KernelChoice* choice, std::string_view only) {
  if (!ChooseSoleKernel("cuBLASLt", only, choice)) return nullptr;
  return std::make_unique<BatchedProductByCublas>(problem, products_);
}

}  // namespace crema::cuda
