#include "ops/matrices/dot_products.h"

#include <omp.h>

#include <algorithm>
#include <cstring>

#include "base/multiversion.h"
#include "base/parallel.h"
#include "ops/arrays/packs.h"
#include "ops/arrays/vector_lanes.h"

namespace crema {

namespace {

// The loops go over kDepth elements of all rows before the next ones: six rows of A stay in the first cache, while
// kRowsOfB rows of B, in the second, pass by for each six.
constexpr int64_t kDepth = 1024, kRowsOfB = 64;
constexpr int kB = 4;  // rows of B whose products are in registers; a vector of their sums is written at a time

struct Operands {
  const float* a;
  int64_t lda;
  const float* b;
  int64_t ldb;
  float* c;
  int64_t ldc;
  const float* ahead;  // a row of what will be read of B next, for its way from memory
};

// Adds of vectors a0 a1 a2 a3 ... and b0 b1 b2 b3 ..., by fours, a0 b0 a1 b1 and a2 b2 a3 b3.
template <int kLanes, typename Floats>
CREMA_INLINE void AddPairs(const Floats& a, const Floats& b, Floats* sums) {
  Floats first, second;
  if constexpr (kLanes == 4) {
    PickLanes<0, 4, 1, 5>(a, b, &first);
    PickLanes<2, 6, 3, 7>(a, b, &second);
  } else if constexpr (kLanes == 8) {
    PickLanes<0, 8, 1, 9, 4, 12, 5, 13>(a, b, &first);
    PickLanes<2, 10, 3, 11, 6, 14, 7, 15>(a, b, &second);
  } else {
    static_assert(kLanes == 16);
    PickLanes<0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29>(a, b, &first);
    PickLanes<2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31>(a, b, &second);
  }
  *sums = first + second;
}

template <int kLanes, typename Floats>
CREMA_INLINE void AddFours(const Floats& sums, Pack<4>::Floats* total) {
  if constexpr (kLanes == 4) {
    *total += sums;
  } else {
    typename Pack<kLanes / 2>::Floats low, high;
    std::memcpy(&low, &sums, sizeof low);
    std::memcpy(&high, reinterpret_cast<const char*>(&sums) + sizeof low, sizeof high);
    low += high;
    AddFours<kLanes / 2>(low, total);
  }
}

// Adds to *total the sum of all lanes of each of the four vectors.
template <int kLanes, typename Floats>
CREMA_INLINE void AddTotals(const Floats (&sums)[kB], Pack<4>::Floats* total) {
  Floats even, odd, all;
  AddPairs<kLanes>(sums[0], sums[2], &even);
  AddPairs<kLanes>(sums[1], sums[3], &odd);
  AddPairs<kLanes>(even, odd, &all);
  AddFours<kLanes>(all, total);
}

// Adds the products of floats [at, at + bytes of a vector) of the rows.
template <int kLanes, int kRows>
CREMA_INLINE void AddProducts(const Operands& from, int64_t at, size_t bytes, int columns,
                              typename Pack<kLanes>::Floats (*sums)[kB]) {
  using Floats = typename Pack<kLanes>::Floats;
  Floats b[kB] = {};
#pragma GCC unroll 4
  for (int column = 0; column < columns; ++column) std::memcpy(&b[column], from.b + column * from.ldb + at, bytes);
#pragma GCC unroll 6
  for (int row = 0; row < kRows; ++row) {
    Floats a = {};
    std::memcpy(&a, from.a + row * from.lda + at, bytes);
#pragma GCC unroll 4
    for (int column = 0; column < columns; ++column) sums[row][column] += a * b[column];
  }
}

// kRows rows of A with kColumns of B.
template <int kLanes, int kRows, int kColumns>
CREMA_INLINE void Tile(int64_t length, const Operands& at, bool add) {
  typename Pack<kLanes>::Floats sums[kRows][kB] = {};
  int64_t l = 0;
  for (; l + kLanes <= length; l += kLanes) {
    if (kRows > 3) __builtin_prefetch(at.ahead + l, 0, 2);
    AddProducts<kLanes, kRows>(at, l, kLanes * sizeof(float), kColumns, sums);
  }
  if (l < length) AddProducts<kLanes, kRows>(at, l, (length - l) * sizeof(float), kColumns, sums);
#pragma GCC unroll 6
  for (int row = 0; row < kRows; ++row) {
    float* const to = at.c + row * at.ldc;
    Pack<4>::Floats total = {};
    if (add) std::memcpy(&total, to, kColumns * sizeof(float));
    AddTotals<kLanes>(sums[row], &total);
    std::memcpy(to, &total, kColumns * sizeof(float));
  }
}

template <int kLanes, int kRows>
CREMA_INLINE void Tiles(int64_t n, int64_t length, Operands at, bool add) {
  for (; n > 0; n -= kB, at.b += kB * at.ldb, at.c += kB, at.ahead += kB * at.ldb) {
    switch (std::min<int64_t>(n, kB)) {
      case 1:
        return Tile<kLanes, kRows, 1>(length, at, add);
      case 2:
        return Tile<kLanes, kRows, 2>(length, at, add);
      case 3:
        return Tile<kLanes, kRows, 3>(length, at, add);
      default:
        Tile<kLanes, kRows, kB>(length, at, add);
    }
  }
}

// At most kMost rows of A at a time, which must be what the registers hold with their sums: 6 of the 32 of AVX-512, 3
// of the 16 of AVX2 or SSE.
template <int kLanes, int kMost>
CREMA_INLINE void Products(int64_t m, int64_t n, int64_t k, const Operands& all, bool add) {
  for (int64_t first = 0; first < k; first += kDepth, add = true) {
    const int64_t length = std::min(kDepth, k - first);
    Operands at = all;
    at.a += first;
    at.b += first;
    // The next part of these rows, or the beginning of the rows behind them.
    at.ahead = first + kDepth < k ? at.b + kDepth : all.b + n * all.ldb;
    for (int64_t rows = m; rows > 0;) {
      const int64_t tiles = (rows + kMost - 1) / kMost, now = (rows + tiles - 1) / tiles;
      switch (now) {
#define CREMA_ROWS(count)                                                   \
  case count:                                                               \
    if constexpr (count <= kMost) Tiles<kLanes, count>(n, length, at, add); \
    break;
        CREMA_ROWS(1)
        CREMA_ROWS(2)
        CREMA_ROWS(3)
        CREMA_ROWS(4)
        CREMA_ROWS(5)
        CREMA_ROWS(6)
#undef CREMA_ROWS
      }
      rows -= now;
      at.a += now * at.lda;
      at.c += now * at.ldc;
      at.ahead += at.ldb;
    }
  }
}

// Each is compiled for its own instruction set only: CREMA_MULTIVERSION would compile all for all.
void NarrowProducts(int64_t m, int64_t n, int64_t k, const Operands& all, bool add) {
  Products<4, 3>(m, n, k, all, add);
}
#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void Avx2Products(int64_t m, int64_t n, int64_t k, const Operands& all, bool add) {
  Products<8, 3>(m, n, k, all, add);
}
__attribute__((target("avx512f"))) void Avx512Products(int64_t m, int64_t n, int64_t k, const Operands& all, bool add) {
  Products<16, 6>(m, n, k, all, add);
}
#endif

}  // namespace

