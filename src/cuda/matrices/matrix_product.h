// Products of matrices on a GPU, by cuBLASLt.
#ifndef CREMA_CUDA_MATRICES_MATRIX_PRODUCT_H_
#define CREMA_CUDA_MATRICES_MATRIX_PRODUCT_H_

#include <cstdint>
#include <memory>

#include "crema/tensor.h"
#include "cuda/device/gpu.h"

namespace crema::cuda {

// C[m][n] = alpha * op(A)[m][k] * op(B)[k][n] + beta * C (+ bias[n] in every row), f32, row-major; op transposes where
// asked: A is then stored k x m, B n x k. With beta == 0 C is never read.
struct Product {
  bool transpose_a = false, transpose_b = false;
  int64_t m = 1, n = 1, k = 1;
  float alpha = 1, beta = 0;
  // Floats from row to row as stored; 0: as many as a row has.
  int64_t lda = 0, ldb = 0, ldc = 0;
  const float* bias = nullptr;
  // That many products of one size; each matrix begins where the last row of the one before ends.
  int64_t batches = 1;
  Factors factors = Factors::kF32;

  // As stored.
  int64_t a_rows() const { return transpose_a ? k : m; }
  int64_t b_rows() const { return transpose_b ? n : k; }
  int64_t a_stride() const { return lda ? lda : transpose_a ? m : k; }
  int64_t b_stride() const { return ldb ? ldb : transpose_b ? k : n; }
  int64_t c_stride() const { return ldc ? ldc : n; }
};

// One for each GPU: holds cuBLASLt's handle, its workspace, and the algorithm that was found for each shape.
class MatrixProducts {
 public:
  explicit MatrixProducts(CudaGpu& gpu);
  ~MatrixProducts();
  // Issues the product. The same bits for the same arguments, always. Chooses an algorithm when it sees a shape for the
  // first time.
  void Multiply(const Product& product, const float* a, const float* b, float* c);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace crema::cuda

#endif  // CREMA_CUDA_MATRICES_MATRIX_PRODUCT_H_
