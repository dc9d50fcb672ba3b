#include "cuda/operations.h"

namespace crema::cuda {

namespace {

class ProductKernel final : public InnerProductKernel {
 public:
  ProductKernel(const InnerProductProblem& problem, MatrixProducts& products, CudaOperations& operations)
      : problem_(problem), products_(products), operations_(operations) {}

  void Forward(const float* source, const float* weights, const float* bias, float* destination, std::byte*) override {
    Product product = Of(problem_.rows, problem_.outputs, problem_.inputs);
    product.transpose_b = !problem_.transpose;
    if (problem_.bias) product.bias = bias;
    products_.Multiply(product, source, weights, destination);
  }

  void Backward(const float* source, const float* weights, const float* destination_gradient, float* source_gradient,
                float* weights_gradient, float* bias_gradient, std::byte*) override {
    const int64_t rows = problem_.rows, inputs = problem_.inputs, outputs = problem_.outputs;
    if (problem_.source_gradient) {
      Product product = Of(rows, inputs, outputs);
      product.transpose_b = problem_.transpose;
      products_.Multiply(product, destination_gradient, weights, source_gradient);
    }
    if (problem_.weights_gradient) {
      Product product = problem_.transpose ? Of(inputs, outputs, rows) : Of(outputs, inputs, rows);
      product.transpose_a = true;
      const float *left = destination_gradient, *right = source;
      if (problem_.transpose) std::swap(left, right);
      products_.Multiply(product, left, right, weights_gradient);
    }
    if (problem_.bias_gradient) operations_.SumToBias({rows, outputs, 1}, destination_gradient, bias_gradient);
  }

 private:
  Product Of(int64_t m, int64_t n, int64_t k) const {
    Product product;
    product.m = m;
    product.n = n;
    product.k = k;
    product.factors = problem_.factors;
    return product;
  }

  InnerProductProblem problem_;
  MatrixProducts& products_;
  CudaOperations& operations_;
};

}  // namespace

std::unique_ptr<InnerProductKernel> CudaOperations::MakeInnerProduct(const InnerProductProblem& problem,
                                                                     KernelChoice* choice, std::string_view only) {
  if (!ChooseSoleKernel("cuBLASLt", only, choice)) return nullptr;
  return std::make_unique<ProductKernel>(problem, products_, *this);
}

}  // namespace crema::cuda
