// Convolutions of 3 x 3 and 5 x 5 by Winograd's filtering (ops/convolution/winograd.h).
#include <algorithm>
#include <optional>
#include <string>

#include "ops/arrays/vector_lanes.h"
#include "ops/convolution/convolution_kernels.h"
#include "ops/convolution/winograd_passes.h"
#include "ops/normalization/channels.h"

namespace crema {

namespace {

int64_t OfOneGroup(int64_t channels, const ConvolutionProblem& p) { return channels / p.groups; }

WinogradProblem ForwardProblem(const ConvolutionProblem& p) {
  return {p.batch,
          p.groups,
          OfOneGroup(p.channels, p),
          OfOneGroup(p.outputs, p),
          {p.input[0], p.input[1]},
          {p.output(0), p.output(1)},
          {p.pad[0], p.pad[1]}};
}

// The gradient of the source: a convolution of the destination's.
WinogradProblem BackwardProblem(const ConvolutionProblem& p) {
  const WinogradProblem forward = ForwardProblem(p);
  return {p.batch,
          p.groups,
          forward.outputs,
          forward.channels,
          forward.destination,
          forward.source,
          {p.kernel[0] - 1 - p.pad[0], p.kernel[1] - 1 - p.pad[1]}};
}

WinogradTaps TapsOf(const ConvolutionProblem& p) {
  const int64_t channels = OfOneGroup(p.channels, p), taps = p.kernel[0] * p.kernel[1];
  if (p.lay_out_weights && !p.prepared) return {.output = 1, .channel = p.outputs, .tap = channels * p.outputs};
  return {.output = channels * taps, .channel = taps, .tap = 1};
}

std::shared_ptr<const ParameterLayout> LayoutOf(const ConvolutionProblem& p, const WinogradTaps& lie) {
  const int64_t channels = OfOneGroup(p.channels, p), taps = p.kernel[0] * p.kernel[1];
  std::vector<int64_t> rows(p.outputs), columns(channels * taps);
  for (int64_t k = 0; k < p.outputs; ++k) rows[k] = k * lie.output;
  for (int64_t i = 0; i < channels * taps; ++i) columns[i] = i / taps * lie.channel + i % taps * lie.tap;
  return std::make_shared<ParameterLayout>("cdba", p.outputs * channels * taps, std::move(rows), std::move(columns));
}

class WinogradConvolution final : public ConvolutionKernel {
 public:
  WinogradConvolution(const ConvolutionProblem& problem, const WinogradTransforms& transforms)
      : p_(problem), lie_(TapsOf(problem)), filter_(ForwardProblem(problem), transforms) {
    if (p_.source_gradient) to_source_.emplace(BackwardProblem(problem), transforms);
    if (p_.weights_gradient) to_weights_.emplace(ForwardProblem(problem), transforms);
    if (p_.lay_out_weights && !p_.prepared) weights_layout_ = LayoutOf(p_, lie_);
    if (p_.prepared) prepared_->weights = Buffer(CpuDevice(), Bytes(filter_.packed_floats()));
  }

  size_t forward_workspace() const override {
    return Bytes((p_.prepared ? 0 : filter_.packed_floats()) + filter_.workspace_floats());
  }
  size_t backward_workspace() const override {
    const int64_t source = to_source_ ? to_source_->packed_floats() + to_source_->workspace_floats() : 0;
    const int64_t weights = to_weights_ ? to_weights_->workspace_floats() : 0;
    return std::max(Bytes(std::max(source, weights)), p_.bias_gradient ? ChannelWorkspace(DestinationGrid()) : 0);
  }
  std::shared_ptr<const ParameterLayout> weights_layout() const override { return weights_layout_; }

  void Prepare(const float* weights, const float* bias) override {
    filter_.Pack(weights, lie_, prepared());
    if (bias) prepared_->bias.assign(bias, bias + p_.outputs);
  }

  void Forward(const void* source, const float* weights, const float* bias, void* destination,
               std::byte* workspace) override {
    float *scratch = reinterpret_cast<float*>(workspace), *packed = prepared();
    if (p_.prepared) {
      bias = prepared_->bias.data();
    } else {
      packed = scratch;
      scratch += filter_.packed_floats();
      filter_.Pack(weights, lie_, packed);
    }
    filter_.Run(static_cast<const float*>(source), packed, p_.bias ? bias : nullptr, p_.sum, p_.activation,
                static_cast<float*>(destination), scratch);
  }

  void Backward(const void* source, const float* weights, const void* destination_gradient, void* source_gradient,
                float* weights_gradient, float* bias_gradient, std::byte* workspace) override {
    const float* gradient = static_cast<const float*>(destination_gradient);
    float* const scratch = reinterpret_cast<float*>(workspace);
    if (to_source_) {
      to_source_->PackMirrored(weights, lie_, scratch);
      to_source_->Run(gradient, scratch, nullptr, false, {}, static_cast<float*>(source_gradient),
                      scratch + to_source_->packed_floats());
    }
    if (to_weights_) to_weights_->Run(static_cast<const float*>(source), gradient, weights_gradient, lie_, scratch);
    if (p_.bias_gradient) {
      ChannelGradientSums(DestinationGrid(), {.dy = destination_gradient}, nullptr, nullptr, bias_gradient, nullptr,
                          workspace);
    }
  }

