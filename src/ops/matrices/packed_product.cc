#include "ops/matrices/packed_product.h"

#include <algorithm>
#include <cstring>

#include "base/multiversion.h"
#include "base/parallel.h"
#include "ops/arrays/packs.h"
#include "ops/arrays/vector_lanes.h"

namespace crema {

namespace {

// B is cut into panels of this many columns, each k x kPanel, the last one filled up with zeros.
constexpr int64_t kPanel = 16;

// kRows rows of C, kPanels panels at a time, summed up in registers of kLanes floats. `step` floats lie between the
// rows of what is stored of A, which is A's transpose where kTransposed. Returns the columns that are done.
template <int kLanes, bool kTransposed, int kRows, int kPanels>
CREMA_INLINE int64_t Block(int64_t column, int64_t n, int64_t k, const float* a, int64_t step, const float* packed,
                           bool add, float* c) {
  using Floats = typename Pack<kLanes>::Floats;
  constexpr int kEach = kPanel / kLanes, kParts = kPanels * kEach;
  for (; column + (kPanels - 1) * kPanel < n; column += kPanels * kPanel) {
    const float* const panels = packed + column * k;
    Floats sum[kRows][kParts] = {};
    for (int64_t l = 0; l < k; ++l) {
      Floats b[kParts];
#pragma GCC unroll 4
      for (int part = 0; part < kParts; ++part) {
        LoadPack(panels + part / kEach * k * kPanel + l * kPanel + part % kEach * kLanes, &b[part]);
      }
#pragma GCC unroll 12
      for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 4
        for (int part = 0; part < kParts; ++part) {
          sum[row][part] += a[kTransposed ? l * step + row : row * step + l] * b[part];
        }
      }
    }
    const int64_t width = std::min(kPanels * kPanel, n - column);
#pragma GCC unroll 12
    for (int row = 0; row < kRows; ++row) {
      float* to = c + row * n + column;
      if (width == kPanels * kPanel) {
#pragma GCC unroll 4
        for (int part = 0; part < kParts; ++part, to += kLanes) {
          Floats total = {};
          if (add) LoadPack(to, &total);
          total += sum[row][part];
          StorePack(total, to);
        }
      } else {
        float numbers[kPanels * kPanel];
#pragma GCC unroll 4
        for (int part = 0; part < kParts; ++part) StorePack(sum[row][part], numbers + part * kLanes);
        for (int64_t i = 0; i < width; ++i) to[i] = add ? to[i] + numbers[i] : numbers[i];
      }
    }
  }
  return column;
}

// All columns: of AVX-512's 32 registers two panels' sums fit, so that an element of A serves two vectors.
template <int kLanes, bool kTransposed, int kRows>
CREMA_INLINE void Columns(int64_t n, int64_t k, const float* a, int64_t step, const float* packed, bool add, float* c) {
  int64_t column = 0;
  if constexpr (kLanes == kPanel) {
    column = Block<kLanes, kTransposed, kRows, 2>(column, n, k, a, step, packed, add, c);
  }
  Block<kLanes, kTransposed, kRows, 1>(column, n, k, a, step, packed, add, c);
}

// Blocks of at most kMost rows, which must be what the registers hold: 12 of the 32 of AVX-512, all 16 of AVX2 or SSE
// but those for b and an element of a.
template <int kLanes, bool kTransposed, int kMost>
CREMA_INLINE void Blocks(int64_t rows, int64_t n, int64_t k, const float* a, int64_t step, const float* packed,
                         bool add, float* c) {
  while (rows > 0) {
    // In blocks of equal size: two of seven rows keep the units busier than 12 and 2.
    const int64_t blocks = (rows + kMost - 1) / kMost, now = (rows + blocks - 1) / blocks;
    switch (now) {
#define CREMA_ROWS(count)                                                                             \
  case count:                                                                                         \
    if constexpr (count <= kMost) Columns<kLanes, kTransposed, count>(n, k, a, step, packed, add, c); \
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
    a += kTransposed ? now : now * step;
    c += now * n;
  }
}

// Each is compiled for its own instruction set only: CREMA_MULTIVERSION would compile all for all.
template <bool kTransposed>
void NarrowBlocks(int64_t rows, int64_t n, int64_t k, const float* a, int64_t step, const float* packed, bool add,
                  float* c) {
  Blocks<4, kTransposed, 3>(rows, n, k, a, step, packed, add, c);
}
#if defined(__x86_64__)
template <bool kTransposed>
__attribute__((target("avx2,fma"))) void Avx2Blocks(int64_t rows, int64_t n, int64_t k, const float* a, int64_t step,
                                                    const float* packed, bool add, float* c) {
  Blocks<8, kTransposed, 6>(rows, n, k, a, step, packed, add, c);
}
template <bool kTransposed>
__attribute__((target("avx512f"))) void Avx512Blocks(int64_t rows, int64_t n, int64_t k, const float* a, int64_t step,
                                                     const float* packed, bool add, float* c) {
  Blocks<16, kTransposed, 12>(rows, n, k, a, step, packed, add, c);
}
#endif

template <bool kTransposed>
void Product(int64_t rows, int64_t n, int64_t k, const float* a, int64_t step, const float* packed, bool add,
             float* c) {
#if defined(__x86_64__)
  static const auto blocks =
      ForVectorLanes(NarrowBlocks<kTransposed>, Avx2Blocks<kTransposed>, Avx512Blocks<kTransposed>);
#else
  constexpr auto blocks = NarrowBlocks<kTransposed>;
#endif
  blocks(rows, n, k, a, step, packed, add, c);
}

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
  Product<false>(rows, n, k, a, k, packed, add, c);
}

void TransposedPackedProduct(int64_t rows, int64_t n, int64_t k, const float* a, int64_t step, const float* packed,
                             bool add, float* c) {
  Product<true>(rows, n, k, a, step, packed, add, c);
}

}  // namespace crema
