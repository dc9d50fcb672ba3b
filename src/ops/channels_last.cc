#include "ops/channels_last.h"

#include <algorithm>

#include "base/multiversion.h"
#include "base/parallel.h"

namespace crema::channels_last {

namespace {

typedef float Lanes __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t Mask __attribute__((vector_size(64), aligned(4), may_alias));
constexpr int64_t kLane = 16;              // floats of a Lanes
constexpr int64_t kBlock = 4 * kLane;      // columns summed in registers at a time
constexpr int64_t kChunkFloats = 1 << 15;  // of x that stay in a core's cache between two passes over them
constexpr int64_t kLeastRows = 32;         // of a chunk, so that its sums are small beside it

CREMA_INLINE const Lanes& At(const float* x) { return *reinterpret_cast<const Lanes*>(x); }
CREMA_INLINE Lanes& At(float* x) { return *reinterpret_cast<Lanes*>(x); }

// The tensor as rows of `period` floats, a multiple of the channels, and a shorter rest.
struct Flat {
  explicit Flat(const ChannelGrid& grid) : channels(grid.channels) {
    period = channels * ((kBlock + channels - 1) / channels);
    rows = grid.count() / period;
    rest = grid.count() % period;
    chunk_rows = std::max(kLeastRows, kChunkFloats / period);
    chunks = rows / chunk_rows + 1;  // the last one also takes the rest
  }
  int64_t begin(int64_t chunk) const { return chunk * chunk_rows; }
  int64_t end(int64_t chunk) const { return std::min(rows, (chunk + 1) * chunk_rows); }

