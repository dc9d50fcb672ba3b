#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "ops/arrays/vector_lanes.h"
#include "ops/convolution/convolution_kernels.h"
#include "ops/matrices/gemm.h"
#include "ops/normalization/channels.h"
#include "ops/onednn.h"
#include "ops/onednn_defects.h"

namespace crema {

namespace {

using onednn::Desc;
using onednn::Dims;
using onednn::Sequence;
using onednn::Tag;
using onednn::Type;

// How the tensors lie inside one direction; where that is not the problem's layout, reorders lead to and from it.
enum class Order { kPlain, kBlocked, kChannelsLast };
using Preference = std::array<Order, 3>;

bool IsPointwise(const ConvolutionProblem& p) {
  bool pointwise = p.groups == 1;
  for (int i = 0; i < p.axes(); ++i) pointwise &= p.kernel[i] == 1 && p.stride[i] == 1 && p.pad[i] == 0;
  return pointwise;
}

// Measured with oneDNN 2.6 on AVX-512, reorders included: plain tensors leave oneDNN only its
// im2col path, 2 to 7 times slower than the direct kernels, except where there is nothing to gather (1x1). The blocked
// kernels compute on groups of 16 channels and waste the rest of the last group; the channels-last ones do not.
Preference PreferredOrders(const ConvolutionProblem& p) {
  if (p.layout == Layout::kChannelsLast) return {Order::kChannelsLast, Order::kBlocked, Order::kPlain};
  const int64_t channels = p.channels / p.groups, outputs = p.outputs / p.groups;
  const bool depthwise = channels == 1 && outputs == 1;
  const bool whole_blocks = (channels % 16 == 0 || (channels <= 3 && p.groups == 1)) && outputs % 16 == 0;
  if (IsPointwise(p)) return {Order::kPlain, Order::kChannelsLast, Order::kBlocked};
  // One input channel: the blocked kernel reads a plain source.
  if (depthwise || whole_blocks || channels == 1) return {Order::kBlocked, Order::kChannelsLast, Order::kPlain};
  return {Order::kChannelsLast, Order::kBlocked, Order::kPlain};
}

// The gradient of an image of few channels: the direct kernels would fill vectors of channels with zeros.
Preference PreferredForSourceGradient(const ConvolutionProblem& p) {
  if (p.layout == Layout::kChannelsLast) return PreferredOrders(p);
  if (p.channels / p.groups <= 4 && p.channels != p.groups) {
    return {Order::kPlain, Order::kChannelsLast, Order::kBlocked};
  }
  if (p.channels == 1) return {Order::kPlain, Order::kChannelsLast, Order::kBlocked};
  return PreferredOrders(p);
}

// Whether Gemm is faster for the gradient of weights, where images with channels last are matrices. Measured with
// oneDNN 2.6 on AVX2: its kernel takes 1.1 to 1.9 times as long with many channels, and is as fast with few.
bool MultipliesForWeights(const ConvolutionProblem& p) {
  return VectorLanes() == 8 && p.weights_gradient && p.layout == Layout::kChannelsLast && p.dtype == DType::kF32 &&
         IsPointwise(p) && std::min(p.channels, p.outputs) >= 128 && std::max(p.channels, p.outputs) >= 512;
}

class Builder {
 public:
  explicit Builder(const ConvolutionProblem& problem) : problem_(problem) {
    source_ = problem.source_shape().dims();
    destination_ = problem.destination_shape().dims();
    weights_ = problem.weights_shape().dims();
    if (problem.groups > 1) {
      weights_[0] /= problem.groups;
      weights_.insert(weights_.begin(), problem.groups);
    }
    for (int i = 0; i < problem.axes(); ++i) dilation_.push_back(problem.dilation[i] - 1);
  }

  Desc source() const { return Given(source_); }
  Desc weights() const { return onednn::PlainDesc(weights_); }
  Desc destination() const { return Given(destination_); }
  Desc bias() const { return onednn::PlainDesc({problem_.outputs}); }

  // The gradient of weights is f32 whatever they are multiplied in.
  onednn::ConvolutionDescs Descs(Order order, bool bias, bool weights_gradient = false) const {
    return {Laid(source_, order),
            onednn::AnyDesc(weights_, weights_gradient ? Type::f32 : type()),
            Laid(destination_, order),
            bias ? this->bias() : Desc(),
            problem_.stride,
            dilation_,
            problem_.pad};
  }

  // make(order) for the first layout that has a fast implementation, else the first that has any.
  template <typename Make>
  auto First(const Preference& preference, const Make& make) const {
    using Made = decltype(make(Order::kPlain));
    std::optional<Made> slow;
    for (const Order order : preference) {
      try {
        Made made = make(order);
        if (std::string(made.impl_info_str()).find("ref") == std::string::npos) return made;
        if (!slow) slow = made;
      } catch (const dnnl::error& error) {
        if (error.status != dnnl_unimplemented) throw;
      }
    }
    if (!slow) throw dnnl::error(dnnl_unimplemented, "no implementation takes these sizes");
    return *slow;
  }

