// Convolution by cuDNN.
#include <algorithm>
#include <array>

#include "base/aligned_memory.h"
#include "crema/error.h"
#include "cuda/convolution/convolution_bias.h"
#include "cuda/convolution/convolution_kernels.h"
#include "cuda/convolution/cudnn_convolution_graphs.h"
#include "cuda/convolution/weights_order.h"
#include "cuda/device/cudnn_plan_search.h"

namespace crema::cuda {

namespace {

constexpr size_t kAlignment = 256;  // of what lies in a workspace

// Takes pieces of a workspace, one after the other; a null workspace only measures.
class Pieces {
 public:
  explicit Pieces(std::byte* workspace) : begin_(workspace) {
    const size_t over = reinterpret_cast<uintptr_t>(workspace) % kAlignment;
    used_ = over ? kAlignment - over : 0;
  }
  void* Take(size_t bytes) {
    void* const piece = begin_ + used_;
    used_ += AlignedBytes(bytes, kAlignment);
    return piece;
  }

 private:
  std::byte* begin_;
  size_t used_;
};

// Room for pieces of these sizes wherever the workspace begins.
size_t RoomFor(std::initializer_list<size_t> pieces) {
  size_t bytes = 0;
  for (const size_t piece : pieces) bytes += AlignedBytes(piece, kAlignment);
  return bytes > 0 ? bytes + kAlignment : 0;
}

// A session is of the GPU that its thread uses when it is opened.
std::shared_ptr<CudnnSession> SessionOn(const CudaGpu& gpu) {
  gpu.UseHere();
  return CudnnSession::Of(gpu);
}

class CudnnConvolution final : public ConvolutionKernel {
 public:
  CudnnConvolution(const ConvolutionProblem& problem, CudaGpu& gpu)
      : problem_(problem),
        sizes_(problem),
        gpu_(gpu),
        session_(SessionOn(gpu)),
        extents_{problem.outputs, problem.channels / problem.groups, sizes_.taps} {
    const bool reorders = problem.layout == Layout::kChannelsLast && !extents_.one_order();
    converts_ = reorders || problem.dtype != DType::kF32;
    const ConvolutionGraphs graphs(problem);
    CudnnPlanSearch search(*session_, gpu, problem_.factors != Factors::kF32);
    FindForward(graphs, search);
    if (problem.source_gradient) {
      source_plan_ = search.Find(graphs.Key("source"), [&] { return graphs.SourceGradient(); });
      if (!source_plan_) throw CudnnError("no engine for the gradient of source");
    }
    if (problem.weights_gradient) {
      weights_plan_ = search.Find(graphs.Key("weights"), [&] { return graphs.WeightsGradient(); });
      if (!weights_plan_) throw CudnnError("no engine for the gradient of weights");
    }
    if (!problem.prepared) return;
    weights_ = Buffer(gpu, WeightsBytes());
    if (problem.bias) bias_ = Buffer(gpu, BiasBytes());
  }

  ~CudnnConvolution() override {
    if (!gpu_.lost()) return;
    // Unloading what an engine was compiled to may wait for the GPU.
    for (auto* plan : {&forward_plan_, &source_plan_, &weights_plan_}) plan->release();
  }

  size_t forward_workspace() const override {
    if (problem_.prepared) return RoomFor({ProductBytes(), forward_plan_->workspace()});
    return RoomFor({ConvertedBytes(), ConvertedBiasBytes(), ProductBytes(), forward_plan_->workspace()});
  }

  size_t backward_workspace() const override {
    size_t bytes = 0;
    if (source_plan_) bytes = RoomFor({ConvertedBytes(), source_plan_->workspace()});
    if (weights_plan_) bytes = std::max(bytes, RoomFor({ConvertedBytes(), weights_plan_->workspace()}));
    if (problem_.bias_gradient) {
      bytes = std::max(bytes, BiasGradientWorkspace(gpu_.queue(), sizes_.destination, sizes_.batch));
    }
    return bytes;
  }

  void Prepare(const float* weights, const float* bias) override {
    if (converts_) {
      Convert(weights, weights_.data());
    } else {
      Copy(weights, WeightsBytes(), weights_);
    }
    if (ConvertedBiasBytes() > 0) {
      ConvertBias(bias, bias_.data());
    } else if (problem_.bias) {
      Copy(bias, BiasBytes(), bias_);
    }
  }

