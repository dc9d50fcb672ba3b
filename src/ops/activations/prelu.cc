#include "ops/activations/prelu.h"

#include <algorithm>
#include <cstdint>

#include "base/bfloat16.h"
#include "base/multiversion.h"
#include "base/parallel.h"
#include "ops/arrays/elementwise.h"

namespace crema {

namespace {

constexpr int64_t kStrip = kBFloat16Strip;

int64_t Share(int64_t n, int64_t parts) { return (n + parts - 1) / parts; }

// A grid as lines of neighbouring numbers, each in strips of kStrip. Lines are planes of one channel or, where channels
// are the densest axis, several rows of channels together, of which the last line may hold fewer.
struct Lines {
  explicit Lines(const ChannelGrid& grid) : channels(grid.channels), numbers(grid.count()) {
    rows = channels > 1 && (grid.layout == Layout::kChannelsLast || grid.pixels == 1);
    if (rows) {
      length = channels * std::clamp<int64_t>(Share(kStrip, channels), 1, std::max<int64_t>(grid.per_channel(), 1));
    } else {
      length = std::max<int64_t>(channels == 1 ? numbers : grid.pixels, 1);
    }
    lines = Share(numbers, length);
    pieces = Share(length, kStrip);
    chunk = std::max<int64_t>(16, (1 << 15) / length);
  }

  int64_t strips() const { return lines * pieces; }
  // Numbers of the strip that begins at `offset` of a line; 0 or less: there is none.
  int64_t Width(int64_t line, int64_t offset) const {
    return std::min({kStrip, length - offset, numbers - line * length - offset});
  }
  // In rows: groups of lines whose sums are taken column by column.
  int64_t chunks() const { return Share(lines, chunk); }

  int64_t channels, numbers;
  bool rows;
  int64_t length, lines, pieces, chunk;
};

// Calls body(strip's index, line, offset in it, width) for all strips.
template <typename Body>
void ForStrips(const Lines& lines, const Body& body) {
  const int64_t numbers = std::min(kStrip, lines.length);
  ParallelFor(lines.strips(), std::clamp<int64_t>(16384 / numbers, 1, 63), [&](int64_t begin, int64_t end) {
    for (int64_t strip = begin; strip < end; ++strip) {
      const int64_t line = strip / lines.pieces, offset = strip % lines.pieces * kStrip;
      body(strip, line, offset, lines.Width(line, offset));
    }
  });
}

// The slopes of a strip: one for all, or in rows one for each number.
struct Slopes {
  float all;
  const float* each;
};

class SlopesOfLines {
 public:
  // Writes length floats to `repeated` in rows.
  SlopesOfLines(const Lines& lines, const float* slope, float* repeated) : lines_(lines), slope_(slope) {
    if (!lines.rows) return;
    for (int64_t i = 0; i < lines.length; i += lines.channels) std::copy_n(slope, lines.channels, repeated + i);
    repeated_ = repeated;
  }
  Slopes Of(int64_t line, int64_t offset) const {
    if (repeated_) return {0, repeated_ + offset};
    return {slope_[line % lines_.channels], nullptr};
  }

 private:
  const Lines& lines_;
  const float* slope_;
  const float* repeated_ = nullptr;
};

// A strip as floats, in `strip` where memory holds others.
const float* Floats(const float* from, int64_t, float*) { return from; }
const float* Floats(const BFloat16* from, int64_t n, float* strip) {
  ToFloats(from, n, strip);
  return strip;
}

// Calls write(floats) and brings what it wrote to `to`.
template <typename Write>
void Deliver(float* to, int64_t, const Write& write) {
  write(to);
}
template <typename Write>
void Deliver(BFloat16* to, int64_t n, const Write& write) {
  alignas(64) float strip[kStrip];
  write(strip);
  FromFloats(strip, n, to);
}

template <typename Number>
void ForwardStrip(const Slopes& slopes, int64_t n, const Number* x, Number* y) {
  alignas(64) float strip[kStrip];
  const float* from = Floats(x, n, strip);
  Deliver(y, n, [&](float* to) {
    if (slopes.each) return internal::MapRange(formula::Prelu{}, n, to, from, slopes.each);
    internal::MapRange(formula::LeakyRelu{slopes.all}, n, to, from);
  });
}

template <typename Number>
void RunForward(const ChannelGrid& grid, const void* given, const float* slope, void* result, std::byte* workspace) {
  const Lines lines(grid);
  const SlopesOfLines slopes(lines, slope, reinterpret_cast<float*>(workspace));
  const Number* x = static_cast<const Number*>(given);
  Number* y = static_cast<Number*>(result);
  ForStrips(lines, [&](int64_t, int64_t line, int64_t offset, int64_t n) {
    const int64_t at = line * lines.length + offset;
    if (n > 0) ForwardStrip(slopes.Of(line, offset), n, x + at, y + at);
  });
}

CREMA_MULTIVERSION float SumSlopeGradients(int64_t n, const float* dy, const float* x) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += formula::SlopeGradient()(dy[i], x[i]);
  return sum;
}

CREMA_MULTIVERSION void AddSlopeGradients(int64_t n, const float* dy, const float* x, float* sums) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) sums[i] += formula::SlopeGradient()(dy[i], x[i]);
}

