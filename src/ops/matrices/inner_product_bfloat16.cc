#include <string>

#include "ops/arrays/vector_math.h"
#include "ops/matrices/inner_product_kernels.h"
#include "ops/onednn.h"
#include "ops/onednn_defects.h"

namespace crema {

namespace {

using onednn::Desc;
using onednn::Sequence;
using onednn::Type;

// Fewer rows do not pay for bringing the weights into the type and layout that oneDNN multiplies, at every pass: fc6 of
// AlexNet forward, two threads of an EPYC: 21 ms with 8 rows, 23 with 32; 4 and 6 in f32.
constexpr int64_t kFewestRows = 128;

class BFloat16InnerProduct final : public InnerProductKernel {
 public:
  explicit BFloat16InnerProduct(const InnerProductProblem& problem) : problem_(problem) {
    const onednn::InnerProductDescs any = {Any(source(), Type::bf16), Any(weights(), Type::bf16), bias(problem.bias),
                                           Any(destination(), Type::f32)};
    const auto desc = onednn::MakeInnerProductForward(any);
    const auto from = forward_.External(source()), by = forward_.External(weights()),
               to = forward_.External(destination());
    const auto added = problem.bias ? forward_.External(bias(true)) : Sequence::kNone;
    const auto receiver = forward_.Receiver(to, desc.dst_desc());
    forward_.Add(desc, dnnl::inner_product_forward(desc),
                 {{DNNL_ARG_SRC, forward_.Reordered(from, desc.src_desc())},
                  {DNNL_ARG_WEIGHTS, forward_.Reordered(by, desc.weights_desc())},
                  {DNNL_ARG_BIAS, added},
                  {DNNL_ARG_DST, receiver}});
    forward_.Deliver(receiver, to);
    forward_.Finish();
    BuildBackward(desc);
  }

  size_t forward_workspace() const override { return forward_.workspace_bytes(); }
  size_t backward_workspace() const override { return backward_.workspace_bytes(); }

  void Forward(const float* source, const float* weights, const float* bias, float* destination,
               std::byte* workspace) override {
    const void* externals[] = {source, weights, destination, bias};
    forward_.Run(externals, workspace);
  }

  void Backward(const float* source, const float* weights, const float* destination_gradient, float* source_gradient,
                float* weights_gradient, float* bias_gradient, std::byte* workspace) override {
    const void* externals[] = {source, weights, destination_gradient, source_gradient, weights_gradient};
    backward_.Run(externals, workspace);
    if (problem_.bias_gradient) SumRows(problem_.rows, problem_.outputs, destination_gradient, bias_gradient);
  }

 private:
  // As the layer's tensors lie.
  Desc source() const { return onednn::PlainDesc({problem_.rows, problem_.inputs}); }
  Desc destination() const { return onednn::PlainDesc({problem_.rows, problem_.outputs}); }
  Desc bias(bool present) const { return present ? onednn::PlainDesc({problem_.outputs}) : Desc(); }
  Desc weights() const {
    const onednn::Dims dims = {problem_.outputs, problem_.inputs};
    return problem_.transpose ? Desc(dims, Type::f32, onednn::Dims{1, problem_.outputs}) : onednn::PlainDesc(dims);
  }
  static Desc Any(const Desc& desc, Type type) { return onednn::AnyDesc(onednn::DimsOf(desc), type); }

  void BuildBackward(const dnnl::inner_product_forward::primitive_desc& hint) {
    const auto from = backward_.External(source()), by = backward_.External(weights()),
               gradient = backward_.External(destination()), source_gradient = backward_.External(source()),
               weights_gradient = backward_.External(weights());
    const Desc destination = Any(this->destination(), Type::bf16);
    if (problem_.weights_gradient) {
      const auto desc = onednn::MakeInnerProductBackwardWeights(
          {Any(source(), Type::bf16), Any(weights(), Type::f32), Desc(), destination}, hint);
      const auto receiver = backward_.Receiver(weights_gradient, desc.diff_weights_desc());
      backward_.Add(desc, dnnl::inner_product_backward_weights(desc),
                    {{DNNL_ARG_SRC, backward_.Reordered(from, desc.src_desc())},
                     {DNNL_ARG_DIFF_DST, backward_.Reordered(gradient, desc.diff_dst_desc())},
                     {DNNL_ARG_DIFF_WEIGHTS, receiver}});
      backward_.Deliver(receiver, weights_gradient);
    }
    if (problem_.source_gradient) {
      const auto desc =
          onednn::MakeInnerProductBackwardData({Any(source(), Type::f32), Any(weights(), Type::bf16), Desc(),
                                                destination, onednn::SoundSourceGradient(problem_)},
                                               hint);
      const auto receiver = backward_.Receiver(source_gradient, desc.diff_src_desc());
      backward_.Add(desc, dnnl::inner_product_backward_data(desc),
                    {{DNNL_ARG_DIFF_DST, backward_.Reordered(gradient, desc.diff_dst_desc())},
                     {DNNL_ARG_WEIGHTS, backward_.Reordered(by, desc.weights_desc())},
                     {DNNL_ARG_DIFF_SRC, receiver}});
      backward_.Deliver(receiver, source_gradient);
    }
    backward_.Finish();
  }

  const InnerProductProblem problem_;
  Sequence forward_, backward_;
};

}  // namespace

std::unique_ptr<InnerProductKernel> MakeInnerProductBFloat16(const InnerProductProblem& problem, const Device& device,
                                                             std::string* why_not) {
  if (problem.factors != Factors::kBF16) {
    *why_not = "the product is wanted in f32";
  } else if (device.type() != DeviceType::kCpu) {
    *why_not = "runs on the CPU only";
  } else if (problem.rows < kFewestRows) {
    *why_not = "f32 is faster with less than " + std::to_string(kFewestRows) + " rows";
  } else {
    try {
      return std::make_unique<BFloat16InnerProduct>(problem);
    } catch (const dnnl::error& error) {
      if (error.status != dnnl_unimplemented) throw;
      *why_not = error.message;
    }
  }
  return nullptr;
}

}  // namespace crema
