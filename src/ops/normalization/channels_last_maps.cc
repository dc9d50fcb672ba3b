// Affine maps by channel and their gradients.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/bfloat16.h"
#include "base/multiversion.h"
#include "base/parallel.h"
#include "ops/arrays/packs.h"
#include "ops/arrays/vector_lanes.h"
#include "ops/normalization/channels_last.h"
#include "ops/normalization/channels_last_rows.h"

namespace crema::channels_last {

namespace {

constexpr int kPacks = 2;
static_assert(kPacks * kLanesOf<BFloat16, 4> == Blocks::kWidth);

// Coefficients repeated to the period, one array after the other in the workspace, in the order in which LoadPacks
// takes numbers of the dtype; `otherwise` for none.
const float* Repeat(const float* coefficients, const Blocks& blocks, DType dtype, float*& at, float otherwise = 0) {
  float* repeated = at;
  at += blocks.padded_period;
  for (int64_t i = 0, c = 0; i < blocks.padded_period; ++i, c = c + 1 < blocks.channels ? c + 1 : 0) {
    const float value = coefficients ? coefficients[c] : otherwise;
    if (dtype == DType::kF32) {
      repeated[i] = value;
    } else {
      // A NaN that StorePacks may take.
      constexpr int64_t kWidth = Blocks::kWidth;
      repeated[i / kWidth * kWidth + i % kPacks * (kWidth / kPacks) + i % kWidth / kPacks] =
          std::isnan(value) ? std::numeric_limits<float>::quiet_NaN() : value;
    }
  }
  return repeated;
}

// n <= kPacks * kLanes numbers from and to memory.
template <int kLanes, typename Number>
CREMA_INLINE void LoadBlock(const Number* from, int64_t n, typename Pack<kLanes>::Floats* values) {
  constexpr int64_t kWidth = kPacks * kLanes;
  if (n == kWidth) return LoadPacks<kPacks, kLanes>(from, values);
  Number padded[kWidth] = {};
  std::memcpy(padded, from, static_cast<size_t>(n) * sizeof(Number));
  LoadPacks<kPacks, kLanes>(padded, values);
}
template <int kLanes, typename Number>
CREMA_INLINE void StoreBlock(const typename Pack<kLanes>::Floats* values, int64_t n, Number* to) {
  constexpr int64_t kWidth = kPacks * kLanes;
  if (n == kWidth) return StorePacks<kPacks, kLanes>(values, to);
  Number padded[kWidth];
  StorePacks<kPacks, kLanes>(values, padded);
  std::memcpy(to, padded, static_cast<size_t>(n) * sizeof(Number));
}

// Calls block(first number, its column, how many) for all blocks of the rows.
template <int kLanes, typename Block>
CREMA_INLINE void ForBlocks(int64_t rows, int64_t columns, const Block& block) {
  constexpr int64_t kWidth = kPacks * kLanes;
  const int64_t whole = columns / kWidth * kWidth;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < whole; c += kWidth) block(r * columns + c, c, kWidth);
    if (whole < columns) block(r * columns + whole, whole, columns - whole);
  }
}

// Calls run(map, first number, rows, columns) on all of the tensor: rows of a period, and the rest as one short row.
template <typename Map>
void ForRows(const Blocks& blocks, void (*run)(const Map&, int64_t, int64_t, int64_t), const Map& map) {
  ParallelFor(blocks.rows, std::max<int64_t>(1, 32768 / blocks.period),
              [&](int64_t begin, int64_t end) { run(map, begin * blocks.period, end - begin, blocks.period); });
  if (blocks.rest > 0) run(map, blocks.rows * blocks.period, 1, blocks.rest);
}

template <typename Number, bool kAddend, bool kRelu>
struct AffineRows {
  template <int kVectorLanes>
  CREMA_INLINE static void Run(const ChannelAffine& map, int64_t first, int64_t rows, int64_t columns) {
    constexpr int kLanes = kLanesOf<Number, kVectorLanes>;
    using Floats = typename Pack<kLanes>::Floats;
    const Number* x = static_cast<const Number*>(map.x) + first;
    const Number* addend = kAddend ? static_cast<const Number*>(map.addend) + first : nullptr;
    Number* y = static_cast<Number*>(map.y) + first;
    const float *means = map.mean, *scales = map.scale, *shifts = map.shift;
    const Floats zero{};
    ForBlocks<kLanes>(rows, columns, [&](int64_t at, int64_t column, int64_t n) CREMA_INLINE_LAMBDA {
      Floats value[kPacks], added[kPacks];
      LoadBlock<kLanes>(x + at, n, value);
      if (kAddend) LoadBlock<kLanes>(addend + at, n, added);
      for (int i = 0; i < kPacks; ++i) {
        Floats mean, scale, shift;
        LoadPack(means + column + i * kLanes, &mean);
        LoadPack(scales + column + i * kLanes, &scale);
        LoadPack(shifts + column + i * kLanes, &shift);
        value[i] = (value[i] - mean) * scale + shift;
        if (kAddend) value[i] += added[i];
        if (kRelu) ChooseWhereLarger<sizeof(Number) == sizeof(float)>(zero, value[i], zero, value[i], &value[i]);
      }
      StoreBlock<kLanes>(value, n, y + at);
    });
  }
};

