// Moments and sums by channel, chunk by chunk: a chunk's results do not depend on who computes it.
#include <algorithm>

#include "base/bfloat16.h"
#include "base/multiversion.h"
#include "base/parallel.h"
#include "ops/arrays/packs.h"
#include "ops/arrays/vector_lanes.h"
#include "ops/normalization/channels_last.h"
#include "ops/normalization/channels_last_rows.h"

namespace crema::channels_last {

namespace {

// Of rows that are summed together, column by column: few enough that memory is read nearly in its order.
constexpr int64_t kTileNumbers = 2048;

// Calls Body::Run<packs, lanes>(first row, one past the last, column, arguments...) so that every number of the rows is
// covered once, the rows of a column in their order. Four packs of each array at a time where there are 32 registers.
template <typename Body, int kLanes, typename... Arguments>
CREMA_INLINE void ForTiles(int64_t rows, int64_t columns, const Arguments&... arguments) {
  constexpr int kPacks = kLanes == 16 ? 4 : 2;
  const int64_t tile = std::max<int64_t>(4, kTileNumbers / columns);
  for (int64_t begin = 0; begin < rows; begin += tile) {
    const int64_t end = std::min(rows, begin + tile);
    int64_t c = 0;
    for (; c + kPacks * kLanes <= columns; c += kPacks * kLanes) {
      Body::template Run<kPacks, kLanes>(begin, end, c, arguments...);
    }
    for (; c + kLanes <= columns; c += kLanes) Body::template Run<1, kLanes>(begin, end, c, arguments...);
    for (; c < columns; ++c) Body::template Run<1, 1>(begin, end, c, arguments...);
  }
}

// Whether a row's packs are taken two at a time, by even and odd index.
template <typename Number, int kPacks>
inline constexpr bool kSplits = kPacks > 1 && sizeof(Number) == 2;

// Between sums in the order of columns and packs in that of LoadPacks.
template <typename Number, int kPacks, int kWidth>
CREMA_INLINE void LoadColumns(const float* from, typename Pack<kWidth>::Floats* packs) {
  for (int i = 0; i < kPacks; ++i) LoadPack(from + i * kWidth, &packs[i]);
  if constexpr (kSplits<Number, kPacks>) {
    for (int i = 0; i < kPacks; i += 2) {
      const typename Pack<kWidth>::Floats first = packs[i], second = packs[i + 1];
      PickLanes<0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30>(first, second, &packs[i]);
      PickLanes<1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31>(first, second, &packs[i + 1]);
    }
  }
}
template <typename Number, int kPacks, int kWidth>
CREMA_INLINE void StoreColumns(const typename Pack<kWidth>::Floats* packs, float* to) {
  if constexpr (kSplits<Number, kPacks>) {
    for (int i = 0; i < kPacks; i += 2) {
      typename Pack<kWidth>::Floats first, second;
      PickLanes<0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23>(packs[i], packs[i + 1], &first);
      PickLanes<8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31>(packs[i], packs[i + 1], &second);
      StorePack(first, to + i * kWidth);
      StorePack(second, to + (i + 1) * kWidth);
    }
  } else {
    StorePacks<kPacks, kWidth>(packs, to);
  }
}
template <int kPacks, int kWidth, typename Number>
CREMA_INLINE void LoadRow(const Number* from, typename Pack<kWidth>::Floats* packs) {
  constexpr int kPair = kSplits<Number, kPacks> ? 2 : 1;
  for (int i = 0; i < kPacks; i += kPair) LoadPacks<kPair, kWidth>(from + i * kWidth, packs + i);
}

template <typename Number>
struct SumTile {
  template <int kPacks, int kWidth>
  CREMA_INLINE static void Run(int64_t begin, int64_t end, int64_t column, const Number* x, int64_t columns,
                               float* sums) {
    typename Pack<kWidth>::Floats s[kPacks], value[kPacks];
    LoadColumns<Number, kPacks, kWidth>(sums + column, s);
    for (int64_t r = begin; r < end; ++r) {
      LoadRow<kPacks, kWidth>(x + r * columns + column, value);
      for (int i = 0; i < kPacks; ++i) s[i] += value[i];
    }
    StoreColumns<Number, kPacks, kWidth>(s, sums + column);
  }
};

template <typename Number>
struct SumColumns {
  template <int kLanes>
  CREMA_INLINE static void Run(const Number* x, int64_t rows, int64_t columns, float* sums) {
    for (int64_t c = 0; c < columns; ++c) sums[c] = 0;
    ForTiles<SumTile<Number>, kLanesOf<Number, kLanes>>(rows, columns, x, columns, sums);
  }
};

template <typename Number>
struct SquaredDeviationTile {
  template <int kPacks, int kWidth>
  CREMA_INLINE static void Run(int64_t begin, int64_t end, int64_t column, const Number* x, int64_t columns,
                               const float* mean, float* sums) {
    typename Pack<kWidth>::Floats s[kPacks], m[kPacks], value[kPacks];
    LoadColumns<Number, kPacks, kWidth>(sums + column, s);
    LoadColumns<Number, kPacks, kWidth>(mean + column, m);
    for (int64_t r = begin; r < end; ++r) {
      LoadRow<kPacks, kWidth>(x + r * columns + column, value);
      for (int i = 0; i < kPacks; ++i) {
        value[i] -= m[i];
        s[i] += value[i] * value[i];
      }
    }
    StoreColumns<Number, kPacks, kWidth>(s, sums + column);
  }
};

template <typename Number>
struct SumSquaredDeviations {
  template <int kLanes>
  CREMA_INLINE static void Run(const Number* x, int64_t rows, int64_t columns, const float* mean, float* sums) {
    for (int64_t c = 0; c < columns; ++c) sums[c] = 0;
    ForTiles<SquaredDeviationTile<Number>, kLanesOf<Number, kLanes>>(rows, columns, x, columns, mean, sums);
  }
};

// Adds the columns that belong to one channel.
void Fold(const float* columns, int64_t count, int64_t channels, float* sums) {
  std::fill_n(sums, channels, 0.0f);
  for (int64_t i = 0; i < count; i += channels) {
    for (int64_t c = 0; c < channels; ++c) sums[c] += columns[i + c];
  }
}

// Mean and summed squared deviations of a chunk, by channel.
template <typename Number>
void ChunkMoments(const Flat& flat, int64_t chunk, const Number* x, float* columns, float* mean, float* squares) {
  const int64_t rows = flat.end(chunk) - flat.begin(chunk), rest = chunk == flat.chunks - 1 ? flat.rest : 0;
  const Number *from = x + flat.begin(chunk) * flat.period, *tail = from + rows * flat.period;
  const int64_t per_channel = (rows * flat.period + rest) / flat.channels;
  if (per_channel == 0) return;
  RunForVectorLanes<SumColumns<Number>>(from, rows, flat.period, columns);
  for (int64_t i = 0; i < rest; ++i) columns[i] += tail[i];
  Fold(columns, flat.period, flat.channels, mean);
  for (int64_t c = 0; c < flat.channels; ++c) mean[c] /= static_cast<float>(per_channel);
  float* repeated = columns + flat.period;
  for (int64_t i = 0; i < flat.period; i += flat.channels) std::copy_n(mean, flat.channels, repeated + i);
  RunForVectorLanes<SumSquaredDeviations<Number>>(from, rows, flat.period, repeated, columns);
  for (int64_t i = 0; i < rest; ++i) columns[i] += (tail[i] - repeated[i]) * (tail[i] - repeated[i]);
  Fold(columns, flat.period, flat.channels, squares);
}

template <typename Number, bool kMasked, bool kProduct>
struct GradientTile {
  template <int kPacks, int kWidth>
  CREMA_INLINE static void Run(int64_t begin, int64_t end, int64_t column, const Number* dy, const Number* y,
                               const Number* x, const float* mean, int64_t columns, float* sum, float* product) {
    using Floats = typename Pack<kWidth>::Floats;
    Floats s[kPacks], p[kPacks], m[kPacks], g[kPacks], top[kPacks], value[kPacks];
    LoadColumns<Number, kPacks, kWidth>(sum + column, s);
    if (kProduct) {
      LoadColumns<Number, kPacks, kWidth>(product + column, p);
      LoadColumns<Number, kPacks, kWidth>(mean + column, m);
    }
    for (int64_t r = begin; r < end; ++r) {
      const int64_t at = r * columns + column;
      LoadRow<kPacks, kWidth>(dy + at, g);
      if (kMasked) LoadRow<kPacks, kWidth>(y + at, top);
      if (kProduct) LoadRow<kPacks, kWidth>(x + at, value);
      for (int i = 0; i < kPacks; ++i) {
        if (kMasked) ChooseWhereLarger<sizeof(Number) == sizeof(float)>(top[i], Floats{}, g[i], Floats{}, &g[i]);
        s[i] += g[i];
        if (kProduct) p[i] += g[i] * (value[i] - m[i]);
      }
    }
    StoreColumns<Number, kPacks, kWidth>(s, sum + column);
    if (kProduct) StoreColumns<Number, kPacks, kWidth>(p, product + column);
  }
};

template <typename Number, bool kMasked, bool kProduct>
struct GradientRows {
  template <int kLanes>
  CREMA_INLINE static void Run(const Number* dy, const Number* y, const Number* x, const float* mean, int64_t rows,
                               int64_t columns, float* sum, float* product) {
    for (int64_t c = 0; c < columns; ++c) sum[c] = 0;
    for (int64_t c = 0; kProduct && c < columns; ++c) product[c] = 0;
    ForTiles<GradientTile<Number, kMasked, kProduct>, kLanesOf<Number, kLanes>>(rows, columns, dy, y, x, mean, columns,
                                                                                sum, product);
  }
};

template <typename Number>
void RunGradientSums(const Flat& flat, const ChannelGradient& g, const void* given, const float* mean, float* sum,
                     float* product, float* means) {
  using Function =
      void (*)(const Number*, const Number*, const Number*, const float*, int64_t, int64_t, float*, float*);
  static constexpr Function kTable[2][2] = {
      {RunForVectorLanes<GradientRows<Number, false, false>>, RunForVectorLanes<GradientRows<Number, false, true>>},
      {RunForVectorLanes<GradientRows<Number, true, false>>, RunForVectorLanes<GradientRows<Number, true, true>>}};
  const Function run = kTable[g.y != nullptr][product != nullptr];
  const int64_t period = flat.period, channels = flat.channels;
  const Number *dy = static_cast<const Number*>(g.dy), *y = static_cast<const Number*>(g.y),
               *x = static_cast<const Number*>(given);
  for (int64_t i = 0; i < period; i += channels) {
    for (int64_t c = 0; c < channels; ++c) means[i + c] = mean ? mean[c] : 0;
  }
  float* parts = means + period;
  // Pointers to what is not read stay null.
  const auto from = [](const Number* base, int64_t offset) { return base ? base + offset : nullptr; };
  ParallelFor(flat.chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = flat.begin(i) * period;
      float* part = parts + i * 2 * period;
      run(dy + first, from(y, first), from(x, first), means, flat.end(i) - flat.begin(i), period, part, part + period);
    }
  });
  std::fill_n(sum, channels, 0.0f);
  if (product) std::fill_n(product, channels, 0.0f);
  for (int64_t i = 0; i < flat.chunks; ++i) {
    const float* part = parts + i * 2 * period;
    for (int64_t j = 0; j < period; j += channels) {
      for (int64_t c = 0; c < channels; ++c) sum[c] += part[j + c];
      if (!product) continue;
      for (int64_t c = 0; c < channels; ++c) product[c] += part[period + j + c];
    }
  }
  const int64_t tail = flat.rows * period;
  for (int64_t i = 0; i < flat.rest; ++i) {
    const float value = y && !(y[tail + i] > 0) ? 0 : static_cast<float>(dy[tail + i]);
    sum[i % channels] += value;
    if (product) product[i % channels] += value * (x[tail + i] - means[i]);
  }
}