 private:
  static size_t Bytes(int64_t floats) { return static_cast<size_t>(floats) * sizeof(float); }

  ChannelGrid DestinationGrid() const {
    return {p_.batch, p_.outputs, p_.output(0) * p_.output(1), p_.layout, p_.dtype};
  }

  float* prepared() { return reinterpret_cast<float*>(prepared_->weights.data()); }

  const ConvolutionProblem p_;
  const WinogradTaps lie_;  // weights and their gradient
  std::shared_ptr<const ParameterLayout> weights_layout_;
  const WinogradFilter filter_;
  std::optional<WinogradFilter> to_source_;
  std::optional<WinogradKernelGradient> to_weights_;
};

// What all asked for costs, in multiply-adds, where vectors do them as fast as they can. Measured on AVX-512: each
// number of a transformed tile is kTransform more; tiles for the gradient of kernels are two, and are no one thread's
// alone; a number of a transformed kernel is read from a cache all threads share, if it fits, and made before that
// where kernels are not prepared.
double WinogradCost(const ConvolutionProblem& p, const WinogradTransforms& t) {
  constexpr double kTransform = 14, kGradientTile = 700, kSharedCache = 12e6;
  const WinogradProblem forward = ForwardProblem(p), backward = BackwardProblem(p);
  const double channels = static_cast<double>(forward.channels), outputs = static_cast<double>(forward.outputs);
  const double points = t.tile * t.tile, groups = static_cast<double>(p.groups);
  const bool cached = points * groups * channels * outputs * sizeof(float) < kSharedCache;
  const double made = cached ? 20 : 70, prepared = cached ? 4 : 7;
  const double products = channels * outputs, transforms = kTransform * (channels + outputs);
  const auto tiles = [&](const WinogradProblem& problem) {
    return static_cast<double>(WinogradTiles(p.batch, problem.destination, t.outputs).count());
  };
  double cost = tiles(forward) * (products + transforms) + (p.prepared ? prepared : made) * products;
  if (p.source_gradient) cost += tiles(backward) * (products + transforms) + made * products;
  if (p.weights_gradient) cost += tiles(forward) * (products + 2 * transforms + kGradientTile) + made * products;
  return points * groups * cost;
}

// oneDNN's kernels come less near to what vectors can do where these are narrower. Measured with AVX2.
double DirectCost(const ConvolutionProblem& p) {
  const int lanes = VectorLanes();
  const double inefficiency = lanes == 16 ? 1 : lanes == 8 ? 1.5 : 2;
  return inefficiency * p.flops() / 2 * (1 + (p.source_gradient ? 1 : 0) + (p.weights_gradient ? 1 : 0));
}

bool AllEqual(const std::vector<int64_t>& values, int64_t value) {
  return std::all_of(values.begin(), values.end(), [value](int64_t v) { return v == value; });
}

// Null where the definition is faster.
const WinogradTransforms* FastestTransforms(const ConvolutionProblem& p) {
  constexpr double kWorthIt = 0.9;
  const WinogradTransforms* best = nullptr;
  double least = kWorthIt * DirectCost(p);
  for (const int m : {4, 2}) {
    if (m == 4 && p.kernel[0] == 5) continue;
    const WinogradTransforms& transforms = WinogradTransformsFor(m, static_cast<int>(p.kernel[0]));
    const double cost = WinogradCost(p, transforms);
    if (cost >= least) continue;
    least = cost;
    best = &transforms;
  }
  return best;
}

}  // namespace

std::unique_ptr<ConvolutionKernel> MakeConvolutionWinograd(const ConvolutionProblem& problem, const Device& device,
                                                           std::string* why_not) {
  if (device.type() != DeviceType::kCpu) {
    *why_not = "runs on the CPU only";
  } else if (problem.dtype != DType::kF32 || problem.layout != Layout::kChannelsLast) {
    *why_not = "takes f32 with channels last only";
  } else if (problem.axes() != 2 || problem.kernel[0] != problem.kernel[1] ||
             (problem.kernel[0] != 3 && problem.kernel[0] != 5)) {
    *why_not = "takes kernels of 3 x 3 and 5 x 5 only";
  } else if (!AllEqual(problem.stride, 1) || !AllEqual(problem.dilation, 1)) {
    *why_not = "takes no stride and no dilation";
  } else if (std::max(problem.pad[0], problem.pad[1]) >= problem.kernel[0]) {
    *why_not = "takes less padding than the kernel is wide";
  } else if (problem.source_shape().count() == 0) {
    *why_not = "nothing to compute";
  } else if (const WinogradTransforms* transforms = FastestTransforms(problem)) {
    return std::make_unique<WinogradConvolution>(problem, *transforms);
  } else {
    *why_not = "is slower for these sizes";
  }
  return nullptr;
}

}  // namespace crema
