// The plain layout: each channel of an item is one run of pixels with the same coefficients.
#include "ops/normalization/channels.h"

#include <algorithm>

#include "base/multiversion.h"
#include "base/parallel.h"
#include "ops/normalization/channels_last.h"

namespace crema {

namespace {

// Pixels of a run that are summed up in f32, before the sum is added to others in double: else sums of large images
// lose digits, the more the fewer numbers a vector holds. They stay in the first cache for a second look.
constexpr int64_t kSpan = 4096;

// Without pixels to run along, both layouts are rows of channels.
bool InRows(const ChannelGrid& grid) { return grid.layout == Layout::kChannelsLast || grid.pixels == 1; }

CREMA_MULTIVERSION float RunSum(const float* x, int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}

// Sums of deviations from `near`, which is close to the mean, and of their squares.
CREMA_MULTIVERSION void RunDeviations(const float* x, int64_t n, float near, float* sum, float* squares) {
  float s = 0, p = 0;
#pragma omp simd reduction(+ : s, p)
  for (int64_t i = 0; i < n; ++i) {
    const float deviation = x[i] - near;
    s += deviation;
    p += deviation * deviation;
  }
  *sum = s;
  *squares = p;
}

template <bool kAddend, bool kRelu>
struct AffineRun {
  CREMA_MULTIVERSION static void Run(const float* x, const float* addend, float mean, float scale, float shift,
                                     float* y, int64_t n) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      float value = (x[i] - mean) * scale + shift;
      if (kAddend) value += addend[i];
      y[i] = kRelu && value < 0 ? 0.0f : value;
    }
  }
};

CREMA_MULTIVERSION void GradientRun(const float* dy, const float* y, const float* x, float mean, int64_t n, float* sum,
                                    float* product) {
  float s = 0, p = 0;
  if (x && y) {
#pragma omp simd reduction(+ : s, p)
    for (int64_t i = 0; i < n; ++i) {
      const float g = y[i] > 0 ? dy[i] : 0;
      s += g;
      p += g * (x[i] - mean);
    }
  } else if (x) {
#pragma omp simd reduction(+ : s, p)
    for (int64_t i = 0; i < n; ++i) {
      s += dy[i];
      p += dy[i] * (x[i] - mean);
    }
  } else if (y) {
#pragma omp simd reduction(+ : s)
    for (int64_t i = 0; i < n; ++i) s += y[i] > 0 ? dy[i] : 0;
  } else {
    s = RunSum(dy, n);
  }
  *sum = s;
  *product = p;
}

struct RunCoefficients {
  float a, b, c, mean;
};

template <bool kMasked, bool kCentered>
struct MapRun {
  CREMA_MULTIVERSION static void Run(const ChannelGradientMap& map, int64_t first, int64_t n,
                                     const RunCoefficients& given) {
    const float* dy = static_cast<const float*>(map.g.dy) + first;
    const float* y = kMasked ? static_cast<const float*>(map.g.y) + first : nullptr;
    const float* x = kCentered ? static_cast<const float*>(map.x) + first : nullptr;
    float* dx = map.dx ? static_cast<float*>(map.dx) + first : nullptr;
    float* masked = map.masked ? static_cast<float*>(map.masked) + first : nullptr;
    const RunCoefficients k = given;
    const auto gradient = [&](int64_t i) { return kMasked && !(y[i] > 0) ? 0 : dy[i]; };
    if (!dx) {
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) masked[i] = gradient(i);
      return;
    }
    const auto value = [&](float g, int64_t i) { return kCentered ? k.a * g + k.b * (x[i] - k.mean) + k.c : k.a * g; };
    if (masked) {
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) {
        const float g = gradient(i);
        dx[i] = value(g, i);
        masked[i] = g;
      }
    } else {
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) dx[i] = value(gradient(i), i);
    }
  }
};

// Calls body(channel, first float) for every run, shared out by items and channels.
template <typename Body>
void ForRuns(const ChannelGrid& grid, const Body& body) {
  ParallelFor(grid.batch * grid.channels, std::clamp<int64_t>(32768 / std::max<int64_t>(grid.pixels, 1), 1, 63),
              [&](int64_t begin, int64_t end) {
                for (int64_t run = begin; run < end; ++run) body(run % grid.channels, run * grid.pixels);
              });
}

// The same by channels alone: body(channel).
template <typename Body>
void ForChannels(const ChannelGrid& grid, const Body& body) {
  ParallelFor(grid.channels, std::clamp<int64_t>(32768 / std::max<int64_t>(grid.per_channel(), 1), 1, 63),
              [&](int64_t begin, int64_t end) {
                for (int64_t c = begin; c < end; ++c) body(c);
              });
}

