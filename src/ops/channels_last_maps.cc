// Affine maps by channel and their gradients.
#include <algorithm>

#include "base/bfloat16.h"
#include "base/multiversion.h"
#include "base/parallel.h"
#include "ops/channels_last.h"
#include "ops/channels_last_rows.h"

namespace crema::channels_last {

namespace {

constexpr int64_t kAlignment = 16;  // floats of a cache line

// Coefficients repeated to the period, one array after the other in the workspace; `otherwise` for none.
const float* Repeat(const float* coefficients, const Flat& flat, float*& at, float otherwise = 0) {
  float* repeated = at;
  at += (flat.period + kAlignment - 1) / kAlignment * kAlignment;
  std::fill_n(repeated, flat.period, otherwise);
  if (!coefficients) return repeated;
  for (int64_t i = 0; i < flat.period; i += flat.channels) std::copy_n(coefficients, flat.channels, repeated + i);
  return repeated;
}

// Calls body(first element, rows, columns) on all of the tensor: rows of a period, and the rest as one short row.
template <typename Body>
void ForRows(const Flat& flat, const Body& body) {
  ParallelFor(flat.rows, std::max<int64_t>(1, 32768 / flat.period),
              [&](int64_t begin, int64_t end) { body(begin * flat.period, end - begin, flat.period); });
  if (flat.rest > 0) body(flat.rows * flat.period, int64_t{1}, flat.rest);
}

// Calls body(first element, its column, count) for every strip of the rows.
template <typename Body>
void ForStrips(int64_t first, int64_t rows, int64_t columns, const Body& body) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; c += kBFloat16Strip) {
      body(first + r * columns + c, c, std::min(kBFloat16Strip, columns - c));
    }
  }
}

template <bool kAddend, bool kRelu>
struct AffineRows {
  CREMA_MULTIVERSION static void Run(const float* x, const float* addend, const ChannelAffine& map, float* y,
                                     int64_t rows, int64_t columns) {
    const float *mean = map.mean, *scale = map.scale, *shift = map.shift;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t at = r * columns;
#pragma omp simd
      for (int64_t c = 0; c < columns; ++c) {
        float value = (x[at + c] - mean[c]) * scale[c] + shift[c];
        if (kAddend) value += addend[at + c];
        if (kRelu) value = value < 0 ? 0.0f : value;
        y[at + c] = value;
      }
    }
  }
};

using AffineFunction = void (*)(const float*, const float*, const ChannelAffine&, float*, int64_t, int64_t);

void RunAffineRows(AffineFunction run, const ChannelAffine& map, const float*, int64_t first, int64_t rows,
                   int64_t columns) {
  const float* addend = map.addend ? static_cast<const float*>(map.addend) + first : nullptr;
  run(static_cast<const float*>(map.x) + first, addend, map, static_cast<float*>(map.y) + first, rows, columns);
}

void RunAffineRows(AffineFunction run, const ChannelAffine& map, const BFloat16*, int64_t first, int64_t rows,
                   int64_t columns) {
  alignas(64) float x[kBFloat16Strip], addend[kBFloat16Strip];
  ForStrips(first, rows, columns, [&](int64_t at, int64_t column, int64_t n) {
    ToFloats(static_cast<const BFloat16*>(map.x) + at, n, x);
    if (map.addend) ToFloats(static_cast<const BFloat16*>(map.addend) + at, n, addend);
    ChannelAffine part = map;
    part.mean += column;
    part.scale += column;
    part.shift += column;
    run(x, addend, part, x, 1, n);
    FromFloats(x, n, static_cast<BFloat16*>(map.y) + at);
  });
}

template <typename Number>
void RunAffine(const Flat& flat, const ChannelAffine& map) {
  static constexpr AffineFunction kTable[2][2] = {{AffineRows<false, false>::Run, AffineRows<false, true>::Run},
                                                  {AffineRows<true, false>::Run, AffineRows<true, true>::Run}};
  const AffineFunction run = kTable[map.addend != nullptr][map.relu];
  ForRows(flat, [&](int64_t first, int64_t rows, int64_t columns) {
    RunAffineRows(run, map, static_cast<const Number*>(nullptr), first, rows, columns);
  });
}

// The images of a ChannelGradientMap at one place.
struct MapImages {
  const float *dy, *y, *x;
  float *dx, *masked;
};

