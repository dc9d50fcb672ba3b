// oneDNN 2.x and 3.x behind one face: the differences of their interfaces are bridged here and nowhere else.
#ifndef CREMA_OPS_ONEDNN_H_
#define CREMA_OPS_ONEDNN_H_

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "crema/parameter_layout.h"
#include "ops/activations/activation.h"

namespace crema::onednn {

using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
using Dims = dnnl::memory::dims;

// The CPU engine and its stream: one each for the process, usable from any thread.
const dnnl::engine& Engine();
const dnnl::stream& Stream();

// Whether the processor has these instructions and ONEDNN_MAX_CPU_ISA allows them.
bool Uses(dnnl::cpu_isa instructions);

// Attributes every primitive is created with: scratch memory comes from the caller.
dnnl::primitive_attr UserScratchpad();

using Type = dnnl::memory::data_type;

// A tensor of plain layout (the last axis densest), and one whose layout oneDNN may choose.
Desc PlainDesc(const Dims& dims, Type type = Type::f32);
Desc AnyDesc(const Dims& dims, Type type = Type::f32);
Dims DimsOf(const Desc& desc);
// Where the elements of an f32 tensor lie; null where that is no matter of blocks.
std::shared_ptr<const ParameterLayout> LayoutOf(const Desc& desc);

// Whether one of oneDNN's implementations may be taken, by its impl_info_str(); null: any.
using Accepts = std::function<bool(std::string_view implementation)>;

// The arguments of a convolution. dilation as oneDNN counts it: 0 for a dense kernel.
struct ConvolutionDescs {
  Desc source, weights, destination;
  Desc bias;  // zero for none
  Dims stride, dilation, pad;
  Accepts accepts = nullptr;
};
using ConvolutionForward = dnnl::convolution_forward::primitive_desc;
using ConvolutionBackwardData = dnnl::convolution_backward_data::primitive_desc;
using ConvolutionBackwardWeights = dnnl::convolution_backward_weights::primitive_desc;
// Throw dnnl::error (dnnl_unimplemented) when no implementation takes the case.
// sum: the result is added to what the destination holds, before the activation.
ConvolutionForward MakeConvolutionForward(const ConvolutionDescs& descs, const Activation& activation = {},
                                          bool sum = false);
ConvolutionBackwardData MakeConvolutionBackwardData(const ConvolutionDescs& descs, const ConvolutionForward& hint);
ConvolutionBackwardWeights MakeConvolutionBackwardWeights(const ConvolutionDescs& descs,
                                                          const ConvolutionForward& hint);

// The arguments of a fully connected layer; bias: zero for none. Of a backward pass, the three tensors it is named
// after and reads.
struct InnerProductDescs {
  Desc source, weights, bias, destination;
  Accepts accepts = nullptr;
};
using InnerProductForward = dnnl::inner_product_forward::primitive_desc;
InnerProductForward MakeInnerProductForward(const InnerProductDescs& descs);
dnnl::inner_product_backward_data::primitive_desc MakeInnerProductBackwardData(const InnerProductDescs& descs,
                                                                               const InnerProductForward& hint);
dnnl::inner_product_backward_weights::primitive_desc MakeInnerProductBackwardWeights(const InnerProductDescs& descs,
                                                                                     const InnerProductForward& hint);

// C[b] = alpha * A[b] * B[b]; tensors of three axes: b, rows, columns.
dnnl::matmul::primitive_desc MakeMatrixProduct(const Desc& a, const Desc& b, const Desc& c, float alpha,
                                               const Accepts& accepts);

// A short list of primitives over tensors that the caller passes at every run and temporaries in a workspace. Built
// once, run any number of times without allocating on crema's side. Used by one thread at a time.
class Sequence {
 public:
  using Slot = int;
  // An argument that a primitive goes without.
  static constexpr Slot kNone = -1;

  // A tensor whose address is given to Run, in the order of these calls.
  Slot External(const Desc& desc);
  // A tensor in the workspace.
  Slot Temporary(const Desc& desc);
  // `slot` itself when it already has layout `wanted`, else a temporary that a reorder fills at this point, or filled
  // before: an external must not be written to once it was reordered.
  Slot Reordered(Slot slot, const Desc& wanted);
  // Where a primitive should write a tensor of layout `produced` that `slot` is to receive: `slot` or a temporary,
  // which Deliver then reorders into `slot`.
  Slot Receiver(Slot slot, const Desc& produced);
  void Deliver(Slot receiver, Slot slot);

  template <typename PrimitiveDesc>
  void Add(const PrimitiveDesc& desc, const dnnl::primitive& primitive,
           std::initializer_list<std::pair<int, Slot>> arguments) {
    AddStep(primitive, desc.scratchpad_desc(), arguments);
  }

  // Fixes the layout of the workspace; after the last Add.
  void Finish();
  size_t workspace_bytes() const { return workspace_bytes_; }
  // One address for each External. The workspace is aligned to 64 bytes.
  void Run(std::span<const void* const> externals, std::byte* workspace);

 private:
  struct Tensor {
    dnnl::memory memory;
    int external = -1;  // index of the external, -1: at `offset` in the workspace
    size_t offset = 0;
    void* address = nullptr;
  };
  struct Step {
    dnnl::primitive primitive;
    std::vector<dnnl_exec_arg_t> arguments;
  };

  Slot AddTensor(const Desc& desc, int external);
  void AddReorder(Slot from, Slot to);
  void AddStep(const dnnl::primitive& primitive, const Desc& scratchpad,
               std::initializer_list<std::pair<int, Slot>> arguments);

  std::vector<Tensor> tensors_;
  std::vector<Desc> descs_;
  struct Copy {
    Slot from, to;
  };
  std::vector<Copy> reordered_;
  std::vector<Slot> scratchpads_;  // share one place: each lives for one step
  std::vector<Step> steps_;
  int externals_ = 0;
  size_t workspace_bytes_ = 0;
};

}  // namespace crema::onednn

#endif  // CREMA_OPS_ONEDNN_H_
