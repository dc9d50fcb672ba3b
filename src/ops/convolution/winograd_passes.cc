#include "ops/convolution/winograd_passes.h"

#include <algorithm>

#include "base/parallel.h"
#include "ops/matrices/packed_product.h"

namespace crema {

namespace {

constexpr int64_t kLine = 16;  // floats: a panel of PackedProduct, and a line of the cache

int64_t RoundedUp(int64_t n) { return (n + kLine - 1) / kLine * kLine; }

// From one point's matrix to the next: a line more than they take, as caches take points a power of two apart badly.
int64_t Step(int64_t floats) { return RoundedUp(floats) + kLine; }

// Transformed tiles that fit into half of a second-level cache of 1 MiB.
int64_t TilesInCache(int64_t points, int64_t channels) { return (128 << 10) / (points * channels); }

// Fewer would read the transformed kernels too often.
constexpr int64_t kFewTiles = 24;

// The taps of one channel for up to a line of outputs, in memory of their own where they lie scattered.
class TapsOfLine {
 public:
  TapsOfLine(int64_t count, const WinogradTaps& lie) : count_(count), lie_(lie) {}

  // Pointers to the outputs of each tap; `first` to the first output of the first.
  const float* const* Read(const float* first, int64_t outputs, bool mirrored) {
    for (int64_t tap = 0; tap < count_; ++tap) {
      const float* from = first + (mirrored ? count_ - 1 - tap : tap) * lie_.tap;
      if (lie_.output != 1) {
        for (int64_t k = 0; k < outputs; ++k) line_[tap * kLine + k] = from[k * lie_.output];
        from = line_ + tap * kLine;
      }
      read_[tap] = from;
    }
    return read_;
  }
  // Pointers to write to, and what must follow.
  float* const* Written(float* first) {
    for (int64_t tap = 0; tap < count_; ++tap) {
      written_[tap] = lie_.output == 1 ? first + tap * lie_.tap : line_ + tap * kLine;
    }
    return written_;
  }
  void Deliver(float* first, int64_t outputs) const {
    if (lie_.output == 1) return;
    for (int64_t k = 0; k < outputs; ++k) {
      for (int64_t tap = 0; tap < count_; ++tap) first[k * lie_.output + tap * lie_.tap] = line_[tap * kLine + k];
    }
  }

 private:
  const int64_t count_;
  const WinogradTaps lie_;
  const float* read_[25];
  float* written_[25];
  float line_[25 * kLine];
};

// What a tile of a group's outputs reads.
void TransformSource(const WinogradProblem& p, const WinogradTransforms& t, const WinogradTiles& tiles,
                     const float* source, int64_t group, int64_t tile, const float* zeros, const WinogradPoints& to) {
  const auto pixels =
      tiles.Square(source + group * p.channels, p.source, p.groups * p.channels, tile, t.tile, p.pad, zeros);
  t.source(pixels.data(), p.channels, to);
}

}  // namespace

WinogradTiles::WinogradTiles(int64_t batch, const std::array<int64_t, 2>& outputs, int64_t m)
    : m_(m), rows_((outputs[0] + m - 1) / m), columns_((outputs[1] + m - 1) / m), count_(batch * rows_ * columns_) {}

// Each thread takes tiles of its own through all points; where there are few for that, all threads share every lot.
WinogradFilter::WinogradFilter(const WinogradProblem& problem, const WinogradTransforms& transforms)
    : p_(problem),
      t_(transforms),
      points_(t_.tile * t_.tile),
      tiles_(p_.batch, p_.destination, t_.outputs),
      slots_(p_.groups * tiles_.count() < omp_get_max_threads() * kFewTiles ? 1 : omp_get_max_threads()),
      tiles_at_once_(slots_ == 1 ? std::min(tiles_.count(), omp_get_max_threads() * kFewTiles)
                                 : std::max(kFewTiles, TilesInCache(points_, p_.channels + p_.outputs) / 12 * 12)),
      packed_step_(Step(PackedFloats(p_.channels, p_.outputs))),
      source_step_(Step(tiles_at_once_ * p_.channels)),
      product_step_(Step(tiles_at_once_ * p_.outputs)),
      zeros_(p_.channels) {}

void WinogradFilter::Pack(const float* taps, const WinogradTaps& lie, float* packed) const {
  const int64_t panels = RoundedUp(p_.outputs) / kLine;
  ParallelFor(p_.groups * panels * p_.channels, 64, [&](int64_t begin, int64_t end) {
    TapsOfLine line(t_.taps * t_.taps, lie);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t group = i / (panels * p_.channels), output = i / p_.channels % panels * kLine,
                    channel = i % p_.channels, width = std::min(kLine, p_.outputs - output);
      const float* from = taps + (group * p_.outputs + output) * lie.output + channel * lie.channel;
      float* to = packed + group * points_ * packed_step_ + output * p_.channels + channel * kLine;
      t_.kernel(line.Read(from, width, /*mirrored=*/false), width, {to, packed_step_, 0});
      for (int64_t point = 0; point < points_; ++point, to += packed_step_) std::fill(to + width, to + kLine, 0.0f);
    }
  });
}