template <typename Number>
void RunMoments(const Flat& flat, const void* given, float* mean, float* variance, float* parts) {
  const Number* x = static_cast<const Number*>(given);
  const int64_t channels = flat.channels, stride = 2 * (channels + flat.period);
  ParallelFor(flat.chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      float* part = parts + i * stride;
      ChunkMoments(flat, i, x, part + 2 * channels, part, part + channels);
    }
  });
  // Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances" (1979).
  std::fill_n(mean, channels, 0.0f);
  std::fill_n(variance, channels, 0.0f);
  float seen = 0;
  for (int64_t i = 0; i < flat.chunks; ++i) {
    const int64_t rows = flat.end(i) - flat.begin(i), rest = i == flat.chunks - 1 ? flat.rest : 0;
    const float count = static_cast<float>((rows * flat.period + rest) / channels);
    if (count == 0) continue;
    const float *part = parts + i * stride, share = count / (seen + count);
    for (int64_t c = 0; c < channels; ++c) {
      const float delta = part[c] - mean[c];
      mean[c] += delta * share;
      variance[c] += part[channels + c] + delta * delta * seen * share;
    }
    seen += count;
  }
  for (int64_t c = 0; c < channels; ++c) variance[c] /= seen;
}

}  // namespace

size_t Workspace(const ChannelGrid& grid) {
  const Flat flat(grid);
  const Blocks blocks(grid);
  const int64_t sums = flat.period + flat.chunks * 2 * (flat.channels + flat.period), maps = 4 * blocks.padded_period;
  return static_cast<size_t>(std::max(sums, maps)) * sizeof(float);
}

void Moments(const ChannelGrid& grid, const void* x, float* mean, float* variance, std::byte* workspace) {
  const auto run = grid.dtype == DType::kBF16 ? RunMoments<BFloat16> : RunMoments<float>;
  run(Flat(grid), x, mean, variance, reinterpret_cast<float*>(workspace));
}

void GradientSums(const ChannelGrid& grid, const ChannelGradient& g, const void* x, const float* mean, float* sum,
                  float* product, std::byte* workspace) {
  const auto run = grid.dtype == DType::kBF16 ? RunGradientSums<BFloat16> : RunGradientSums<float>;
  run(Flat(grid), g, x, mean, sum, product, reinterpret_cast<float*>(workspace));
}

}  // namespace crema::channels_last
