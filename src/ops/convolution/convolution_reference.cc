// The plain loops that define what every other convolution kernel must compute.
#include <algorithm>
#include <array>
#include <cstring>

#include "ops/convolution/convolution_kernels.h"

namespace crema {

namespace {

using Index = std::array<int64_t, Shape::kMaxAxes>;

class ReferenceConvolution final : public ConvolutionKernel {
 public:
  explicit ReferenceConvolution(const ConvolutionProblem& problem) : problem_(problem) {
    for (int i = 0; i < problem.axes(); ++i) {
      output_.push_back(problem.output(i));
      source_pixels_ *= problem.input[i];
      pixels_ *= output_[i];
      taps_ *= problem.kernel[i];
    }
  }

  void Prepare(const float* weights, const float* bias) override {
    const size_t bytes = static_cast<size_t>(problem_.weights_shape().count()) * sizeof(float);
    if (!prepared_->weights.data()) prepared_->weights = Buffer(CpuDevice(), bytes);
    std::memcpy(prepared_->weights.data(), weights, bytes);
    if (problem_.bias) prepared_->bias.assign(bias, bias + problem_.outputs);
  }

  void Forward(const void* from, const float* weights, const float* bias, void* to, std::byte*) override {
    const float* source = static_cast<const float*>(from);
    float* destination = static_cast<float*>(to);
    if (problem_.prepared) {
      weights = reinterpret_cast<const float*>(prepared_->weights.data());
      bias = prepared_->bias.data();
    }
    for (int64_t i = 0; i < problem_.batch * problem_.outputs * pixels_; ++i) {
      destination[i] = (problem_.sum ? destination[i] : 0.0f) + (problem_.bias ? bias[OutputOf(i)] : 0.0f);
    }
    ForEachProduct([&](int64_t s, int64_t w, int64_t d) { destination[d] += source[s] * weights[w]; });
    ActivateFloats(problem_.activation, problem_.batch * problem_.outputs * pixels_, destination, destination);
  }

  void Backward(const void* from, const float* weights, const void* arriving, void* leaving, float* weights_gradient,
                float* bias_gradient, std::byte*) override {
    const float *source = static_cast<const float*>(from), *destination_gradient = static_cast<const float*>(arriving);
    float* source_gradient = static_cast<float*>(leaving);
    if (problem_.source_gradient) {
      std::fill_n(source_gradient, problem_.source_shape().count(), 0.0f);
      ForEachProduct(
          [&](int64_t s, int64_t w, int64_t d) { source_gradient[s] += destination_gradient[d] * weights[w]; });
    }
    if (problem_.weights_gradient) {
      std::fill_n(weights_gradient, problem_.weights_shape().count(), 0.0f);
      ForEachProduct(
          [&](int64_t s, int64_t w, int64_t d) { weights_gradient[w] += destination_gradient[d] * source[s]; });
    }
    if (problem_.bias_gradient) {
      std::fill_n(bias_gradient, problem_.outputs, 0.0f);
      for (int64_t i = 0; i < problem_.batch * problem_.outputs * pixels_; ++i) {
        bias_gradient[OutputOf(i)] += destination_gradient[i];
      }
    }
  }

 private:
  // Calls body(source index, weight index, destination index) for every product that the convolution sums.
  template <typename Body>
  void ForEachProduct(const Body& body) const {
    const int64_t inputs = problem_.channels / problem_.groups, outputs = problem_.outputs / problem_.groups;
    for (int64_t n = 0; n < problem_.batch; ++n) {
      for (int64_t o = 0; o < problem_.outputs; ++o) {
        Index position{};
        for (int64_t pixel = 0; pixel < pixels_; ++pixel, Advance(output_, &position)) {
          for (int64_t c = 0; c < inputs; ++c) {
            const int64_t channel = o / outputs * inputs + c;
            Index tap{};
            for (int64_t t = 0; t < taps_; ++t, Advance(problem_.kernel, &tap)) {
              const int64_t at = SourcePixel(position, tap);
              if (at < 0) continue;
              body(Offset(n, channel, at, problem_.channels, source_pixels_), (o * inputs + c) * taps_ + t,
                   Offset(n, o, pixel, problem_.outputs, pixels_));
            }
          }
        }
      }
    }
  }

  bool channels_last() const { return problem_.layout == Layout::kChannelsLast; }

  // The channel of element i of the destination.
  int64_t OutputOf(int64_t i) const { return (channels_last() ? i : i / pixels_) % problem_.outputs; }

  int64_t Offset(int64_t item, int64_t channel, int64_t pixel, int64_t channels, int64_t pixels) const {
    return channels_last() ? (item * pixels + pixel) * channels + channel
                           : (item * channels + channel) * pixels + pixel;
  }

  static void Advance(const std::vector<int64_t>& extents, Index* index) {
    for (int i = static_cast<int>(extents.size()) - 1; i >= 0; --i) {
      if (++(*index)[i] < extents[i]) return;
      (*index)[i] = 0;
    }
  }

  // Index within the source plane, or -1 in the padding.
  int64_t SourcePixel(const Index& position, const Index& tap) const {
    int64_t at = 0;
    for (int i = 0; i < problem_.axes(); ++i) {
      const int64_t x = position[i] * problem_.stride[i] - problem_.pad[i] + tap[i] * problem_.dilation[i];
      if (x < 0 || x >= problem_.input[i]) return -1;
      at = at * problem_.input[i] + x;
    }
    return at;
  }

  ConvolutionProblem problem_;
  std::vector<int64_t> output_;
  int64_t source_pixels_ = 1, pixels_ = 1, taps_ = 1;
};

}  // namespace

std::unique_ptr<ConvolutionKernel> MakeConvolutionReference(const ConvolutionProblem& problem, const Device& device,
                                                            std::string* why_not) {
  if (device.type() != DeviceType::kCpu) {
    *why_not = "runs on the CPU only";
    return nullptr;
  }
  if (problem.dtype != DType::kF32) {
    *why_not = "takes f32 only";
    return nullptr;
  }
  return std::make_unique<ReferenceConvolution>(problem);
}

}  // namespace crema