template <typename Number>
void RunAffine(const Blocks& blocks, const ChannelAffine& map) {
  using Function = void (*)(const ChannelAffine&, int64_t, int64_t, int64_t);
  static constexpr Function kTable[2][2] = {
      {RunForVectorLanes<AffineRows<Number, false, false>>, RunForVectorLanes<AffineRows<Number, false, true>>},
      {RunForVectorLanes<AffineRows<Number, true, false>>, RunForVectorLanes<AffineRows<Number, true, true>>}};
  ForRows(blocks, kTable[map.addend != nullptr][map.relu], map);
}

template <typename Number, bool kMasked, bool kCentered, bool kDx, bool kOut>
struct GradientRows {
  template <int kVectorLanes>
  CREMA_INLINE static void Run(const ChannelGradientMap& map, int64_t first, int64_t rows, int64_t columns) {
    constexpr int kLanes = kLanesOf<Number, kVectorLanes>;
    using Floats = typename Pack<kLanes>::Floats;
    const Number* dy = static_cast<const Number*>(map.g.dy) + first;
    const Number* y = kMasked ? static_cast<const Number*>(map.g.y) + first : nullptr;
    const Number* x = kCentered ? static_cast<const Number*>(map.x) + first : nullptr;
    Number* dx = kDx ? static_cast<Number*>(map.dx) + first : nullptr;
    Number* masked = kOut ? static_cast<Number*>(map.masked) + first : nullptr;
    const float *as = map.a, *bs = map.b, *cs = map.c, *means = map.mean;
    ForBlocks<kLanes>(rows, columns, [&](int64_t at, int64_t column, int64_t n) CREMA_INLINE_LAMBDA {
      Floats g[kPacks], top[kPacks], value[kPacks];
      LoadBlock<kLanes>(dy + at, n, g);
      if (kMasked) LoadBlock<kLanes>(y + at, n, top);
      if (kCentered) LoadBlock<kLanes>(x + at, n, value);
      for (int i = 0; i < kPacks; ++i) {
        if (kMasked) ChooseWhereLarger<sizeof(Number) == sizeof(float)>(top[i], Floats{}, g[i], Floats{}, &g[i]);
        if (!kDx) continue;
        Floats a, b, c, mean;
        LoadPack(as + column + i * kLanes, &a);
        if (kCentered) {
          LoadPack(bs + column + i * kLanes, &b);
          LoadPack(cs + column + i * kLanes, &c);
          LoadPack(means + column + i * kLanes, &mean);
          value[i] = a * g[i] + (b * (value[i] - mean) + c);
        } else {
          value[i] = a * g[i];
        }
      }
      if (kDx) StoreBlock<kLanes>(value, n, dx + at);
      if (kOut) StoreBlock<kLanes>(g, n, masked + at);
    });
  }
};

using GradientFunction = void (*)(const ChannelGradientMap&, int64_t, int64_t, int64_t);

template <typename Number, bool kMasked, bool kCentered>
GradientFunction GradientFor(const ChannelGradientMap& map) {
  if (!map.dx) return RunForVectorLanes<GradientRows<Number, kMasked, false, false, true>>;
  if (!map.masked) return RunForVectorLanes<GradientRows<Number, kMasked, kCentered, true, false>>;
  return RunForVectorLanes<GradientRows<Number, kMasked, kCentered, true, true>>;
}

template <typename Number>
void RunGradient(const Blocks& blocks, const ChannelGradientMap& map) {
  ForRows(blocks,
          map.g.y ? (map.b ? GradientFor<Number, true, true>(map) : GradientFor<Number, true, false>(map))
                  : (map.b ? GradientFor<Number, false, true>(map) : GradientFor<Number, false, false>(map)),
          map);
}

}  // namespace

void Affine(const ChannelGrid& grid, const ChannelAffine& map, std::byte* workspace) {
  const Blocks blocks(grid);
  float* at = reinterpret_cast<float*>(workspace);
  ChannelAffine repeated = map;
  repeated.mean = Repeat(map.mean, blocks, grid.dtype, at);
  repeated.scale = Repeat(map.scale, blocks, grid.dtype, at, 1);
  repeated.shift = Repeat(map.shift, blocks, grid.dtype, at);
  (grid.dtype == DType::kBF16 ? RunAffine<BFloat16> : RunAffine<float>)(blocks, repeated);
}

void GradientMap(const ChannelGrid& grid, const ChannelGradientMap& map, std::byte* workspace) {
  const Blocks blocks(grid);
  float* at = reinterpret_cast<float*>(workspace);
  ChannelGradientMap repeated = map;
  repeated.a = Repeat(map.a, blocks, grid.dtype, at);
  if (map.b) {
    repeated.b = Repeat(map.b, blocks, grid.dtype, at);
    repeated.c = Repeat(map.c, blocks, grid.dtype, at);
    repeated.mean = Repeat(map.mean, blocks, grid.dtype, at);
  }
  (grid.dtype == DType::kBF16 ? RunGradient<BFloat16> : RunGradient<float>)(blocks, repeated);
}

}  // namespace crema::channels_last
