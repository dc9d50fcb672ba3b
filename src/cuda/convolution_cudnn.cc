// Convolution by cuDNN.
#include <algorithm>
#include <array>
#include <sstream>

#include "crema/error.h"
#include "cuda/convolution_bias.h"
#include "cuda/convolution_kernels.h"
#include "cuda/cudnn_plan_search.h"
#include "cuda/weights_order.h"

namespace crema::cuda {

namespace {

using Kind = Activation::Kind;

// The tensors of the graphs; cuDNN is given addresses in this order.
enum Id : int64_t { kSource = 1, kWeights, kDestination, kBias, kProduct, kSum };

constexpr size_t kAlignment = 256;  // of what lies in a workspace
size_t Aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

cudnnDataType_t TypeOf(DType dtype) {
  return dtype == DType::kBF16 ? CUDNN_DATA_BFLOAT16 : dtype == DType::kF16 ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT;
}

// Takes pieces of a workspace, one after the other; a null workspace only measures.
class Pieces {
 public:
  explicit Pieces(std::byte* workspace) : begin_(workspace) {
    const size_t over = reinterpret_cast<uintptr_t>(workspace) % kAlignment;
    used_ = over ? kAlignment - over : 0;
  }
  void* Take(size_t bytes) {
    void* const piece = begin_ + used_;
    used_ += Aligned(bytes);
    return piece;
  }

 private:
  std::byte* begin_;
  size_t used_;
};

// Room for pieces of these sizes wherever the workspace begins.
size_t RoomFor(std::initializer_list<size_t> pieces) {
  size_t bytes = 0;
  for (const size_t piece : pieces) bytes += Aligned(piece);
  return bytes > 0 ? bytes + kAlignment : 0;
}

// Describes one problem to cuDNN: its graphs, and a name for the choice of their engines.
class Describer {
 public:
  explicit Describer(const ConvolutionProblem& problem) : problem_(problem) {
    const auto extend = [](const std::vector<int64_t>& values, int64_t neutral) {
      std::vector<int64_t> extended = values;
      if (extended.size() == 1) extended.insert(extended.begin(), neutral);  // a line is an image of height 1
      return extended;
    };
    input_ = extend(problem.input, 1);
    kernel_ = extend(problem.kernel, 1);
    std::vector<int64_t> output;
    for (int i = 0; i < problem.axes(); ++i) output.push_back(problem.output(i));
    output_ = extend(output, 1);
    window_ = {extend(problem.pad, 0), extend(problem.stride, 1), extend(problem.dilation, 1)};
  }

  std::shared_ptr<CudnnGraph> Product() const {
    auto graph = std::make_shared<CudnnGraph>();
    graph->Convolve(window_, Source(), Weights(TypeOf(problem_.dtype)), Destination());
    return graph;
  }

  // With bias and activation.
  std::shared_ptr<CudnnGraph> Fused() const {
    auto graph = std::make_shared<CudnnGraph>();
    CudnnTensor product = Between(kProduct);
    graph->Convolve(window_, Source(), Weights(TypeOf(problem_.dtype)), product);
    if (problem_.bias) {
      const CudnnTensor sum = problem_.activation.present() ? Between(kSum) : Destination();
      graph->Add(product, Bias(), sum);
      product = sum;
    }
    if (problem_.activation.present()) graph->Activate(problem_.activation, product, Destination());
    return graph;
  }

  std::shared_ptr<CudnnGraph> SourceGradient() const {
    auto graph = std::make_shared<CudnnGraph>();
    graph->SourceGradient(window_, Destination(), Weights(TypeOf(problem_.dtype)), Source());
    return graph;
  }

  std::shared_ptr<CudnnGraph> WeightsGradient(DType result) const {
    auto graph = std::make_shared<CudnnGraph>();
    graph->WeightsGradient(window_, Source(), Destination(), Weights(TypeOf(result)));
    return graph;
  }

  std::string Key(const std::string& what) const {
    std::ostringstream key;
    key << what << ' ' << Name(problem_.dtype) << (channels_last() ? " last" : " plain") << " n" << problem_.batch
        << " c" << problem_.channels << " k" << problem_.outputs << " g" << problem_.groups;
    const auto list = [&](const char* name, const std::vector<int64_t>& values) {
      key << ' ' << name;
      for (size_t i = 0; i < values.size(); ++i) key << (i ? "x" : "") << values[i];
    };
    list("in", input_);
    list("kernel", kernel_);
    list("pad", window_.pad);
    list("stride", window_.stride);
    list("dilation", window_.dilation);
    return key.str();
  }