template <bool kMasked, bool kCentered, bool kDx, bool kOut>
struct MapRows {
  CREMA_MULTIVERSION static void Run(const MapImages& given, const ChannelGradientMap& map, int64_t rows,
                                     int64_t columns) {
    const MapImages images = given;
    const float *a = map.a, *b = map.b, *constant = map.c, *mean = map.mean;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t at = r * columns;
#pragma omp simd
      for (int64_t c = 0; c < columns; ++c) {
        float g = images.dy[at + c];
        if (kMasked) g = images.y[at + c] > 0 ? g : 0.0f;
        if (kDx) {
          float dx = a[c] * g;
          if (kCentered) dx += b[c] * (images.x[at + c] - mean[c]) + constant[c];
          images.dx[at + c] = dx;
        }
        if (kOut) images.masked[at + c] = g;
      }
    }
  }
};

using MapFunction = void (*)(const MapImages&, const ChannelGradientMap&, int64_t, int64_t);

void RunMapRows(MapFunction run, const ChannelGradientMap& map, const float*, int64_t first, int64_t rows,
                int64_t columns) {
  const auto read = [&](const void* image) { return image ? static_cast<const float*>(image) + first : nullptr; };
  const auto write = [&](void* image) { return image ? static_cast<float*>(image) + first : nullptr; };
  run({read(map.g.dy), read(map.g.y), read(map.x), write(map.dx), write(map.masked)}, map, rows, columns);
}

void RunMapRows(MapFunction run, const ChannelGradientMap& map, const BFloat16*, int64_t first, int64_t rows,
                int64_t columns) {
  alignas(64) float dy[kBFloat16Strip], y[kBFloat16Strip], x[kBFloat16Strip], dx[kBFloat16Strip];
  ForStrips(first, rows, columns, [&](int64_t at, int64_t column, int64_t n) {
    ToFloats(static_cast<const BFloat16*>(map.g.dy) + at, n, dy);
    if (map.g.y) ToFloats(static_cast<const BFloat16*>(map.g.y) + at, n, y);
    if (map.b) ToFloats(static_cast<const BFloat16*>(map.x) + at, n, x);
    ChannelGradientMap part = map;
    part.a += column;
    if (map.b) {
      part.b += column;
      part.c += column;
      part.mean += column;
    }
    run({dy, y, x, dx, dy}, part, 1, n);
    if (map.dx) FromFloats(dx, n, static_cast<BFloat16*>(map.dx) + at);
    if (map.masked) FromFloats(dy, n, static_cast<BFloat16*>(map.masked) + at);
  });
}

template <bool kMasked, bool kCentered>
MapFunction MapFor(const ChannelGradientMap& map) {
  if (!map.dx) return MapRows<kMasked, false, false, true>::Run;
  return map.masked ? MapRows<kMasked, kCentered, true, true>::Run : MapRows<kMasked, kCentered, true, false>::Run;
}

template <typename Number>
void RunMap(const Flat& flat, const ChannelGradientMap& map) {
  const MapFunction run = map.g.y ? (map.b ? MapFor<true, true>(map) : MapFor<true, false>(map))
                                  : (map.b ? MapFor<false, true>(map) : MapFor<false, false>(map));
  ForRows(flat, [&](int64_t first, int64_t rows, int64_t columns) {
    RunMapRows(run, map, static_cast<const Number*>(nullptr), first, rows, columns);
  });
}

}  // namespace

void Affine(const ChannelGrid& grid, const ChannelAffine& map, std::byte* workspace) {
  const Flat flat(grid);
  float* at = reinterpret_cast<float*>(workspace);
  ChannelAffine repeated = map;
  repeated.mean = Repeat(map.mean, flat, at);
  repeated.scale = Repeat(map.scale, flat, at, 1);
  repeated.shift = Repeat(map.shift, flat, at);
  (grid.dtype == DType::kBF16 ? RunAffine<BFloat16> : RunAffine<float>)(flat, repeated);
}

void GradientMap(const ChannelGrid& grid, const ChannelGradientMap& map, std::byte* workspace) {
  const Flat flat(grid);
  float* at = reinterpret_cast<float*>(workspace);
  ChannelGradientMap repeated = map;
  repeated.a = Repeat(map.a, flat, at);
  if (map.b) {
    repeated.b = Repeat(map.b, flat, at);
    repeated.c = Repeat(map.c, flat, at);
    repeated.mean = Repeat(map.mean, flat, at);
  }
  (grid.dtype == DType::kBF16 ? RunMap<BFloat16> : RunMap<float>)(flat, repeated);
}

}  // namespace crema::channels_last
