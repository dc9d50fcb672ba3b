#include "ops/onednn.h"

#include <algorithm>

#include "base/aligned_memory.h"
#include "base/check.h"

namespace crema::onednn {

const dnnl::engine& Engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

const dnnl::stream& Stream() {
  static const dnnl::stream stream(Engine());
  return stream;
}

bool Uses(dnnl::cpu_isa instructions) {
  // Sets of bits, each generation's among those of the next.
  const auto bits = [](dnnl::cpu_isa isa) { return static_cast<unsigned int>(isa); };
  return (bits(dnnl::get_effective_cpu_isa()) & bits(instructions)) == bits(instructions);
}

dnnl::primitive_attr UserScratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

Desc PlainDesc(const Dims& dims, Type type) {
  Dims strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return Desc(dims, type, strides);
}

Desc AnyDesc(const Dims& dims, Type type) { return Desc(dims, type, Tag::any); }

namespace {

void AppendEltwise(dnnl::algorithm algorithm, float alpha, float beta, dnnl::post_ops* ops) {
#if DNNL_VERSION_MAJOR >= 3
  ops->append_eltwise(algorithm, alpha, beta);
#else
  ops->append_eltwise(1, algorithm, alpha, beta);
#endif
}

dnnl::primitive_attr Attributes(const Activation& activation, bool sum = false) {
  using Kind = Activation::Kind;
  dnnl::post_ops ops;
  if (sum) ops.append_sum(1);
  switch (activation.kind) {
    case Kind::kNone:
      break;
    case Kind::kRelu:
      AppendEltwise(dnnl::algorithm::eltwise_relu, activation.parameter, 0, &ops);
      break;
    case Kind::kRelu6:
      AppendEltwise(dnnl::algorithm::eltwise_clip, 0, 6, &ops);
      break;
    case Kind::kSigmoid:
      AppendEltwise(dnnl::algorithm::eltwise_logistic, 0, 0, &ops);
      break;
    case Kind::kTanh:
      AppendEltwise(dnnl::algorithm::eltwise_tanh, 0, 0, &ops);
      break;
    case Kind::kSwish:
      AppendEltwise(dnnl::algorithm::eltwise_swish, activation.parameter, 0, &ops);
      break;
    case Kind::kHardSwish:
      AppendEltwise(dnnl::algorithm::eltwise_hardswish, 1 / 6.0f, 0.5f, &ops);  // the numbers are of version 3
      break;
    case Kind::kMish:
      AppendEltwise(dnnl::algorithm::eltwise_mish, 0, 0, &ops);
      break;
    case Kind::kElu:
      AppendEltwise(dnnl::algorithm::eltwise_elu, activation.parameter, 0, &ops);
      break;
    case Kind::kLinear:
      AppendEltwise(dnnl::algorithm::eltwise_linear, activation.parameter, activation.second, &ops);
      break;
    default:
      CREMA_CHECK(false) << "an activation that is not fused";
  }
  dnnl::primitive_attr attributes = UserScratchpad();
  if (ops.len() > 0) attributes.set_post_ops(ops);
  return attributes;
}

dnnl::primitive_attr Times(float factor) {
  return Attributes(factor == 1 ? Activation{} : Activation{Activation::Kind::kLinear, factor});
}

// The first implementation that is accepted. What `made` was made from must still be there: oneDNN reads it again.
template <typename Made>
Made Accepted(Made made, const Accepts& accepts) {
  while (accepts && !accepts(made.impl_info_str())) {
    if (!made.next_impl()) throw dnnl::error(dnnl_unimplemented, "no implementation that may be taken");
  }
  return made;
}

}  // namespace

#if DNNL_VERSION_MAJOR >= 3

ConvolutionForward MakeConvolutionForward(const ConvolutionDescs& d, const Activation& activation, bool sum) {
  return Accepted(ConvolutionForward(Engine(), dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct,
                                     d.source, d.weights, d.bias, d.destination, d.stride, d.dilation, d.pad, d.pad,
                                     Attributes(activation, sum)),
                  d.accepts);
}

ConvolutionBackwardData MakeConvolutionBackwardData(const ConvolutionDescs& d, const ConvolutionForward& hint) {
  return Accepted(ConvolutionBackwardData(Engine(), dnnl::algorithm::convolution_direct, d.source, d.weights,
                                          d.destination, d.stride, d.dilation, d.pad, d.pad, hint, UserScratchpad()),
                  d.accepts);
}

ConvolutionBackwardWeights MakeConvolutionBackwardWeights(const ConvolutionDescs& d, const ConvolutionForward& hint) {
  return Accepted(ConvolutionBackwardWeights(Engine(), dnnl::algorithm::convolution_direct, d.source, d.weights, d.bias,
                                             d.destination, d.stride, d.dilation, d.pad, d.pad, hint, UserScratchpad()),
                  d.accepts);
}

InnerProductForward MakeInnerProductForward(const InnerProductDescs& d) {
  return InnerProductForward(Engine(), dnnl::prop_kind::forward_training, d.source, d.weights, d.bias, d.destination,
                             UserScratchpad());
}

dnnl::inner_product_backward_data::primitive_desc MakeInnerProductBackwardData(const InnerProductDescs& d,
                                                                               const InnerProductForward& hint) {
  return Accepted(dnnl::inner_product_backward_data::primitive_desc(Engine(), d.source, d.weights, d.destination, hint,
                                                                    UserScratchpad()),
                  d.accepts);
}

dnnl::inner_product_backward_weights::primitive_desc MakeInnerProductBackwardWeights(const InnerProductDescs& d,
                                                                                     const InnerProductForward& hint) {
  return {Engine(), d.source, d.weights, d.bias, d.destination, hint, UserScratchpad()};
}

dnnl::matmul::primitive_desc MakeMatrixProduct(const Desc& a, const Desc& b, const Desc& c, float alpha,
                                               const Accepts& accepts) {
  return Accepted(dnnl::matmul::primitive_desc(Engine(), a, b, c, Times(alpha)), accepts);
}

Dims DimsOf(const Desc& desc) { return desc.get_dims(); }

#else

ConvolutionForward MakeConvolutionForward(const ConvolutionDescs& d, const Activation& activation, bool sum) {
  const dnnl::convolution_forward::desc desc(dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct,
                                             d.source, d.weights, d.bias, d.destination, d.stride, d.dilation, d.pad,
                                             d.pad);
  return Accepted(ConvolutionForward(desc, Attributes(activation, sum), Engine()), d.accepts);
}

ConvolutionBackwardData MakeConvolutionBackwardData(const ConvolutionDescs& d, const ConvolutionForward& hint) {
  const dnnl::convolution_backward_data::desc desc(dnnl::algorithm::convolution_direct, d.source, d.weights,
                                                   d.destination, d.stride, d.dilation, d.pad, d.pad);
  return Accepted(ConvolutionBackwardData(desc, UserScratchpad(), Engine(), hint), d.accepts);
}

ConvolutionBackwardWeights MakeConvolutionBackwardWeights(const ConvolutionDescs& d, const ConvolutionForward& hint) {
  const dnnl::convolution_backward_weights::desc desc(dnnl::algorithm::convolution_direct, d.source, d.weights, d.bias,
                                                      d.destination, d.stride, d.dilation, d.pad, d.pad);
  return Accepted(ConvolutionBackwardWeights(desc, UserScratchpad(), Engine(), hint), d.accepts);
}

InnerProductForward MakeInnerProductForward(const InnerProductDescs& d) {
  return InnerProductForward({dnnl::prop_kind::forward_training, d.source, d.weights, d.bias, d.destination},
                             UserScratchpad(), Engine());
}

dnnl::inner_product_backward_data::primitive_desc MakeInnerProductBackwardData(const InnerProductDescs& d,
                                                                               const InnerProductForward& hint) {
  const dnnl::inner_product_backward_data::desc desc(d.source, d.weights, d.destination);
  return Accepted(dnnl::inner_product_backward_data::primitive_desc(desc, UserScratchpad(), Engine(), hint), d.accepts);
}

dnnl::inner_product_backward_weights::primitive_desc MakeInnerProductBackwardWeights(const InnerProductDescs& d,
                                                                                     const InnerProductForward& hint) {
  return {{d.source, d.weights, d.bias, d.destination}, UserScratchpad(), Engine(), hint};
}

dnnl::matmul::primitive_desc MakeMatrixProduct(const Desc& a, const Desc& b, const Desc& c, float alpha,
                                               const Accepts& accepts) {
  const dnnl::matmul::desc desc(a, b, c);
  return Accepted(dnnl::matmul::primitive_desc(desc, Times(alpha), Engine()), accepts);
}

Dims DimsOf(const Desc& desc) { return desc.dims(); }

#endif

Sequence::Slot Sequence::AddTensor(const Desc& desc, int external) {
  Tensor tensor;
  // No storage yet (oneDNN would allocate it without the explicit null): Run sets the address.
  tensor.memory = dnnl::memory(desc, Engine(), nullptr);
  tensor.external = external;
  tensors_.push_back(std::move(tensor));
  descs_.push_back(desc);
  return static_cast<Slot>(tensors_.size()) - 1;
}

Sequence::Slot Sequence::External(const Desc& desc) { return AddTensor(desc, externals_++); }

Sequence::Slot Sequence::Temporary(const Desc& desc) { return AddTensor(desc, -1); }

void Sequence::AddReorder(Slot from, Slot to) {
  const dnnl::reorder::primitive_desc desc(Engine(), descs_[from], Engine(), descs_[to], UserScratchpad());
  Add(desc, dnnl::reorder(desc), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

Sequence::Slot Sequence::Reordered(Slot slot, const Desc& wanted) {
  if (descs_[slot] == wanted) return slot;
  for (const Copy& copy : reordered_) {
    if (copy.from == slot && descs_[copy.to] == wanted) return copy.to;
  }
  const Slot reordered = Temporary(wanted);
  AddReorder(slot, reordered);
  reordered_.push_back({slot, reordered});
  return reordered;
}

Sequence::Slot Sequence::Receiver(Slot slot, const Desc& produced) {
  return descs_[slot] == produced ? slot : Temporary(produced);
}

void Sequence::Deliver(Slot receiver, Slot slot) {
  if (receiver != slot) AddReorder(receiver, slot);
}

void Sequence::AddStep(const dnnl::primitive& primitive, const Desc& scratchpad,
                       std::initializer_list<std::pair<int, Slot>> arguments) {
  Step step{primitive, {}};
  for (const auto& [argument, slot] : arguments) {
    if (slot != kNone) step.arguments.push_back({argument, tensors_[slot].memory.get()});
  }
  if (scratchpad.get_size() > 0) {
    const Slot slot = Temporary(scratchpad);
    scratchpads_.push_back(slot);
    step.arguments.push_back({DNNL_ARG_SCRATCHPAD, tensors_[slot].memory.get()});
  }
  steps_.push_back(std::move(step));
}

void Sequence::Finish() {
  size_t end = 0, scratchpad = 0;
  for (Slot i = 0; i < static_cast<Slot>(tensors_.size()); ++i) {
    if (tensors_[i].external >= 0) continue;
    if (std::find(scratchpads_.begin(), scratchpads_.end(), i) != scratchpads_.end()) {
      scratchpad = std::max(scratchpad, descs_[i].get_size());
    } else {
      tensors_[i].offset = end;
      end += AlignedBytes(descs_[i].get_size());
    }
  }
  for (const Slot i : scratchpads_) tensors_[i].offset = end;
  workspace_bytes_ = end + AlignedBytes(scratchpad);
}

void Sequence::Run(std::span<const void* const> externals, std::byte* workspace) {
  // All addresses before the first step: setting one may make oneDNN write zeros into a layout's padding.
  for (Tensor& tensor : tensors_) {
    void* address = tensor.external >= 0 ? const_cast<void*>(externals[tensor.external]) : workspace + tensor.offset;
    if (address == tensor.address) continue;
    tensor.memory.set_data_handle(address);
    tensor.address = address;
  }
  for (const Step& step : steps_) {
    const dnnl_status_t status = dnnl_primitive_execute(step.primitive.get(), Stream().get(),
                                                        static_cast<int>(step.arguments.size()), step.arguments.data());
    CREMA_CHECK(status == dnnl_success) << "oneDNN status " << status;
  }
}

}  // namespace crema::onednn