  void Forward(const void* source, const float* weights, const float* bias, void* destination,
               std::byte* workspace) override {
    Pieces pieces(workspace);
    const void *taken = weights, *taken_bias = bias;
    if (problem_.prepared) {
      taken = weights_.data();
      taken_bias = bias_.data();
      bias = reinterpret_cast<const float*>(bias_.data());
    } else {
      if (converts_) taken = Converted(weights, pieces);
      if (ConvertedBiasBytes() > 0) {
        void* const to = pieces.Take(ConvertedBiasBytes());
        ConvertBias(bias, to);
        taken_bias = to;
      }
    }
    void* const product = problem_.sum ? pieces.Take(ProductBytes()) : destination;
    void* const scratch = pieces.Take(forward_plan_->workspace());
    if (fused_) {
      Run(*forward_plan_, {source, taken, destination, taken_bias}, scratch);
    } else {
      Run(*forward_plan_, {source, taken, product}, scratch);
    }
    if (fused_ || !ends_) return;
    FinishImages(gpu_.queue(), sizes_.destination, sizes_.batch, problem_.dtype,
                 {problem_.bias ? bias : nullptr, problem_.sum, problem_.activation}, product, destination);
  }

  void Backward(const void* source, const float* weights, const void* destination_gradient, void* source_gradient,
                float* weights_gradient, float* bias_gradient, std::byte* workspace) override {
    if (source_plan_) {
      Pieces pieces(workspace);
      const void* const taken = converts_ ? Converted(weights, pieces) : weights;
      Run(*source_plan_, {source_gradient, taken, destination_gradient}, pieces.Take(source_plan_->workspace()));
    }
    if (weights_plan_) {
      Pieces pieces(workspace);
      void* const gradient = converts_ ? pieces.Take(ConvertedBytes()) : weights_gradient;
      Run(*weights_plan_, {source, gradient, destination_gradient}, pieces.Take(weights_plan_->workspace()));
      if (converts_) FromChannelsLast(gpu_.queue(), extents_, problem_.dtype, gradient, weights_gradient);
    }
    if (problem_.bias_gradient) {
      BiasGradient(gpu_.queue(), sizes_.destination, sizes_.batch, problem_.dtype, destination_gradient, bias_gradient,
                   workspace);
    }
  }

 private:
  // One graph for all where cuDNN has a fast engine for that, else a kernel of our own ends what it multiplies.
  void FindForward(const ConvolutionGraphs& graphs, CudnnPlanSearch& search) {
    ends_ = problem_.bias || problem_.sum || problem_.activation.present();
    const bool could_fuse = Fuses(problem_);
    ChoiceFile& choices = session_->choices();
    const std::string which = graphs.FusedKey("fuses") + (problem_.factors != Factors::kF32 ? " tf32" : "");
    const std::optional<int> known = could_fuse ? choices.Find(which) : 0;
    const auto fused_plan = [&] { return search.Find(graphs.FusedKey("forward"), [&] { return graphs.Fused(); }); };
    const auto product_plan = [&] { return search.Find(graphs.Key("forward"), [&] { return graphs.Product(); }); };
    if (known == 1) forward_plan_ = fused_plan();
    fused_ = forward_plan_ != nullptr;
    if (known == 0) forward_plan_ = product_plan();
    if (forward_plan_) return;
    forward_plan_ = product_plan();
    if (could_fuse) {
      auto fused = fused_plan();
      std::optional<bool> worth = fused ? IsWorthFusing(search, *fused) : false;
      if (worth) worth = choices.Remember(which, *worth ? 1 : 0, known) == 1;
      fused_ = fused && worth.value_or(false);
      if (fused_) forward_plan_ = std::move(fused);
    }
    if (!forward_plan_) throw CudnnError("no engine for the problem");
  }

  // Whether cuDNN has engines for all at once that it need not compile at every start.
  static bool Fuses(const ConvolutionProblem& problem) {
    const Activation& activation = problem.activation;
    return problem.bias && !problem.sum && (!activation.present() || CudnnGraph::Activates(activation));
  }