template <typename Number>
struct Gradients {
  const Number *x, *dy;
  Number* dx;  // null: not wanted

  // Of the strip at `at`. Adds what belongs to slopes to *sum, or to sums column by column; both may be null.
  void Run(int64_t at, int64_t n, const Slopes& slopes, float* sum, float* sums) const {
    alignas(64) float x_strip[kStrip], dy_strip[kStrip];
    const float *xs = Floats(x + at, n, x_strip), *dys = Floats(dy + at, n, dy_strip);
    if (sum) *sum = SumSlopeGradients(n, dys, xs);
    if (sums) AddSlopeGradients(n, dys, xs, sums);
    if (!dx) return;
    Deliver(dx + at, n, [&](float* to) {
      if (slopes.each) return internal::MapRange(formula::PreluGradient{}, n, to, dys, xs, slopes.each);
      internal::MapRange(formula::LeakyReluGradient{slopes.all}, n, to, dys, xs);
    });
  }
};

// parts: one float for each strip.
template <typename Number>
void BackwardInPlanes(const Lines& lines, const SlopesOfLines& slopes, const Gradients<Number>& gradients,
                      float* slope_gradient, float* parts) {
  ForStrips(lines, [&](int64_t strip, int64_t line, int64_t offset, int64_t n) {
    float* sum = slope_gradient ? parts + strip : nullptr;
    gradients.Run(line * lines.length + offset, n, slopes.Of(line, offset), sum, nullptr);
  });
  if (!slope_gradient) return;
  const int64_t channels = lines.channels, pieces = lines.pieces;
  ParallelFor(channels, 16, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      double total = 0;
      for (int64_t line = c; line < lines.lines; line += channels) {
        for (int64_t i = 0; i < pieces; ++i) total += static_cast<double>(parts[line * pieces + i]);
      }
      slope_gradient[c] = static_cast<float>(total);
    }
  });
}

// parts: a line's length for each chunk.
template <typename Number>
void BackwardInRows(const Lines& lines, const SlopesOfLines& slopes, const Gradients<Number>& gradients,
                    float* slope_gradient, float* parts) {
  ParallelFor(lines.chunks(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      float* part = slope_gradient ? parts + i * lines.length : nullptr;
      if (part) std::fill_n(part, lines.length, 0.0f);
      for (int64_t line = i * lines.chunk; line < std::min(lines.lines, (i + 1) * lines.chunk); ++line) {
        for (int64_t offset = 0; offset < lines.length; offset += kStrip) {
          const int64_t n = lines.Width(line, offset);
          if (n <= 0) break;
          gradients.Run(line * lines.length + offset, n, slopes.Of(line, offset), nullptr,
                        part ? part + offset : nullptr);
        }
      }
    }
  });
  if (!slope_gradient) return;
  std::fill_n(slope_gradient, lines.channels, 0.0f);
  for (int64_t row = 0; row < lines.chunks() * lines.length; row += lines.channels) {
    for (int64_t c = 0; c < lines.channels; ++c) slope_gradient[c] += parts[row + c];
  }
}

template <typename Number>
void RunBackward(const ChannelGrid& grid, const void* x, const float* slope, const void* dy, void* dx,
                 float* slope_gradient, std::byte* workspace) {
  const Lines lines(grid);
  float* at = reinterpret_cast<float*>(workspace);
  const SlopesOfLines slopes(lines, slope, at);
  const Gradients<Number> gradients{static_cast<const Number*>(x), static_cast<const Number*>(dy),
                                    static_cast<Number*>(dx)};
  if (lines.rows) return BackwardInRows(lines, slopes, gradients, slope_gradient, at + lines.length);
  BackwardInPlanes(lines, slopes, gradients, slope_gradient, at);
}

}  // namespace

size_t PreluWorkspace(const ChannelGrid& grid) {
  const Lines lines(grid);
  const int64_t floats = lines.rows ? lines.length * (1 + lines.chunks()) : lines.strips();
  return static_cast<size_t>(floats) * sizeof(float);
}

void PreluForward(const ChannelGrid& grid, const void* x, const float* slope, void* y, std::byte* workspace) {
  (grid.dtype == DType::kBF16 ? RunForward<BFloat16> : RunForward<float>)(grid, x, slope, y, workspace);
}

void PreluBackward(const ChannelGrid& grid, const void* x, const float* slope, const void* dy, void* dx,
                   float* slope_gradient, std::byte* workspace) {
  (grid.dtype == DType::kBF16 ? RunBackward<BFloat16> : RunBackward<float>)(grid, x, slope, dy, dx, slope_gradient,
                                                                            workspace);
}

}  // namespace crema
