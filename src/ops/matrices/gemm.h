// Matrix product of dense row-major f32 matrices.
#ifndef CREMA_OPS_MATRICES_GEMM_H_
#define CREMA_OPS_MATRICES_GEMM_H_

#include <cstdint>
#include <string>

namespace crema {

// C[m][n] = alpha * op(A)[m][k] * op(B)[k][n] + beta * C, op transposing where asked: A is then stored k x m, B n x k.
// With beta == 0 C is never read. Runs on the threads of OpenMP, on the calling thread alone inside a parallel region.
void Gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
          const float* b, float beta, float* c);

// The same with the distance between rows as stored (lda >= columns of A as stored, and so on).
void GemmStrided(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
                 int64_t lda, const float* b, int64_t ldb, float beta, float* c, int64_t ldc);

// Before several threads call Gemm at a time, each of which has so many of OpenMP's: OpenBLAS keeps one number for the
// process, and frees memory that it computes with when a call finds another one.
void SetGemmThreads(int threads);

// Floats in a vector of the kernels that OpenBLAS has for an x86-64 processor which it calls `core`, in
// whatever case.
int OpenBlasLanes(const char* core);

// The libraries that multiply, for people: "oneDNN 2.6.3, OpenBLAS 0.3.21 (SkylakeX)".
std::string DescribeGemm();

// Plain loops for tests.
void GemmReference(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
                   const float* b, float beta, float* c);

}  // namespace crema

#endif  // CREMA_OPS_MATRICES_GEMM_H_
