// Moments and sums by channel, chunk by chunk: a chunk's results do not depend on who computes it.
#include <algorithm>

#include "base/bfloat16.h"
#include "base/multiversion.h"
#include "base/parallel.h"
#include "ops/channels_last.h"
#include "ops/channels_last_rows.h"

namespace crema::channels_last {

namespace {

typedef float Lanes __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t Mask __attribute__((vector_size(64), aligned(4), may_alias));
constexpr int64_t kLane = 16;  // floats of a Lanes

CREMA_INLINE const Lanes& At(const float* x) { return *reinterpret_cast<const Lanes*>(x); }
CREMA_INLINE Lanes& At(float* x) { return *reinterpret_cast<Lanes*>(x); }

// Vectors leave functions through pointers: to return them by value, functions of different instruction sets would have
// to agree on how.
CREMA_INLINE void Load(const float* x, Lanes* lanes) { *lanes = At(x); }
CREMA_INLINE void Load(const BFloat16* x, Lanes* lanes) {
  typedef uint16_t Halves __attribute__((vector_size(32), aligned(2), may_alias));
  typedef uint32_t Words __attribute__((vector_size(64), may_alias));
  *lanes = (Lanes)(__builtin_convertvector(*reinterpret_cast<const Halves*>(x), Words) << 16);
}

// Calls body(begin, count, columns...) for every group of columns of a row: whole blocks, then single floats.
template <typename Block, typename Single>
CREMA_INLINE void ForColumns(int64_t columns, const Block& block, const Single& single) {
  int64_t c = 0;
  for (; c + kBlock <= columns; c += kBlock) block(c);
  for (; c < columns; ++c) single(c);
}

template <typename Number>
CREMA_MULTIVERSION void SumColumns(const Number* x, int64_t rows, int64_t columns, float* sums) {
  ForColumns(
      columns,
      [&](int64_t c) {
        Lanes a{}, b{}, d{}, e{};
        for (int64_t r = 0; r < rows; ++r) {
          const Number* row = x + r * columns + c;
          Lanes v[4];
          for (int i = 0; i < 4; ++i) Load(row + i * kLane, &v[i]);
          a += v[0], b += v[1], d += v[2], e += v[3];
        }
        At(sums + c) = a, At(sums + c + kLane) = b, At(sums + c + 2 * kLane) = d, At(sums + c + 3 * kLane) = e;
      },
      [&](int64_t c) {
        float sum = 0;
        for (int64_t r = 0; r < rows; ++r) sum += x[r * columns + c];
        sums[c] = sum;
      });
}

template <typename Number>
CREMA_MULTIVERSION void SumSquaredDeviations(const Number* x, int64_t rows, int64_t columns, const float* mean,
                                             float* sums) {
  ForColumns(
      columns,
      [&](int64_t c) {
        Lanes s[4] = {};
        const Lanes m[4] = {At(mean + c), At(mean + c + kLane), At(mean + c + 2 * kLane), At(mean + c + 3 * kLane)};
        for (int64_t r = 0; r < rows; ++r) {
          const Number* row = x + r * columns + c;
          for (int i = 0; i < 4; ++i) {
            Lanes d;
            Load(row + i * kLane, &d);
            d -= m[i];
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
template <typename Number>
void ChunkMoments(const Flat& flat, int64_t chunk, const Number* x, float* columns, float* mean, float* squares) {
  const int64_t rows = flat.end(chunk) - flat.begin(chunk), rest = chunk == flat.chunks - 1 ? flat.rest : 0;
  const Number *from = x + flat.begin(chunk) * flat.period, *tail = from + rows * flat.period;
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

template <bool kMasked, typename Number>
CREMA_INLINE void LoadGradient(const Number* dy, const Number* y, Lanes* g) {
  Load(dy, g);
  if (!kMasked) return;
  Lanes above;
  Load(y, &above);
  *g = (Lanes)((Mask)*g & (Mask)(above > Lanes{}));
}

template <typename Number, bool kMasked, bool kProduct>
struct GradientRows {
  CREMA_MULTIVERSION static void Run(const Number* dy, const Number* y, const Number* x, const float* mean,
                                     int64_t rows, int64_t columns, float* sum, float* product) {
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
              if (!kProduct) continue;
              Lanes value;
              Load(x + at + i * kLane, &value);
              p[i] += g * (value - m[i]);
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
            const float g = kMasked && !(y[at] > 0) ? 0 : static_cast<float>(dy[at]);
            s += g;
            if (kProduct) p += g * (x[at] - mean[c]);
          }
          sum[c] = s;
          if (kProduct) product[c] = p;
        });
  }
};

template <typename Number>
void RunGradientSums(const Flat& flat, const ChannelGradient& g, const void* given, const float* mean, float* sum,
                     float* product, float* means) {
  using Function =
      void (*)(const Number*, const Number*, const Number*, const float*, int64_t, int64_t, float*, float*);
  static constexpr Function kTable[2][2] = {
      {GradientRows<Number, false, false>::Run, GradientRows<Number, false, true>::Run},
      {GradientRows<Number, true, false>::Run, GradientRows<Number, true, true>::Run}};
  const Function run = kTable[g.y != nullptr][product != nullptr];
  const int64_t period = flat.period, channels = flat.channels;
  const Number *dy = static_cast<const Number*>(g.dy), *y = static_cast<const Number*>(g.y),
               *x = static_cast<const Number*>(given);
  for (int64_t i = 0; i < period; ++i) means[i] = mean ? mean[i % channels] : 0;
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
  const int64_t period = (flat.period + kLane - 1) / kLane * kLane;
  return static_cast<size_t>(4 * period + flat.chunks * 2 * (flat.channels + flat.period)) * sizeof(float);
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