void WinogradFilter::PackMirrored(const float* taps, const WinogradTaps& lie, float* packed) const {
  const int64_t panels = RoundedUp(p_.outputs) / kLine, strips = RoundedUp(p_.channels) / kLine;
  ParallelFor(p_.groups * panels * strips, 1, [&](int64_t begin, int64_t end) {
    TapsOfLine line(t_.taps * t_.taps, lie);
    float square[36 * kLine * kLine];  // of each point, to be transposed
    for (int64_t i = begin; i < end; ++i) {
      const int64_t group = i / (panels * strips), output = i / strips % panels * kLine, channel = i % strips * kLine;
      const int64_t width = std::min(kLine, p_.outputs - output), length = std::min(kLine, p_.channels - channel);
      for (int64_t k = 0; k < width; ++k) {
        const float* from = taps + (group * p_.channels + channel) * lie.output + (output + k) * lie.channel;
        t_.kernel(line.Read(from, length, /*mirrored=*/true), length, {square + k * kLine, kLine * kLine, 0});
      }
      float* to = packed + group * points_ * packed_step_ + output * p_.channels + channel * kLine;
      for (int64_t point = 0; point < points_; ++point, to += packed_step_) {
        const float* const given = square + point * kLine * kLine;
        for (int64_t c = 0; c < length; ++c) {
          for (int64_t k = 0; k < kLine; ++k) to[c * kLine + k] = k < width ? given[k * kLine + c] : 0;
        }
      }
    }
  });
}

void WinogradFilter::Run(const float* source, const float* packed, const float* bias, bool sum,
                         const Activation& activation, float* destination, float* workspace) const {
  const int64_t units = p_.groups * tiles_.count();
  // By slots, not threads: each owns a part of the workspace, however many threads there are by now. What runs in one
  // slot of several runs on its thread alone.
  ParallelFor(slots_, 1, [&](int64_t begin_slot, int64_t end_slot) {
    for (int64_t slot = begin_slot; slot < end_slot; ++slot) {
      const int64_t end = units * (slot + 1) / slots_;
      for (int64_t unit = units * slot / slots_; unit < end;) {
        const int64_t group = unit / tiles_.count(), first = unit % tiles_.count();
        const int64_t n = std::min({tiles_at_once_, end - unit, tiles_.count() - first});
        RunTiles(group, first, n, source, packed, bias, sum, activation, destination,
                 workspace + slot * points_ * (source_step_ + product_step_));
        unit += n;
      }
    }
  });
}