// Calls body(first float, floats) for every span of a channel.
template <typename Body>
void ForSpans(const ChannelGrid& grid, int64_t channel, const Body& body) {
  for (int64_t n = 0; n < grid.batch; ++n) {
    const int64_t run = (n * grid.channels + channel) * grid.pixels;
    for (int64_t i = 0; i < grid.pixels; i += kSpan) body(run + i, std::min(kSpan, grid.pixels - i));
  }
}

}  // namespace

size_t ChannelWorkspace(const ChannelGrid& grid) { return InRows(grid) ? channels_last::Workspace(grid) : 0; }

void ChannelMoments(const ChannelGrid& grid, const void* given, float* mean, float* variance, std::byte* workspace) {
  if (InRows(grid)) return channels_last::Moments(grid, given, mean, variance, workspace);
  const float* x = static_cast<const float*>(given);
  ForChannels(grid, [&](int64_t c) {
    // Sums of deviations from the mean of the first span, and of their squares.
    double origin = 0, total = 0, total_squares = 0;
    ForSpans(grid, c, [&](int64_t first, int64_t n) {
      const float near = RunSum(x + first, n) / static_cast<float>(n);
      float sum, squares;
      RunDeviations(x + first, n, near, &sum, &squares);
      if (first == c * grid.pixels) origin = near;
      const double shift = near - origin, count = static_cast<double>(n);
      total += sum + count * shift;
      total_squares += squares + shift * (2 * static_cast<double>(sum) + count * shift);
    });
    const double count = static_cast<double>(grid.per_channel()), rest = total / count;
    const double squares = total_squares - total * rest;
    mean[c] = static_cast<float>(origin + rest);
    variance[c] = squares < 0 ? 0 : static_cast<float>(squares / count);
  });
}

void RunChannelAffine(const ChannelGrid& grid, const ChannelAffine& map, std::byte* workspace) {
  if (InRows(grid)) return channels_last::Affine(grid, map, workspace);
  const auto run = map.addend ? (map.relu ? AffineRun<true, true>::Run : AffineRun<true, false>::Run)
                              : (map.relu ? AffineRun<false, true>::Run : AffineRun<false, false>::Run);
  const float *x = static_cast<const float*>(map.x), *addend = static_cast<const float*>(map.addend);
  float* y = static_cast<float*>(map.y);
  ForRuns(grid, [&](int64_t c, int64_t first) {
    run(x + first, addend ? addend + first : nullptr, map.mean ? map.mean[c] : 0, map.scale ? map.scale[c] : 1,
        map.shift ? map.shift[c] : 0, y + first, grid.pixels);
  });
}

void ChannelGradientSums(const ChannelGrid& grid, const ChannelGradient& g, const void* given, const float* mean,
                         float* sum, float* product, std::byte* workspace) {
  if (InRows(grid)) return channels_last::GradientSums(grid, g, given, mean, sum, product, workspace);
  const float *dy = static_cast<const float*>(g.dy), *y = static_cast<const float*>(g.y),
              *x = static_cast<const float*>(given);
  ForChannels(grid, [&](int64_t c) {
    double s = 0, p = 0;
    ForSpans(grid, c, [&](int64_t first, int64_t n) {
      float span_sum, span_product;
      GradientRun(dy + first, y ? y + first : nullptr, product ? x + first : nullptr, mean ? mean[c] : 0, n, &span_sum,
                  &span_product);
      s += span_sum;
      p += span_product;
    });
    sum[c] = static_cast<float>(s);
    if (product) product[c] = static_cast<float>(p);
  });
}

void RunChannelGradientMap(const ChannelGrid& grid, const ChannelGradientMap& map, std::byte* workspace) {
  if (InRows(grid)) return channels_last::GradientMap(grid, map, workspace);
  const auto run = map.g.y ? (map.b ? MapRun<true, true>::Run : MapRun<true, false>::Run)
                           : (map.b ? MapRun<false, true>::Run : MapRun<false, false>::Run);
  ForRuns(grid, [&](int64_t c, int64_t first) {
    RunCoefficients k{};
    if (map.dx) k.a = map.a[c];
    if (map.dx && map.b) k = {map.a[c], map.b[c], map.c[c], map.mean ? map.mean[c] : 0};
    run(map, first, grid.pixels, k);
  });
}

}  // namespace crema
