// Products of a matrix with a transposed one, f32: for a layer's weights, which lie a row for each output, and batches
// that are too small to pay for bringing the weights into another order first, as products of large matrices begin.
#ifndef CREMA_OPS_MATRICES_DOT_PRODUCTS_H_
#define CREMA_OPS_MATRICES_DOT_PRODUCTS_H_

#include <cstdint>

namespace crema {

// C[m][n] = A[m][k] B[n][k]^T, or with `add` C += it; lda, ldb and ldc are the distances between rows. Threaded; an
// element is the same on any number of threads, and does not depend on the other rows. Reads B once, from end to end,
// and takes no memory.
void DotProducts(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb, bool add,
                 float* c, int64_t ldc);

// Whether that is the fastest way here, by its sizes.
bool PrefersDotProducts(int64_t m, int64_t n, int64_t k);

}  // namespace crema

#endif  // CREMA_OPS_MATRICES_DOT_PRODUCTS_H_
