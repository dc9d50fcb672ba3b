// LRN over neighbouring channels where channels lie densest: some pixels at a time, so that what is computed between
// source and destination stays in the first cache.
#include <algorithm>
#include <type_traits>

#include "base/bfloat16.h"
#include "base/multiversion.h"
#include "base/parallel.h"
#include "ops/normalization/lrn_kernels.h"
#include "ops/normalization/lrn_rows.h"

namespace crema {

namespace {

constexpr int64_t kStrip = 1024;  // floats worked on at a time

// sums[c] = sum of from[c - half] .. from[c + half] inside each pixel. padded: half zeros, room for a pixel's channels,
// half zeros. kHalf: 0, or half.
template <int kHalf>
CREMA_MULTIVERSION void SumNeighbours(const float* from, int64_t pixels, int64_t channels, int64_t half, float* padded,
                                      float* sums) {
  const int64_t reach = 2 * (kHalf > 0 ? kHalf : half);
  float* inner = padded + half;
  for (int64_t pixel = 0; pixel < pixels; ++pixel, from += channels, sums += channels) {
    for (int64_t c = 0; c < channels; ++c) inner[c] = from[c];
    if (kHalf > 0) {
#pragma omp simd
      for (int64_t c = 0; c < channels; ++c) {
        float sum = padded[c];
        for (int64_t i = 1; i <= 2 * kHalf; ++i) sum += padded[c + i];
        sums[c] = sum;
      }
    } else {
      for (int64_t c = 0; c < channels; ++c) sums[c] = padded[c];
      for (int64_t i = 1; i <= reach; ++i) {
#pragma omp simd
        for (int64_t c = 0; c < channels; ++c) sums[c] += padded[c + i];
      }
    }
  }
}

template <typename Number>
class AcrossChannelsLast final : public LrnKernel {
 public:
  explicit AcrossChannelsLast(const LrnProblem& problem)
      : p_(problem),
        pixels_(problem.batch * problem.height * problem.width),
        half_(std::clamp<int64_t>(problem.size / 2, 0, std::max<int64_t>(problem.channels - 1, 0))),
        strip_(std::max<int64_t>(1, kStrip / std::max<int64_t>(1, problem.channels))),
        strips_((pixels_ + strip_ - 1) / strip_),
        slots_(std::min<int64_t>(omp_get_max_threads(), strips_)),
        sum_neighbours_(half_ == 2   ? SumNeighbours<2>
                        : half_ == 1 ? SumNeighbours<1>
                                     : SumNeighbours<0>) {}

  size_t forward_workspace() const override { return static_cast<size_t>(slots_ * Scratch()) * sizeof(float); }
  size_t backward_workspace() const override { return p_.backward ? forward_workspace() : 0; }

  void Forward(const void* source, void* destination, std::byte* workspace) override {
    ForEachStrip(workspace, [&](int64_t start, int64_t pixels, float* scratch) {
      const int64_t n = pixels * p_.channels;
      float *scale = scratch, *power = scratch + Block();
      const float* x = Floats(source, start, n, scratch + kBlocks * Block());
      Scale(x, pixels, scale, power, Between(scratch));
      NegativePower(scale, p_.beta, n, power);
      float* y = Room(destination, start, scale);
      MultiplyRows(x, power, n, y);
      Finish(y, n, destination, start);
    });
  }

  void Backward(const void* source, const void* destination_gradient, void* source_gradient,
                std::byte* workspace) override {
    ForEachStrip(workspace, [&](int64_t start, int64_t pixels, float* scratch) {
      const int64_t n = pixels * p_.channels;
      float *scale = scratch, *power = scratch + Block(), *ratio = scratch + 2 * Block();
      float* converted = scratch + kBlocks * Block();
      const float* x = Floats(source, start, n, converted);
      const float* dy = Floats(destination_gradient, start, n, converted + Block());
      float* dx = Room(source_gradient, start, converted + 2 * Block());
      Scale(x, pixels, scale, power, Between(scratch));
      NegativePower(scale, p_.beta, n, power);
      GradientTerms(dy, power, scale, x, n, dx, ratio);
      sum_neighbours_(ratio, pixels, p_.channels, half_, Between(scratch), scale);
      SubtractProducts(2 * p_.beta * Weight(), x, scale, n, dx);
      Finish(dx, n, source_gradient, start);
    });
  }

