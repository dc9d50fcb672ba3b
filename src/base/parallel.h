// Loops over threads. One pool for everything that computes: OpenMP's, which oneDNN and OpenBLAS share.
#ifndef CREMA_BASE_PARALLEL_H_
#define CREMA_BASE_PARALLEL_H_

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace crema {

// Calls body(begin, end) on disjoint ranges that cover [0, n), on as many threads as each get at least `grain` items.
// Where grain is 64 or more, every range begins at a multiple of 64, so that a vectorised body treats an element alike
// (as part of a vector, or of the scalar rest, which may round otherwise) on any number of threads. body must not
// throw.
template <typename Body>
void ParallelFor(int64_t n, int64_t grain, const Body& body) {
  constexpr int64_t kWidestLoop = 64;  // floats that an unrolled AVX-512 loop takes at once
  const int64_t unit = grain >= kWidestLoop ? kWidestLoop : 1, units = (n + unit - 1) / unit;
  const int64_t wanted = std::min<int64_t>(omp_get_max_threads(), n / std::max<int64_t>(grain, 1));
  if (wanted < 2 || omp_in_parallel()) {
    if (n > 0) body(int64_t{0}, n);
    return;
  }
#pragma omp parallel num_threads(static_cast <int>(wanted))
  {
    const int64_t threads = omp_get_num_threads(), id = omp_get_thread_num();
    const int64_t begin = units * id / threads * unit, end = std::min(n, units * (id + 1) / threads * unit);
    if (begin < end) body(begin, end);
  }
}

}  // namespace crema

#endif  // CREMA_BASE_PARALLEL_H_