void DotProducts(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb, bool add,
                 float* c, int64_t ldc) {
#if defined(__x86_64__)
  static const auto products = ForVectorLanes(NarrowProducts, Avx2Products, Avx512Products);
#else
  constexpr auto products = NarrowProducts;
#endif
  if (k == 0 && !add) {
    for (int64_t row = 0; row < m; ++row) std::fill_n(c + row * ldc, n, 0.0f);
    return;
  }
  // Fewer rows where all threads would not get some.
  const int64_t share = n / omp_get_max_threads() / kB * kB, block = std::clamp<int64_t>(share, kB, kRowsOfB);
  ParallelFor((n + block - 1) / block, 1, [&](int64_t begin, int64_t end) {
    for (int64_t first = begin * block; first < std::min(n, end * block); first += block) {
      products(m, std::min(block, n - first), k, {a, lda, b + first * ldb, ldb, c + first, ldc, nullptr}, add);
    }
  });
}

// Measured with oneDNN 2.6.3 on AVX-512 and, kept from that, on AVX2, two threads: 9216 x 4096 weights took 0.2 of
// dnnl_sgemm's time with 16 and 32 rows, 0.7 with 256; with AVX2 0.9 with 32. It brings the weights into another order
// at every call. With few elements or many rows that pays.
bool PrefersDotProducts(int64_t m, int64_t n, int64_t k) {
  static const int lanes = VectorLanes();
  if (lanes == 4 || m < 2 || n < 16) return false;
  return lanes == 16 ? k >= 128 && m <= std::min<int64_t>(512, k / 2) : k >= 256 && m <= 32;
}

}  // namespace crema