  int64_t channels, period, rows, rest, chunk_rows, chunks;
};

// Coefficients repeated to the period, one array after the other in the workspace; zeros for none.
const float* Repeat(const float* coefficients, const Flat& flat, float*& at) {
  float* repeated = at;
  at += (flat.period + kLane - 1) / kLane * kLane;
  std::fill_n(repeated, flat.period, 0.0f);
  if (!coefficients) return repeated;
  for (int64_t i = 0; i < flat.period; i += flat.channels) std::copy_n(coefficients, flat.channels, repeated + i);
  return repeated;
}

// Calls body(begin, count, columns...) for every group of columns of a row: whole blocks, then single floats.
template <typename Block, typename Single>
CREMA_INLINE void ForColumns(int64_t columns, const Block& block, const Single& single) {
  int64_t c = 0;
  for (; c + kBlock <= columns; c += kBlock) block(c);
  for (; c < columns; ++c) single(c);
}

CREMA_MULTIVERSION void SumColumns(const float* x, int64_t rows, int64_t columns, float* sums) {
  ForColumns(
      columns,
      [&](int64_t c) {
        Lanes a{}, b{}, d{}, e{};
        for (int64_t r = 0; r < rows; ++r) {
          const float* row = x + r * columns + c;
          a += At(row), b += At(row + kLane), d += At(row + 2 * kLane), e += At(row + 3 * kLane);
        }
        At(sums + c) = a, At(sums + c + kLane) = b, At(sums + c + 2 * kLane) = d, At(sums + c + 3 * kLane) = e;
      },
      [&](int64_t c) {
        float sum = 0;
        for (int64_t r = 0; r < rows; ++r) sum += x[r * columns + c];
        sums[c] = sum;
      });
}

CREMA_MULTIVERSION void SumSquaredDeviations(const float* x, int64_t rows, int64_t columns, const float* mean,
                                             float* sums) {
  ForColumns(
      columns,
      [&](int64_t c) {
        Lanes s[4] = {};
        const Lanes m[4] = {At(mean + c), At(mean + c + kLane), At(mean + c + 2 * kLane), At(mean + c + 3 * kLane)};
        for (int64_t r = 0; r < rows; ++r) {
          const float* row = x + r * columns + c;
          for (int i = 0; i < 4; ++i) {
            const Lanes d = At(row + i * kLane) - m[i];
            s[i] += d * d;
          }
        }
        for (int i = 0; i < 4; ++i) At(sums + c + i * kLane) = s[i];
      },
      [&](int64_t c) {
        float sum = 0;
        for (int64_t r = 0; r < rows; ++r) {
          const float d = x[r * columns + c] - mean[c];
          sum += d * d;
        }
        sums[c] = sum;
      });
}

// Adds the columns that belong to one channel.
void Fold(const float* columns, int64_t count, int64_t channels, float* sums) {
  std::fill_n(sums, channels, 0.0f);
  for (int64_t i = 0; i < count; ++i) sums[i % channels] += columns[i];
}

// Mean and summed squared deviations of a chunk, by channel.
void ChunkMoments(const Flat& flat, int64_t chunk, const float* x, float* columns, float* mean, float* squares) {
  const int64_t rows = flat.end(chunk) - flat.begin(chunk), rest = chunk == flat.chunks - 1 ? flat.rest : 0;
  const float *from = x + flat.begin(chunk) * flat.period, *tail = from + rows * flat.period;
  const int64_t per_channel = (rows * flat.period + rest) / flat.channels;
  if (per_channel == 0) return;
  SumColumns(from, rows, flat.period, columns);
  for (int64_t i = 0; i < rest; ++i) columns[i] += tail[i];
  Fold(columns, flat.period, flat.channels, mean);
  for (int64_t c = 0; c < flat.channels; ++c) mean[c] /= static_cast<float>(per_channel);
  float* repeated = columns + flat.period;
  for (int64_t i = 0; i < flat.period; i += flat.channels) std::copy_n(mean, flat.channels, repeated + i);
  SumSquaredDeviations(from, rows, flat.period, repeated, columns);
  for (int64_t i = 0; i < rest; ++i) columns[i] += (tail[i] - repeated[i]) * (tail[i] - repeated[i]);
  Fold(columns, flat.period, flat.channels, squares);
}

template <bool kAddend, bool kRelu>
struct AffineRows {
  CREMA_MULTIVERSION static void Run(const ChannelAffine& given, int64_t rows, int64_t columns) {
    const ChannelAffine map = given;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t at = r * columns;
#pragma omp simd
      for (int64_t c = 0; c < columns; ++c) {
        float value = (map.x[at + c] - map.mean[c]) * map.scale[c] + map.shift[c];
        if (kAddend) value += map.addend[at + c];
        map.y[at + c] = kRelu && !(value > 0) ? 0 : value;
      }
    }
  }
};

using AffineFunction = void (*)(const ChannelAffine&, int64_t, int64_t);

// Through a pointer: to return vectors by value, functions of one instruction set would have to agree on how.
template <bool kMasked>
CREMA_INLINE void LoadGradient(const float* dy, const float* y, Lanes* g) {
  *g = At(dy);
  if (kMasked) *g = (Lanes)((Mask)*g & (Mask)(At(y) > Lanes{}));
}

template <bool kMasked, bool kProduct>
struct GradientRows {
  CREMA_MULTIVERSION static void Run(const float* dy, const float* y, const float* x, const float* mean, int64_t rows,
                                     int64_t columns, float* sum, float* product) {
    ForColumns(
        columns,
        [&](int64_t c) {
          Lanes s[4] = {}, p[4] = {}, m[4] = {};
          if (kProduct) {
            for (int i = 0; i < 4; ++i) m[i] = At(mean + c + i * kLane);
          }
          for (int64_t r = 0; r < rows; ++r) {
            const int64_t at = r * columns + c;
            for (int i = 0; i < 4; ++i) {
              Lanes g;
              LoadGradient<kMasked>(dy + at + i * kLane, y + at + i * kLane, &g);
              s[i] += g;
              if (kProduct) p[i] += g * (At(x + at + i * kLane) - m[i]);
            }
          }
          for (int i = 0; i < 4; ++i) {
            At(sum + c + i * kLane) = s[i];
            if (kProduct) At(product + c + i * kLane) = p[i];
          }
        },
        [&](int64_t c) {
          float s = 0, p = 0;
          for (int64_t r = 0; r < rows; ++r) {
            const int64_t at = r * columns + c;
            const float g = kMasked && !(y[at] > 0) ? 0 : dy[at];
            s += g;
            if (kProduct) p += g * (x[at] - mean[c]);
          }
          sum[c] = s;
          if (kProduct) product[c] = p;
        });
  }
};

using SumsFunction = void (*)(const float*, const float*, const float*, const float*, int64_t, int64_t, float*, float*);

template <bool kMasked, bool kCentered, bool kDx, bool kOut>
struct MapRows {
  CREMA_MULTIVERSION static void Run(const ChannelGradientMap& given, int64_t rows, int64_t columns) {
    const ChannelGradientMap map = given;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t at = r * columns;
#pragma omp simd
      for (int64_t c = 0; c < columns; ++c) {
        const float dy = map.g.dy[at + c];
        const float g = kMasked ? (map.g.y[at + c] > 0 ? dy : 0) : dy;
        if (kDx) {
          float dx = map.a[c] * g;
          if (kCentered) dx += map.b[c] * (map.x[at + c] - map.mean[c]) + map.c[c];
          map.dx[at + c] = dx;
        }
        if (kOut) map.masked[at + c] = g;
      }
    }
  }
};

using MapFunction = void (*)(const ChannelGradientMap&, int64_t, int64_t);

