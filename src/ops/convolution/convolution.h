// Convolution of any number of spatial axes, dense tensors, f32 or bf16, plain or with channels last, weights outputs x
// channels/groups x kernel... as in Caffe's files (a cross-correlation: the kernel is not mirrored).
#ifndef CREMA_OPS_CONVOLUTION_CONVOLUTION_H_
#define CREMA_OPS_CONVOLUTION_CONVOLUTION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "crema/parameter_layout.h"
#include "crema/tensor.h"
#include "device/device.h"
#include "ops/activations/activation.h"
#include "ops/kernel_choice.h"

namespace crema {

// The sizes of one convolution and what will be asked of it. Vectors hold one entry for each spatial axis, outermost
// first.
struct ConvolutionProblem {
  int64_t batch = 1;
  int64_t channels = 1;  // of the input; a multiple of groups
  int64_t outputs = 1;   // channels of the output; a multiple of groups
  int64_t groups = 1;
  std::vector<int64_t> input = {}, kernel = {}, stride = {}, dilation = {};
  std::vector<int64_t> pad = {};  // zeros added on both sides
  // Of source, destination and their gradients; weights and bias are f32.
  Layout layout = Layout::kPlain;
  DType dtype = DType::kF32;
  Factors factors = Factors::kF32;  // of f32 images: all but kF32 allow TF32, where a device has it
  bool bias = true;
  bool sum = false;            // Forward adds to what destination holds, before the activation
  Activation activation = {};  // Forward ends with it; Backward takes the gradient of what is below that
  // Weights and bias are given to Prepare, again whenever they change, and Forward reads what that made of them. For
  // nets that are not trained.
  bool prepared = false;
  // Weights and their gradient need not be plain: they lie as ConvolutionKernel::weights_layout() says.
  bool lay_out_weights = false;
  // Which gradients Backward writes.
  bool source_gradient = false, weights_gradient = false, bias_gradient = false;

  int axes() const { return static_cast<int>(input.size()); }
  // Extent of the output along spatial axis i; below 1 when the kernel exceeds the padded input.
  int64_t output(int i) const { return (input[i] + 2 * pad[i] - (dilation[i] * (kernel[i] - 1) + 1)) / stride[i] + 1; }
  Shape source_shape() const;
  Shape weights_shape() const;
  Shape destination_shape() const;
  // Multiply-adds of one forward pass, counted as two operations.
  double flops() const;
};

// One convolution, ready to run any number of times without allocating. Used by one thread at a time; runs on the
// threads of OpenMP. `workspace` holds at least forward_workspace() (backward_workspace()) bytes, aligned to 64 bytes,
// and keeps nothing between calls.
class ConvolutionKernel {
 public:
  virtual ~ConvolutionKernel() = default;
  virtual size_t forward_workspace() const { return 0; }
  virtual size_t backward_workspace() const { return 0; }

  // How weights and their gradient lie, where problem.lay_out_weights; null: plain.
  virtual std::shared_ptr<const ParameterLayout> weights_layout() const { return nullptr; }
  // Converts weights into the form that Forward wants, where problem.prepared; needs no workspace.
  virtual void Prepare(const float* weights, const float* bias) = 0;
  // Forward reads what Prepare of `other`, a kernel for the same problem, made or will make.
  void SharePrepared(const ConvolutionKernel& other) { prepared_ = other.prepared_; }
  // Overwrites all of destination. bias may be null when the problem has none. Source, destination and their gradients
  // are of problem.dtype.
  virtual void Forward(const void* source, const float* weights, const float* bias, void* destination,
                       std::byte* workspace) = 0;
  // Overwrites all of the gradients that the problem asks for; pointers to others are ignored. source is read for the
  // gradient of weights, weights for that of source.
  virtual void Backward(const void* source, const float* weights, const void* destination_gradient,
                        void* source_gradient, float* weights_gradient, float* bias_gradient, std::byte* workspace) = 0;

 protected:
  // Of problem.prepared.
  struct Prepared {
    Buffer weights;  // as Forward reads them
    std::vector<float> bias;
  };
  std::shared_ptr<Prepared> prepared_ = std::make_shared<Prepared>();
};

// Chooses from {"Winograd", "oneDNN", "reference"}; `only` forces one of them (null if it does not take the problem).
// Winograd's results differ from the others' by some millionths of the largest, and of a pixel that is infinite it
// makes NaNs around it.
std::unique_ptr<ConvolutionKernel> MakeConvolution(const ConvolutionProblem& problem, const Device& device,
                                                   KernelChoice* choice, std::string_view only = {});

}  // namespace crema

#endif  // CREMA_OPS_CONVOLUTION_CONVOLUTION_H_