  std::string FusedKey(const std::string& what) const {
    std::ostringstream key;
    key << Key(what) << (problem_.bias ? " bias" : "") << " activation " << static_cast<int>(problem_.activation.kind)
        << " of " << problem_.activation.parameter;
    return key.str();
  }

 private:
  bool channels_last() const { return problem_.layout == Layout::kChannelsLast; }

  CudnnTensor Image(int64_t id, int64_t channels, const std::vector<int64_t>& extents) const {
    return Laid(id, TypeOf(problem_.dtype), problem_.batch, channels, extents);
  }
  CudnnTensor Source() const { return Image(kSource, problem_.channels, input_); }
  CudnnTensor Destination() const { return Image(kDestination, problem_.outputs, output_); }
  CudnnTensor Between(int64_t id) const {
    CudnnTensor tensor = Image(id, problem_.outputs, output_);
    tensor.type = CUDNN_DATA_FLOAT;
    tensor.is_virtual = true;
    return tensor;
  }
  CudnnTensor Weights(cudnnDataType_t type) const {
    return Laid(kWeights, type, problem_.outputs, problem_.channels / problem_.groups, kernel_);
  }
  // Of the images' type: with another one cuDNN has only engines that it compiles first.
  CudnnTensor Bias() const {
    return Laid(kBias, TypeOf(problem_.dtype), 1, problem_.outputs, std::vector<int64_t>(input_.size(), 1));
  }

  CudnnTensor Laid(int64_t id, cudnnDataType_t type, int64_t outer, int64_t channels,
                   const std::vector<int64_t>& extents) const {
    CudnnTensor tensor{id, type, {outer, channels}, {}};
    tensor.dims.insert(tensor.dims.end(), extents.begin(), extents.end());
    tensor.strides.resize(tensor.dims.size());
    int64_t stride = channels_last() ? channels : 1;
    for (size_t axis = tensor.dims.size() - 1; axis >= 2; --axis) {
      tensor.strides[axis] = stride;
      stride *= tensor.dims[axis];
    }
    tensor.strides[1] = channels_last() ? 1 : stride;
    tensor.strides[0] = channels_last() ? stride : stride * channels;
    return tensor;
  }

  const ConvolutionProblem& problem_;
  std::vector<int64_t> input_, kernel_, output_;
  CudnnWindow window_;
};

class CudnnConvolution final : public ConvolutionKernel {
 public:
  CudnnConvolution(const ConvolutionProblem& problem, CudaGpu& gpu)
      : problem_(problem),
        sizes_(problem),
        gpu_(gpu),
        session_(CudnnSession::Of(gpu)),
        extents_{problem.outputs, problem.channels / problem.groups, sizes_.taps} {
    const bool reorders = problem.layout == Layout::kChannelsLast && !extents_.one_order();
    converts_ = reorders || problem.dtype != DType::kF32;
    const Describer describer(problem);
    CudnnPlanSearch search(*session_, gpu, problem_.factors == Factors::kTF32);
    FindForward(describer, search);
    if (problem.source_gradient) {
      source_plan_ = search.Find(describer.Key("source"), [&] { return describer.SourceGradient(); });
      if (!source_plan_) throw CudnnError("no engine for the gradient of source");
    }
    if (problem.weights_gradient) FindWeightsGradient(describer, search, reorders);
    if (!problem.prepared) return;
    weights_ = Buffer(gpu, WeightsBytes());
    if (problem.bias) bias_ = Buffer(gpu, BiasBytes());
  }

  size_t forward_workspace() const override {
    if (problem_.prepared) return RoomFor({ProductBytes(), forward_plan_->workspace()});
    return RoomFor({ConvertedBytes(), ConvertedBiasBytes(), ProductBytes(), forward_plan_->workspace()});
  }

  size_t backward_workspace() const override {
    size_t bytes = 0;
    if (source_plan_) bytes = RoomFor({ConvertedBytes(), source_plan_->workspace()});
    if (weights_plan_) bytes = std::max(bytes, RoomFor({GradientBytes(), weights_plan_->workspace()}));
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
    if (fused_ && problem_.bias) {
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
      void* const gradient = GradientBytes() > 0 ? pieces.Take(GradientBytes()) : weights_gradient;
      Run(*weights_plan_, {source, gradient, destination_gradient}, pieces.Take(weights_plan_->workspace()));
      if (GradientBytes() > 0) {
        FromChannelsLast(gpu_.queue(), extents_, gradient_type_, gradient, weights_gradient);
      }
    }
    if (problem_.bias_gradient) {
      BiasGradient(gpu_.queue(), sizes_.destination, sizes_.batch, problem_.dtype, destination_gradient, bias_gradient,
                   workspace);
    }
  }