void WinogradFilter::RunTiles(int64_t group, int64_t first, int64_t n, const float* source, const float* packed,
                              const float* bias, bool sum, const Activation& activation, float* destination,
                              float* workspace) const {
  float* const transformed = workspace;
  float* const products = workspace + points_ * source_step_;
  ParallelFor(n, 2, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      TransformSource(p_, t_, tiles_, source, group, first + i, zeros_.data(),
                      {transformed + i * p_.channels, source_step_, kLine});
    }
  });
  ParallelFor(points_, 1, [&](int64_t begin, int64_t end) {
    for (int64_t point = begin; point < end; ++point) {
      PackedProduct(n, p_.outputs, p_.channels, transformed + point * source_step_,
                    packed + (group * points_ + point) * packed_step_, false, products + point * product_step_);
    }
  });
  const bool relu = activation.kind == Activation::Kind::kRelu, apart = activation.present() && !relu;
  const WinogradEpilogue epilogue{bias ? bias + group * p_.outputs : nullptr, sum, relu ? activation.parameter : 1};
  ParallelFor(n, 2, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto pixels = tiles_.Square<float>(destination + group * p_.outputs, p_.destination, p_.groups * p_.outputs,
                                               first + i, t_.outputs, {0, 0}, nullptr);
      t_.destination({products + i * p_.outputs, product_step_, kLine}, p_.outputs, epilogue, pixels.data());
      for (int64_t pixel = 0; apart && pixel < t_.outputs * t_.outputs; ++pixel) {
        if (pixels[pixel]) ActivateFloats(activation, p_.outputs, pixels[pixel], pixels[pixel]);
      }
    }
  });
}

WinogradKernelGradient::WinogradKernelGradient(const WinogradProblem& problem, const WinogradTransforms& transforms)
    : p_(problem),
      t_(transforms),
      points_(t_.tile * t_.tile),
      tiles_(p_.batch, p_.destination, t_.outputs),
      tiles_at_once_(
          std::min(tiles_.count(), std::max(kFewTiles, 2 * TilesInCache(points_, p_.channels + p_.outputs)))),
      source_step_(Step(tiles_at_once_ * p_.channels)),
      gradient_step_(Step(PackedFloats(tiles_at_once_, p_.outputs))),
      sum_step_(Step(p_.channels * p_.outputs)),
      zeros_(std::max(p_.channels, p_.outputs)) {}

void WinogradKernelGradient::Run(const float* source, const float* destination_gradient, float* taps,
                                 const WinogradTaps& lie, float* workspace) const {
  float* const sums = workspace + points_ * (source_step_ + gradient_step_);
  const int64_t lines = RoundedUp(p_.outputs) / kLine;
  for (int64_t group = 0; group < p_.groups; ++group) {
    for (int64_t first = 0; first < tiles_.count(); first += tiles_at_once_) {
      AddTiles(group, first, std::min(tiles_at_once_, tiles_.count() - first), source, destination_gradient, sums,
               workspace);
    }
    ParallelFor(p_.channels * lines, 64, [&](int64_t begin, int64_t end) {
      TapsOfLine line(t_.taps * t_.taps, lie);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t channel = i / lines, output = i % lines * kLine, width = std::min(kLine, p_.outputs - output);
        float* const to = taps + (group * p_.outputs + output) * lie.output + channel * lie.channel;
        t_.kernel_gradient({sums + channel * p_.outputs + output, sum_step_, 0}, width, line.Written(to));
        line.Deliver(to, width);
      }
    });
  }
}

void WinogradKernelGradient::AddTiles(int64_t group, int64_t first, int64_t n, const float* source,
                                      const float* destination_gradient, float* sums, float* workspace) const {
  float* const transformed = workspace;
  float* const transformed_gradient = workspace + points_ * source_step_;
  ParallelFor(n, 2, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      TransformSource(p_, t_, tiles_, source, group, first + i, zeros_.data(),
                      {transformed + i * p_.channels, source_step_, kLine});
      const auto made = tiles_.Square(destination_gradient + group * p_.outputs, p_.destination, p_.groups * p_.outputs,
                                      first + i, t_.outputs, {0, 0}, zeros_.data());
      t_.destination_gradient(made.data(), p_.outputs, {transformed_gradient + i * kLine, gradient_step_, n * kLine});
    }
  });
  constexpr int64_t kStrip = 48;  // rows of a sum for one thread
  const int64_t strips = (p_.channels + kStrip - 1) / kStrip;
  ParallelFor(points_ * strips, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t point = i / strips, channel = i % strips * kStrip;
      TransposedPackedProduct(std::min(kStrip, p_.channels - channel), p_.outputs, n,
                              transformed + point * source_step_ + channel, p_.channels,
                              transformed_gradient + point * gradient_step_, first > 0,
                              sums + point * sum_step_ + channel * p_.outputs);
    }
  });
}

}  // namespace crema
