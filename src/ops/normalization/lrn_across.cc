// LRN over neighbouring channels: a strip of pixels at a time, all channels of it, so that what a channel needs of its
// neighbours is still in the cache.
#include <algorithm>

#include "base/parallel.h"
#include "ops/normalization/lrn_kernels.h"
#include "ops/normalization/lrn_rows.h"

namespace crema {

namespace {

constexpr int64_t kStrip = 256;  // pixels

class AcrossChannels final : public LrnKernel {
 public:
  explicit AcrossChannels(const LrnProblem& problem)
      : p_(problem),
        pixels_(problem.height * problem.width),
        strips_((pixels_ + kStrip - 1) / kStrip),
        slots_(std::min<int64_t>(omp_get_max_threads(), problem.batch * strips_)) {}

  size_t backward_workspace() const override {
    return p_.backward ? static_cast<size_t>(slots_ * p_.channels * kStrip) * sizeof(float) : 0;
  }

  void Forward(const void* given, void* made, std::byte*) override {
    const float* source = static_cast<const float*>(given);
    float* destination = static_cast<float*>(made);
    ParallelFor(p_.batch * strips_, std::max<int64_t>(1, 16384 / (kStrip * p_.channels)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t unit = begin; unit < end; ++unit) {
                    const int64_t start = Start(unit), n = Length(unit);
                    float scale[kStrip];
                    for (int64_t c = 0; c < p_.channels; ++c) {
                      const int64_t at = start + c * pixels_;
                      Scale(source + start, c, n, scale);
                      NegativePower(scale, p_.beta, n, scale);
                      MultiplyRows(source + at, scale, n, destination + at);
                    }
                  }
                });
  }

  void Backward(const void* given, const void* given_gradient, void* made, std::byte* workspace) override {
    const float *source = static_cast<const float*>(given),
                *destination_gradient = static_cast<const float*>(given_gradient);
    float* source_gradient = static_cast<float*>(made);
    const int64_t units = p_.batch * strips_;
    // By slots, not threads: each owns a part of the workspace, however many threads there are by now.
    ParallelFor(slots_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t slot = begin; slot < end; ++slot) {
        float* ratios = reinterpret_cast<float*>(workspace) + slot * p_.channels * kStrip;
        for (int64_t unit = units * slot / slots_; unit < units * (slot + 1) / slots_; ++unit) {
          const int64_t start = Start(unit);
          BackwardStrip(source + start, destination_gradient + start, source_gradient + start, Length(unit), ratios);
        }
      }
    });
  }

 private:
  int64_t Start(int64_t unit) const { return unit / strips_ * p_.channels * pixels_ + unit % strips_ * kStrip; }
  int64_t Length(int64_t unit) const { return std::min(kStrip, pixels_ - unit % strips_ * kStrip); }
  int64_t First(int64_t c) const { return std::max<int64_t>(c - p_.size / 2, 0); }
  int64_t Last(int64_t c) const { return std::min(c + p_.size / 2, p_.channels - 1); }
  float Weight() const { return p_.alpha / static_cast<float>(p_.size); }

  // Summed anew for every channel: a running sum that adds one square and subtracts another loses digits.
  void Scale(const float* strip, int64_t c, int64_t n, float* scale) const {
    std::fill_n(scale, n, 0.0f);
    for (int64_t i = First(c); i <= Last(c); ++i) AddSquares(strip + i * pixels_, n, scale);
    ScaleFromSquares(p_.k, Weight(), n, scale);
  }

  void BackwardStrip(const float* x, const float* dy, float* dx, int64_t n, float* ratios) const {
    float scale[kStrip], power[kStrip];
    for (int64_t c = 0; c < p_.channels; ++c) {
      Scale(x, c, n, scale);
      NegativePower(scale, p_.beta, n, power);
      GradientTerms(dy + c * pixels_, power, scale, x + c * pixels_, n, dx + c * pixels_, ratios + c * kStrip);
    }
    for (int64_t c = 0; c < p_.channels; ++c) {
      std::fill_n(scale, n, 0.0f);
      for (int64_t i = First(c); i <= Last(c); ++i) AddRow(ratios + i * kStrip, n, scale);
      SubtractProducts(2 * p_.beta * Weight(), x + c * pixels_, scale, n, dx + c * pixels_);
    }
  }

  LrnProblem p_;
  int64_t pixels_, strips_, slots_;
};

}  // namespace

std::unique_ptr<LrnKernel> MakeLrnAcrossVectorised(const LrnProblem& problem, const Device& device,
                                                   std::string* why_not) {
  if (device.type() != DeviceType::kCpu) {
    *why_not = "runs on the CPU only";
  } else if (problem.layout != Layout::kPlain) {
    *why_not = "takes plain images only";
  } else if (problem.region != LrnProblem::Region::kAcrossChannels) {
    *why_not = "region is within a channel";
  } else {
    return std::make_unique<AcrossChannels>(problem);
  }
  return nullptr;
}

}  // namespace crema
