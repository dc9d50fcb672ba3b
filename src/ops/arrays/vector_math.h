// Arithmetic on flat arrays of n floats in CPU memory, vectorised and threaded. Arrays may be the same one, but must
// not overlap otherwise; n may be 0. Results do not depend on the number of threads.
#ifndef CREMA_OPS_ARRAYS_VECTOR_MATH_H_
#define CREMA_OPS_ARRAYS_VECTOR_MATH_H_

#include <cstdint>

namespace crema {

// y = value
void Fill(int64_t n, float value, float* y);
// y = x
void Copy(int64_t n, const float* x, float* y);
// Copies `rows` rows of `width` floats between matrices whose rows start x_stride and y_stride floats apart.
void CopyRows(int64_t rows, int64_t width, const float* x, int64_t x_stride, float* y, int64_t y_stride);
// The same for elements of any type; `width` and the strides count bytes.
void CopyByteRows(int64_t rows, int64_t width, const void* x, int64_t x_stride, void* y, int64_t y_stride);
// y = a * x + y
void Axpy(int64_t n, float a, const float* x, float* y);
// y = a * y
void Scale(int64_t n, float a, float* y);
// y = a * x
void Scale(int64_t n, float a, const float* x, float* y);
// y = a + b
void Add(int64_t n, const float* a, const float* b, float* y);

// sums[c] = the sum over r of matrix[r][c], row-major.
void SumRows(int64_t rows, int64_t columns, const float* matrix, float* sums);

// Sums are accumulated in double, in an order that depends on n only.
double Sum(int64_t n, const float* x);
double AbsSum(int64_t n, const float* x);
double SumOfSquares(int64_t n, const float* x);
double Dot(int64_t n, const float* x, const float* y);

// Whether any element is a NaN or an infinity.
bool HasNonFinite(int64_t n, const float* x);

}  // namespace crema

#endif  // CREMA_OPS_ARRAYS_VECTOR_MATH_H_