 private:
  // One graph for all where cuDNN has a fast engine for that, else a kernel of our own ends what it multiplies.
  void FindForward(const Describer& describer, CudnnPlanSearch& search) {
    ends_ = problem_.bias || problem_.sum || problem_.activation.present();
    const bool could_fuse = ends_ && !problem_.sum && Fuses(problem_.activation);
    ChoiceFile& choices = session_->choices();
    const std::string which = describer.FusedKey("fuses") + (problem_.factors == Factors::kTF32 ? " tf32" : "");
    const std::optional<int> known = could_fuse ? choices.Find(which) : 0;
    const auto fused_plan = [&] {
      return search.Find(describer.FusedKey("forward"), [&] { return describer.Fused(); });
    };
    const auto product_plan = [&] {
      return search.Find(describer.Key("forward"), [&] { return describer.Product(); });
    };
    if (known == 1) forward_plan_ = fused_plan();
    fused_ = forward_plan_ != nullptr;
    if (known == 0) forward_plan_ = product_plan();
    if (forward_plan_) return;
    forward_plan_ = product_plan();
    if (could_fuse) {
      auto fused = fused_plan();
      fused_ = fused && search.KeepsNaN(*fused, kDestination) &&
               (!forward_plan_ || IsFaster(search, *fused, *forward_plan_));
      choices.Remember(which, fused_ ? 1 : 0);
      if (fused_) forward_plan_ = std::move(fused);
    }
    if (!forward_plan_) throw CudnnError("no engine for the problem");
  }

  static bool Fuses(const Activation& activation) {
    return activation.kind != Kind::kSwish || activation.parameter == 1;
  }

  bool IsFaster(CudnnPlanSearch& search, CudnnPlan& fused, CudnnPlan& product) {
    const std::optional<double> together = search.Measure(fused);
    const std::optional<double> apart = search.Measure(product, [&](std::span<void* const> data) {
      const float* const bias = problem_.bias ? static_cast<const float*>(search.Scratch(BiasBytes())) : nullptr;
      FinishImages(gpu_.queue(), sizes_.destination, sizes_.batch, problem_.dtype, {bias, false, problem_.activation},
                   data.back(), data.back());
    });
    return !together || !apart || *together <= *apart;
  }

  void FindWeightsGradient(const Describer& describer, CudnnPlanSearch& search, bool reorders) {
    // Sums that are not rounded are better; not every engine for 16 bits gives them.
    for (const DType type : {DType::kF32, problem_.dtype}) {
      if (weights_plan_) break;
      const std::string key = type == DType::kF32 ? "weights" : std::string("weights-") + Name(type);
      gradient_type_ = type;
      weights_plan_ = search.Find(describer.Key(key), [&] { return describer.WeightsGradient(type); });
    }
    if (!weights_plan_) throw CudnnError("no engine for the gradient of weights");
    gradient_converts_ = reorders || gradient_type_ != DType::kF32;
  }

  size_t WeightsBytes() const { return static_cast<size_t>(extents_.count()) * SizeOf(problem_.dtype); }
  size_t BiasBytes() const { return static_cast<size_t>(problem_.outputs) * sizeof(float); }
  // The bias in 16 bits, where cuDNN adds it.
  size_t ConvertedBiasBytes() const {
    if (!fused_ || !problem_.bias || problem_.dtype == DType::kF32) return 0;
    return static_cast<size_t>(problem_.outputs) * SizeOf(problem_.dtype);
  }
  // In the workspace: weights as cuDNN wants them, a product that is added to destination, a gradient as cuDNN gives
  // it.
  size_t ConvertedBytes() const { return converts_ ? WeightsBytes() : 0; }
  size_t ProductBytes() const {
    if (!problem_.sum) return 0;
    return static_cast<size_t>(problem_.destination_shape().count()) * SizeOf(problem_.dtype);
  }
  size_t GradientBytes() const {
    return gradient_converts_ ? static_cast<size_t>(extents_.count()) * SizeOf(gradient_type_) : 0;
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
  bool converts_ = false;           // weights, to another order or to 16 bits
  bool gradient_converts_ = false;  // theirs
  bool ends_ = false;               // something follows the product
  bool fused_ = false;              // forward_plan_ does that, too
  DType gradient_type_ = DType::kF32;
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
