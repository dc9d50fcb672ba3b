#include "ops/packed_product.h"

#include <algorithm>
#include <cstring>

#include "base/multiversion.h"
#include "base/parallel.h"
#include "ops/packs.h"
#include "ops/vector_lanes.h"

namespace crema {

namespace {

// B is cut into panels of this many columns, each k x kPanel, the last one filled up with zeros.
constexpr int64_t kPanel = 16;

// kRows rows of C, a panel at a time, summed up in registers of kLanes floats.
template <int kLanes, int kRows>
CREMA_INLINE void Block(int64_t n, int64_t k, const float* a, const float* packed, bool add, float* c) {
  using Floats = typename Pack<kLanes>::Floats;
  constexpr int kParts = kPanel / kLanes;
  for (int64_t column = 0; column < n; column += kPanel, packed += k * kPanel) {
    Floats sum[kRows][kParts] = {};
    for (int64_t l = 0; l < k; ++l) {
      Floats b[kParts];
#pragma GCC unroll 4
      for (int part = 0; part < kParts; ++part) std::memcpy(&b[part], packed + l * kPanel + part * kLanes, sizeof *b);
#pragma GCC unroll 12
      for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 4
        for (int part = 0; part < kParts; ++part) sum[row][part] += a[row * k + l] * b[part];
      }
    }
    const int64_t width = std::min(kPanel, n - column);
#pragma GCC unroll 12
    for (int row = 0; row < kRows; ++row) {
      float* to = c + row * n + column;
      if (width == kPanel) {
#pragma GCC unroll 4
        for (int part = 0; part < kParts; ++part, to += kLanes) {
          Floats total = {};
          if (add) std::memcpy(&total, to, sizeof total);
          total += sum[row][part];
          std::memcpy(to, &total, sizeof total);
        }
      } else {
        float numbers[kPanel];
#pragma GCC unroll 4
        for (int part = 0; part < kParts; ++part)
          std::memcpy(numbers + part * kLanes, &sum[row][part], sizeof sum[0][0]);
        for (int64_t i = 0; i < width; ++i) to[i] = add ? to[i] + numbers[i] : numbers[i];
      }
    }
  }
}

// Blocks of at most kMost rows, which must be what the registers hold: 12 of the 32 of AVX-512, all 16 of AVX2 or SSE
// but those for b and an element of a.
template <int kLanes, int kMost>
CREMA_INLINE void Blocks(int64_t rows, int64_t n, int64_t k, const float* a, const float* packed, bool add, float* c) {
  while (rows > 0) {
    // In blocks of equal size: two of seven rows keep the units busier than 12 and 2.
    const int64_t blocks = (rows + kMost - 1) / kMost, now = (rows + blocks - 1) / blocks;
    switch (now) {
#define CREMA_ROWS(count)                                                        \
  case count:                                                                    \
    if constexpr (count <= kMost) Block<kLanes, count>(n, k, a, packed, add, c); \
    break;
      CREMA_ROWS(1)
      CREMA_ROWS(2)
      CREMA_ROWS(3)
      CREMA_ROWS(4)
      CREMA_ROWS(5)
      CREMA_ROWS(6)
      CREMA_ROWS(7)
      CREMA_ROWS(8)
      CREMA_ROWS(9)
      CREMA_ROWS(10)
      CREMA_ROWS(11)
      CREMA_ROWS(12)
#undef CREMA_ROWS
    }
    rows -= now;
    a += now * k;
    c += now * n;
  }
}

// Each is compiled for its own instruction set only: CREMA_MULTIVERSION would compile all for all.
void NarrowBlocks(int64_t rows, int64_t n, int64_t k, const float* a, const float* packed, bool add, float* c) {
  Blocks<4, 3>(rows, n, k, a, packed, add, c);
}
#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void Avx2Blocks(int64_t rows, int64_t n, int64_t k, const float* a,
                                                    const float* packed, bool add, float* c) {
  Blocks<8, 6>(rows, n, k, a, packed, add, c);
}
__attribute__((target("avx512f"))) void Avx512Blocks(int64_t rows, int64_t n, int64_t k, const float* a,
                                                     const float* packed, bool add, float* c) {
  Blocks<16, 12>(rows, n, k, a, packed, add, c);
}
#endif

}  // namespace

int64_t PackedFloats(int64_t k, int64_t n) { return (n + kPanel - 1) / kPanel * kPanel * k; }

void PackMatrix(bool transpose, int64_t k, int64_t n, const float* b, float* packed) {
  const int64_t panels = (n + kPanel - 1) / kPanel;
  ParallelFor(panels, std::max<int64_t>(1, 16384 / (k * kPanel)), [=](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) {
      const int64_t first = panel * kPanel, width = std::min(kPanel, n - first);
      float* to = packed + panel * k * kPanel;
      if (width < kPanel) std::memset(to, 0, k * kPanel * sizeof *to);
      for (int64_t l = 0; l < k; ++l, to += kPanel) {
        for (int64_t i = 0; i < width; ++i) to[i] = transpose ? b[(first + i) * k + l] : b[l * n + first + i];
      }
    }
  });
}

void PackedProduct(int64_t rows, int64_t n, int64_t k, const float* a, const float* packed, bool add, float* c) {
#if defined(__x86_64__)
  static const auto blocks = ForVectorLanes(NarrowBlocks, Avx2Blocks, Avx512Blocks);
#else
  constexpr auto blocks = NarrowBlocks;
#endif
  blocks(rows, n, k, a, packed, add, c);
}

}  // namespace crema