  // Nothing where there is no memory to try it.
  std::optional<bool> IsWorthFusing(CudnnPlanSearch& search, CudnnPlan& fused) {
    const std::optional<bool> keeps_nan = search.KeepsNaN(fused, ConvolutionGraphs::kDestination);
    if (!keeps_nan || !*keeps_nan) return keeps_nan;
    if (!forward_plan_) return true;
    const auto* const bias = static_cast<const float*>(search.Scratch(BiasBytes()));
    if (!bias) return std::nullopt;
    const std::optional<double> together = search.Measure(fused);
    const std::optional<double> apart = search.Measure(*forward_plan_, [&](std::span<void* const> data) {
      FinishImages(gpu_.queue(), sizes_.destination, sizes_.batch, problem_.dtype, {bias, false, problem_.activation},
                   data.back(), data.back());
    });
    if (!together || !apart) return std::nullopt;
    return *together <= *apart;
  }

  size_t WeightsBytes() const { return static_cast<size_t>(extents_.count()) * SizeOf(problem_.dtype); }
  size_t BiasBytes() const { return static_cast<size_t>(problem_.outputs) * sizeof(float); }
  // The bias in 16 bits, where cuDNN adds it.
  size_t ConvertedBiasBytes() const {
    if (!fused_ || problem_.dtype == DType::kF32) return 0;
    return static_cast<size_t>(problem_.outputs) * SizeOf(problem_.dtype);
  }
  // In the workspace: weights as cuDNN wants them, a product that is added to destination, a gradient as cuDNN gives
  // it.
  size_t ConvertedBytes() const { return converts_ ? WeightsBytes() : 0; }
  size_t ProductBytes() const {
    if (!problem_.sum) return 0;
    return static_cast<size_t>(problem_.destination_shape().count()) * SizeOf(problem_.dtype);
  }

  // 16 bits come with channels last only.
  void Convert(const float* weights, void* to) const {
    ToChannelsLast(gpu_.queue(), extents_, weights, problem_.dtype, to);
  }
  void ConvertBias(const float* bias, void* to) const {
    ToChannelsLast(gpu_.queue(), {problem_.outputs, 1, 1}, bias, problem_.dtype, to);
  }
  const void* Converted(const float* weights, Pieces& pieces) const {
    void* const to = pieces.Take(ConvertedBytes());
    Convert(weights, to);
    return to;
  }

  void Copy(const float* from, size_t bytes, const Buffer& to) const {
    Check(cudaMemcpyAsync(to.data(), from, bytes, cudaMemcpyDeviceToDevice, gpu_.queue().stream), "copying on the GPU");
  }

  void Run(CudnnPlan& plan, std::initializer_list<const void*> data, void* scratch) const {
    std::array<void*, 4> addresses;
    size_t count = 0;
    for (const void* address : data) addresses[count++] = const_cast<void*>(address);
    try {
      plan.Run(session_->handle(), std::span(addresses.data(), count), scratch);
    } catch (const CudnnError& error) {
      throw EnvironmentError(error.what());
    }
  }

  ConvolutionProblem problem_;
  ConvolutionSizes sizes_;
  CudaGpu& gpu_;
  std::shared_ptr<CudnnSession> session_;
  WeightsExtents extents_;
  bool converts_ = false;  // weights and their gradient, to or from another order or 16 bits
  bool ends_ = false;      // something follows the product
  bool fused_ = false;     // forward_plan_ does that, too
  std::unique_ptr<CudnnPlan> forward_plan_, source_plan_, weights_plan_;
  Buffer weights_, bias_;  // where prepared
};

}  // namespace

std::unique_ptr<ConvolutionKernel> MakeConvolutionCudnn(const ConvolutionProblem& problem, CudaGpu& gpu,
                                                        std::string* why_not) {
  if (problem.axes() < 1 || problem.axes() > 3) {
    *why_not = std::to_string(problem.axes()) + " spatial axes, it takes 1 to 3";
  } else if (!ConvolutionSizes::Fits(problem)) {
    *why_not = "an image has planes of 2^31 pixels or more";
  } else if (problem.source_shape().count() == 0) {
    *why_not = "an empty batch";
  } else if (problem.dtype != DType::kF32 && problem.layout != Layout::kChannelsLast) {
    *why_not = std::string(Name(problem.dtype)) + " with channels last only";
  }
  if (!why_not->empty()) return nullptr;
  try {
    return std::make_unique<CudnnConvolution>(problem, gpu);
  } catch (const CudnnError& error) {
    *why_not = error.what();
    return nullptr;
  }
}

}  // namespace crema::cuda
