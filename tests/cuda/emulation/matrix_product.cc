// Stands in for cuBLASLt.
#include "cuda/matrices/matrix_product.h"

#include <vector>

#include "base/bfloat16.h"
#include "base/float16.h"
#include "ops/matrices/gemm.h"

namespace crema::cuda {

struct MatrixProducts::Impl {
  const CudaGpu& gpu;
};

MatrixProducts::MatrixProducts(CudaGpu& gpu) : impl_(new Impl{gpu}) {}
MatrixProducts::~MatrixProducts() = default;

namespace {

std::vector<float> Rounded(const float* x, int64_t rows, int64_t columns, int64_t stride, Factors factors) {
  std::vector<float> values(static_cast<size_t>(rows * columns));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      const float value = x[r * stride + c];
      float& rounded = values[static_cast<size_t>(r * columns + c)];
      rounded = factors == Factors::kBF16  ? static_cast<float>(BFloat16(value))
                : factors == Factors::kF16 ? static_cast<float>(Float16(value))
                                           : value;
    }
  }
  return values;
}

void MultiplyOne(const Product& p, const float* a, const float* b, float* c) {
  const int64_t a_columns = p.transpose_a ? p.m : p.k, b_columns = p.transpose_b ? p.k : p.n;
  const auto left = Rounded(a, p.a_rows(), a_columns, p.a_stride(), p.factors);
  const auto right = Rounded(b, p.b_rows(), b_columns, p.b_stride(), p.factors);
  GemmStrided(p.transpose_a, p.transpose_b, p.m, p.n, p.k, p.alpha, left.data(), a_columns, right.data(), b_columns,
              p.beta, c, p.c_stride());
  if (!p.bias) return;
  for (int64_t r = 0; r < p.m; ++r) {
    for (int64_t j = 0; j < p.n; ++j) c[r * p.c_stride() + j] += p.bias[j];
  }
}

}  // namespace

void MatrixProducts::Multiply(const Product& p, const float* a, const float* b, float* c) {
  Check(crema_emulation::Enqueue(impl_->gpu.queue().stream,
                                 [=] {
                                   for (int64_t i = 0; i < p.batches; ++i) {
                                     MultiplyOne(p, a + i * p.a_rows() * p.a_stride(),
                                                 b + i * p.b_rows() * p.b_stride(), c + i * p.m * p.c_stride());
                                   }
                                 }),
        "multiplying matrices");
}

}  // namespace crema::cuda
