// Matrix products with a right-hand side that is brought into the order of the inner loop once and then used many
// times, f32, row-major: for the few rows of a recurrent step, where Gemm would spend its time on reordering.
#ifndef CREMA_OPS_MATRICES_PACKED_PRODUCT_H_
#define CREMA_OPS_MATRICES_PACKED_PRODUCT_H_

#include <cstdint>

namespace crema {

// Floats that the packed form of a k x n matrix takes.
int64_t PackedFloats(int64_t k, int64_t n);

// packed = B[k][n], or with `transpose` the B whose transpose is stored, n x k. Threaded.
void PackMatrix(bool transpose, int64_t k, int64_t n, const float* b, float* packed);

// C[rows][n] = A[rows][k] * B, or with `add` C += A * B. On the calling thread; a row's result does not depend on the
// other rows, so that threads may share them out in any way.
void PackedProduct(int64_t rows, int64_t n, int64_t k, const float* a, const float* packed, bool add, float* c);

// The same of the A whose transpose is stored, k x rows, each of its rows `step` floats behind the one before.
void TransposedPackedProduct(int64_t rows, int64_t n, int64_t k, const float* a, int64_t step, const float* packed,
                             bool add, float* c);

}  // namespace crema

#endif  // CREMA_OPS_MATRICES_PACKED_PRODUCT_H_