 private:
  Type type() const { return problem_.dtype == DType::kBF16 ? Type::bf16 : Type::f32; }

  Desc Given(const Dims& dims) const {
    return Laid(dims, problem_.layout == Layout::kPlain ? Order::kPlain : Order::kChannelsLast);
  }

  Desc Laid(const Dims& dims, Order order) const {
    constexpr Tag kChannelsLast[] = {Tag::nwc, Tag::nhwc, Tag::ndhwc};
    if (order == Order::kPlain) return onednn::PlainDesc(dims, type());
    if (order == Order::kBlocked) return onednn::AnyDesc(dims, type());
    return Desc(dims, type(), kChannelsLast[problem_.axes() - 1]);
  }

  const ConvolutionProblem& problem_;
  Dims source_, weights_, destination_, dilation_;
};

class OneDnnConvolution final : public ConvolutionKernel {
 public:
  OneDnnConvolution(const ConvolutionProblem& problem, Device& device) : problem_(problem), device_(device) {
    const Builder builder(problem);
    const auto forward = builder.First(PreferredOrders(problem_), [&](Order order) {
      auto descs = builder.Descs(order, problem_.bias);
      descs.accepts = onednn::SoundForward(problem_);
      return onednn::MakeConvolutionForward(descs, problem_.activation, problem_.sum);
    });
    // oneDNN's f32 kernels with channels last take up to twice the time when they sum up the bias's gradient, too
    // (64 channels of 113 x 113, 32 images: 22 ms, 13 without; the sum alone 5).
    sums_bias_apart_ =
        problem_.bias_gradient &&
        (!problem_.weights_gradient || (problem_.layout == Layout::kChannelsLast && problem_.dtype == DType::kF32));
    multiplies_for_weights_ = MultipliesForWeights(problem_);
    std::optional<onednn::ConvolutionBackwardWeights> to_weights;
    if (problem_.weights_gradient && !multiplies_for_weights_) {
      to_weights = builder.First(PreferredOrders(problem_), [&](Order order) {
        auto descs = builder.Descs(order, problem_.bias_gradient && !sums_bias_apart_, true);
        descs.accepts = onednn::SoundWeightsGradient(problem_);
        return onednn::MakeConvolutionBackwardWeights(descs,
                                                      onednn::MakeConvolutionForward(builder.Descs(order, false)));
      });
    }
    weights_ = builder.weights();
    if (problem_.lay_out_weights && to_weights) LayOutWeights(to_weights->diff_weights_desc());
    BuildForward(builder, forward);
    BuildBackward(builder, to_weights);
  }

  size_t forward_workspace() const override { return forward_.workspace_bytes(); }
  size_t backward_workspace() const override {
    return std::max(backward_.workspace_bytes(), sums_bias_apart_ ? ChannelWorkspace(DestinationGrid()) : 0);
  }
  std::shared_ptr<const ParameterLayout> weights_layout() const override { return weights_layout_; }

  void Prepare(const float* weights, const float* bias) override {
    const void* externals[] = {weights, prepared_->weights.data()};
    prepare_.Run(externals, nullptr);
    if (bias) prepared_->bias.assign(bias, bias + problem_.outputs);
  }

  void Forward(const void* source, const float* weights, const float* bias, void* destination,
               std::byte* workspace) override {
    const void* externals[] = {source, weights, destination, bias};
    if (problem_.prepared) {
      externals[1] = prepared_->weights.data();
      externals[3] = prepared_->bias.data();
    }
    forward_.Run(externals, workspace);
  }

  void Backward(const void* source, const float* weights, const void* destination_gradient, void* source_gradient,
                float* weights_gradient, float* bias_gradient, std::byte* workspace) override {
    if (problem_.source_gradient || problem_.weights_gradient) {
      const void* externals[] = {source,          weights,          destination_gradient,
                                 source_gradient, weights_gradient, bias_gradient};
      backward_.Run(externals, workspace);
    }
    if (multiplies_for_weights_) {
      Gemm(/*transpose_a=*/true, /*transpose_b=*/false, problem_.outputs, problem_.channels,
           problem_.destination_shape().count() / problem_.outputs, 1, static_cast<const float*>(destination_gradient),
           static_cast<const float*>(source), 0, weights_gradient);
    }
    if (sums_bias_apart_) {
      ChannelGradientSums(DestinationGrid(), {.dy = destination_gradient}, nullptr, nullptr, bias_gradient, nullptr,
                          workspace);
    }
  }

 private:
  ChannelGrid DestinationGrid() const {
    return {problem_.batch, problem_.outputs, problem_.destination_shape().count(2), problem_.layout, problem_.dtype};
  }

