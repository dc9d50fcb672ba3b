// The plain loops that define what every other LRN kernel must compute.
#include <algorithm>
#include <cmath>

#include "ops/normalization/lrn_kernels.h"

namespace crema {

namespace {

class ReferenceLrn final : public LrnKernel {
 public:
  explicit ReferenceLrn(const LrnProblem& problem) : p_(problem) {}

  void Forward(const void* given, void* made, std::byte*) override {
    const float* source = static_cast<const float*>(given);
    float* destination = static_cast<float*>(made);
    ForEach([&](int64_t n, int64_t c, int64_t h, int64_t w) {
      const int64_t i = At(n, c, h, w);
      destination[i] = static_cast<float>(source[i] * std::pow(Scale(source, n, c, h, w), -double{p_.beta}));
    });
  }

  // d y[j] / d x[i] = [i == j] scale[j]^-beta - 2 beta weight x[j] scale[j]^(-beta - 1) x[i] for i in the window of j.
  void Backward(const void* given, const void* given_gradient, void* made, std::byte*) override {
    const float *source = static_cast<const float*>(given),
                *destination_gradient = static_cast<const float*>(given_gradient);
    float* source_gradient = static_cast<float*>(made);
    ForEach([&](int64_t n, int64_t c, int64_t h, int64_t w) {
      const int64_t i = At(n, c, h, w);
      double sum = 0;
      Neighbours(c, h, w, [&](int64_t c2, int64_t h2, int64_t w2) {
        const int64_t j = At(n, c2, h2, w2);
        sum += destination_gradient[j] * source[j] * std::pow(Scale(source, n, c2, h2, w2), -double{p_.beta} - 1);
      });
      source_gradient[i] =
          static_cast<float>(destination_gradient[i] * std::pow(Scale(source, n, c, h, w), -double{p_.beta}) -
                             2 * double{p_.beta} * Weight() * source[i] * sum);
    });
  }

 private:
  bool across() const { return p_.region == LrnProblem::Region::kAcrossChannels; }
  double Weight() const { return double{p_.alpha} / static_cast<double>(across() ? p_.size : p_.size * p_.size); }
  int64_t At(int64_t n, int64_t c, int64_t h, int64_t w) const {
    if (p_.layout == Layout::kChannelsLast) return ((n * p_.height + h) * p_.width + w) * p_.channels + c;
    return ((n * p_.channels + c) * p_.height + h) * p_.width + w;
  }

  template <typename Body>
  void ForEach(const Body& body) const {
    for (int64_t n = 0; n < p_.batch; ++n) {
      for (int64_t c = 0; c < p_.channels; ++c) {
        for (int64_t h = 0; h < p_.height; ++h) {
          for (int64_t w = 0; w < p_.width; ++w) body(n, c, h, w);
        }
      }
    }
  }

  // The elements whose squares element (c, h, w) sums; the relation is symmetric.
  template <typename Body>
  void Neighbours(int64_t c, int64_t h, int64_t w, const Body& body) const {
    const int64_t half = p_.size / 2;
    if (across()) {
      for (int64_t i = std::max<int64_t>(c - half, 0); i <= std::min(c + half, p_.channels - 1); ++i) body(i, h, w);
      return;
    }
    for (int64_t i = std::max<int64_t>(h - half, 0); i <= std::min(h + half, p_.height - 1); ++i) {
      for (int64_t j = std::max<int64_t>(w - half, 0); j <= std::min(w + half, p_.width - 1); ++j) body(c, i, j);
    }
  }

  double Scale(const float* source, int64_t n, int64_t c, int64_t h, int64_t w) const {
    double sum = 0;
    Neighbours(c, h, w, [&](int64_t c2, int64_t h2, int64_t w2) {
      const double x = source[At(n, c2, h2, w2)];
      sum += x * x;
    });
    return (across() ? double{p_.k} : 1.0) + Weight() * sum;
  }

  LrnProblem p_;
};

}  // namespace

std::unique_ptr<LrnKernel> MakeLrnReference(const LrnProblem& problem, const Device& device, std::string* why_not) {
  if (device.type() != DeviceType::kCpu) {
    *why_not = "runs on the CPU only";
    return nullptr;
  }
  if (problem.dtype != DType::kF32) {
    *why_not = "takes f32 only";
    return nullptr;
  }
  return std::make_unique<ReferenceLrn>(problem);
}

}  // namespace crema