 private:
  // A strip in float: the tensor's own elements, or others that stand in for them in `room`.
  static const float* Floats(const void* tensor, int64_t start, int64_t n, float* room) {
    if constexpr (std::is_same_v<Number, float>) return static_cast<const float*>(tensor) + start;
    if constexpr (std::is_same_v<Number, BFloat16>) WidenRow(static_cast<const BFloat16*>(tensor) + start, n, room);
    return room;
  }
  static float* Room(void* tensor, int64_t start, float* room) {
    if constexpr (std::is_same_v<Number, float>) return static_cast<float*>(tensor) + start;
    return room;
  }
  static void Finish(const float* room, int64_t n, void* tensor, int64_t start) {
    if constexpr (std::is_same_v<Number, BFloat16>) RoundRow(room, n, static_cast<BFloat16*>(tensor) + start);
  }

  float Weight() const { return p_.alpha / static_cast<float>(p_.size); }
  static int64_t WholeLines(int64_t floats) { return (floats + 15) / 16 * 16; }
  int64_t Block() const { return WholeLines(strip_ * p_.channels); }
  int64_t Padded() const { return WholeLines(p_.channels + 2 * half_); }
  // Floats of each slot's workspace: three blocks, as many for converted numbers, and one pixel between zeros.
  int64_t Scratch() const { return kAllBlocks * Block() + Padded(); }
  float* Between(float* scratch) const { return scratch + kAllBlocks * Block(); }

  // By slots, not threads: each owns a part of the workspace, however many threads there are by now.
  template <typename Body>
  void ForEachStrip(std::byte* workspace, const Body& body) const {
    ParallelFor(slots_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t slot = begin; slot < end; ++slot) {
        float* scratch = reinterpret_cast<float*>(workspace) + slot * Scratch();
        std::fill_n(Between(scratch), Padded(), 0.0f);
        for (int64_t strip = strips_ * slot / slots_; strip < strips_ * (slot + 1) / slots_; ++strip) {
          body(strip * strip_ * p_.channels, std::min(strip_, pixels_ - strip * strip_), scratch);
        }
      }
    });
  }

  void Scale(const float* x, int64_t pixels, float* scale, float* squares, float* padded) const {
    MultiplyRows(x, x, pixels * p_.channels, squares);
    sum_neighbours_(squares, pixels, p_.channels, half_, padded, scale);
    ScaleFromSquares(p_.k, Weight(), pixels * p_.channels, scale);
  }

  static constexpr int64_t kBlocks = 3, kAllBlocks = std::is_same_v<Number, float> ? kBlocks : 2 * kBlocks;

  LrnProblem p_;
  int64_t pixels_, half_, strip_, strips_, slots_;
  void (*sum_neighbours_)(const float*, int64_t, int64_t, int64_t, float*, float*);
};

}  // namespace

std::unique_ptr<LrnKernel> MakeLrnAcrossChannelsLast(const LrnProblem& problem, const Device& device,
                                                     std::string* why_not) {
  if (device.type() != DeviceType::kCpu) {
    *why_not = "runs on the CPU only";
  } else if (problem.layout != Layout::kChannelsLast) {
    *why_not = "takes images with channels last only";
  } else if (problem.region != LrnProblem::Region::kAcrossChannels) {
    *why_not = "region is within a channel";
  } else if (problem.dtype == DType::kBF16) {
    return std::make_unique<AcrossChannelsLast<BFloat16>>(problem);
  } else {
    return std::make_unique<AcrossChannelsLast<float>>(problem);
  }
  return nullptr;
}

}  // namespace crema