  // As their gradient comes. Forward and the gradient of the source each want another form still; of the three
  // reorders the gradient's to plain is the slowest, and from its form the other two are faster than from plain.
  void LayOutWeights(const Desc& gradient) {
    const auto layout = onednn::LayoutOf(gradient);
    if (!layout) return;
    weights_ = gradient;
    if (!layout->is_plain()) weights_layout_ = layout;
  }

  void BuildForward(const Builder& builder, const onednn::ConvolutionForward& desc) {
    const auto source = forward_.External(builder.source());
    const auto weights = forward_.External(problem_.prepared ? desc.weights_desc() : weights_);
    const auto destination = forward_.External(builder.destination());
    const auto bias = problem_.bias ? forward_.External(builder.bias()) : Sequence::kNone;
    const auto receiver = problem_.sum ? forward_.Reordered(destination, desc.dst_desc())
                                       : forward_.Receiver(destination, desc.dst_desc());
    forward_.Add(desc, dnnl::convolution_forward(desc),
                 {{DNNL_ARG_SRC, forward_.Reordered(source, desc.src_desc())},
                  {DNNL_ARG_WEIGHTS, forward_.Reordered(weights, desc.weights_desc())},
                  {DNNL_ARG_BIAS, bias},
                  {DNNL_ARG_DST, receiver}});
    forward_.Deliver(receiver, destination);
    forward_.Finish();
    if (!problem_.prepared) return;
    prepared_->weights = Buffer(device_, desc.weights_desc().get_size());
    prepared_->bias.resize(problem_.outputs);
    const auto given = prepare_.External(builder.weights());
    prepare_.Deliver(given, prepare_.External(desc.weights_desc()));
    prepare_.Finish();
  }

  void BuildBackward(const Builder& builder, const std::optional<onednn::ConvolutionBackwardWeights>& to_weights) {
    const auto source = backward_.External(builder.source()), weights = backward_.External(weights_),
               destination_gradient = backward_.External(builder.destination()),
               source_gradient = backward_.External(builder.source()), weights_gradient = backward_.External(weights_),
               bias_gradient = backward_.External(builder.bias());
    if (to_weights) {
      const auto& desc = *to_weights;
      const auto receiver = backward_.Receiver(weights_gradient, desc.diff_weights_desc());
      backward_.Add(
          desc, dnnl::convolution_backward_weights(desc),
          {{DNNL_ARG_SRC, backward_.Reordered(source, desc.src_desc())},
           {DNNL_ARG_DIFF_DST, backward_.Reordered(destination_gradient, desc.diff_dst_desc())},
           {DNNL_ARG_DIFF_WEIGHTS, receiver},
           {DNNL_ARG_DIFF_BIAS, problem_.bias_gradient && !sums_bias_apart_ ? bias_gradient : Sequence::kNone}});
      backward_.Deliver(receiver, weights_gradient);
    }
    if (problem_.source_gradient) {
      const auto desc = builder.First(PreferredForSourceGradient(problem_), [&](Order order) {
        auto descs = builder.Descs(order, false);
        const auto hint = onednn::MakeConvolutionForward(descs);
        descs.accepts = onednn::SoundSourceGradient(problem_);
        return onednn::MakeConvolutionBackwardData(descs, hint);
      });
      const auto receiver = backward_.Receiver(source_gradient, desc.diff_src_desc());
      backward_.Add(desc, dnnl::convolution_backward_data(desc),
                    {{DNNL_ARG_DIFF_DST, backward_.Reordered(destination_gradient, desc.diff_dst_desc())},
                     {DNNL_ARG_WEIGHTS, backward_.Reordered(weights, desc.weights_desc())},
                     {DNNL_ARG_DIFF_SRC, receiver}});
      backward_.Deliver(receiver, source_gradient);
    }
    backward_.Finish();
  }

  ConvolutionProblem problem_;
  Device& device_;
  bool sums_bias_apart_ = false, multiplies_for_weights_ = false;
  Desc weights_;  // how weights and their gradient lie where they are not prepared
  std::shared_ptr<const ParameterLayout> weights_layout_;
  Sequence prepare_, forward_, backward_;
};

}  // namespace

std::unique_ptr<ConvolutionKernel> MakeConvolutionOneDnn(const ConvolutionProblem& problem, const Device& device,
                                                         std::string* why_not) {
  if (device.type() != DeviceType::kCpu) {
    *why_not = "runs on the CPU only";
  } else if (problem.axes() < 1 || problem.axes() > 3) {
    *why_not = std::to_string(problem.axes()) + " spatial axes, it takes 1 to 3";
  } else if (problem.source_shape().count() == 0) {
    *why_not = "nothing to compute";
  } else {
    try {
      return std::make_unique<OneDnnConvolution>(problem, CpuDevice());
    } catch (const dnnl::error& error) {
      if (error.status != dnnl_unimplemented) throw;
      *why_not = error.message;
    }
  }
  return nullptr;
}

}  // namespace crema