template <bool kMasked, bool kCentered>
MapFunction MapFor(const ChannelGradientMap& map) {
  if (!map.dx) return MapRows<kMasked, false, false, true>::Run;
  return map.masked ? MapRows<kMasked, kCentered, true, true>::Run : MapRows<kMasked, kCentered, true, false>::Run;
}

MapFunction MapFor(const ChannelGradientMap& map) {
  if (map.g.y) return map.b ? MapFor<true, true>(map) : MapFor<true, false>(map);
  return map.b ? MapFor<false, true>(map) : MapFor<false, false>(map);
}

// Calls body(first float, rows, columns) on all of the tensor: rows of a period, and the rest as one short row.
template <typename Body>
void ForRows(const Flat& flat, const Body& body) {
  ParallelFor(flat.rows, std::max<int64_t>(1, 32768 / flat.period), [&](int64_t begin, int64_t end) {
    body(begin * flat.period, end - begin, flat.period);
  });
  if (flat.rest > 0) body(flat.rows * flat.period, int64_t{1}, flat.rest);
}

}  // namespace

size_t Workspace(const ChannelGrid& grid) {
  const Flat flat(grid);
  const int64_t period = (flat.period + kLane - 1) / kLane * kLane;
  return static_cast<size_t>(4 * period + flat.chunks * 2 * (flat.channels + flat.period)) * sizeof(float);
}

void Moments(const ChannelGrid& grid, const float* x, float* mean, float* variance, std::byte* workspace) {
  const Flat flat(grid);
  const int64_t channels = flat.channels;
  const int64_t stride = 2 * (channels + flat.period);
  float* parts = reinterpret_cast<float*>(workspace);
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

void Affine(const ChannelGrid& grid, const ChannelAffine& map, std::byte* workspace) {
  const Flat flat(grid);
  float* at = reinterpret_cast<float*>(workspace);
  ChannelAffine repeated = map;
  repeated.mean = Repeat(map.mean, flat, at);
  repeated.scale = Repeat(map.scale, flat, at);
  repeated.shift = Repeat(map.shift, flat, at);
  static constexpr AffineFunction kTable[2][2] = {{AffineRows<false, false>::Run, AffineRows<false, true>::Run},
                                                  {AffineRows<true, false>::Run, AffineRows<true, true>::Run}};
  const AffineFunction run = kTable[map.addend != nullptr][map.relu];
  ForRows(flat, [&](int64_t first, int64_t rows, int64_t columns) {
    ChannelAffine part = repeated;
    part.x += first;
    if (part.addend) part.addend += first;
    part.y += first;
    run(part, rows, columns);
  });
}

void GradientSums(const ChannelGrid& grid, const ChannelGradient& g, const float* x, const float* mean, float* sum,
                  float* product, std::byte* workspace) {
  const Flat flat(grid);
  const int64_t period = flat.period, channels = flat.channels;
  float* means = reinterpret_cast<float*>(workspace);
  for (int64_t i = 0; i < period; ++i) means[i] = mean ? mean[i % channels] : 0;
  float* parts = means + period;
  static constexpr SumsFunction kTable[2][2] = {{GradientRows<false, false>::Run, GradientRows<false, true>::Run},
                                                {GradientRows<true, false>::Run, GradientRows<true, true>::Run}};
  const SumsFunction run = kTable[g.y != nullptr][product != nullptr];
  // Pointers to what is not read stay null.
  const auto from = [](const float* base, int64_t offset) { return base ? base + offset : nullptr; };
  ParallelFor(flat.chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = flat.begin(i) * period;
      float* part = parts + i * 2 * period;
      run(g.dy + first, from(g.y, first), from(x, first), means, std::max<int64_t>(0, flat.end(i) - flat.begin(i)),
          period, part, part + period);
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
    const float value = g.y && !(g.y[tail + i] > 0) ? 0 : g.dy[tail + i];
    sum[i % channels] += value;
    if (product) product[i % channels] += value * (x[tail + i] - means[i]);
  }
}

void GradientMap(const ChannelGrid& grid, const ChannelGradientMap& map, std::byte* workspace) {
  const Flat flat(grid);
  float* at = reinterpret_cast<float*>(workspace);
  ChannelGradientMap repeated = map;
  repeated.a = Repeat(map.a, flat, at);
  repeated.b = Repeat(map.b, flat, at);
  repeated.c = Repeat(map.c, flat, at);
  repeated.mean = Repeat(map.mean, flat, at);
  const MapFunction run = MapFor(map);
  ForRows(flat, [&](int64_t first, int64_t rows, int64_t columns) {
    ChannelGradientMap part = repeated;
    part.g.dy += first;
    if (part.g.y) part.g.y += first;
    if (part.x) part.x += first;
    if (part.dx) part.dx += first;
    if (part.masked) part.masked += first;
    run(part, rows, columns);
  });
}

}  // namespace crema::channels_last
