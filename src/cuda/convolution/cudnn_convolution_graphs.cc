#include "cuda/convolution/cudnn_convolution_graphs.h"

#include <sstream>

namespace crema::cuda {

namespace {

cudnnDataType_t TypeOf(DType dtype) {
  return dtype == DType::kBF16 ? CUDNN_DATA_BFLOAT16 : dtype == DType::kF16 ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT;
}

// A line is an image of height 1.
std::vector<int64_t> Extended(std::vector<int64_t> values, int64_t neutral) {
  if (values.size() == 1) values.insert(values.begin(), neutral);
  return values;
}

}  // namespace

ConvolutionGraphs::ConvolutionGraphs(const ConvolutionProblem& problem)
    : problem_(problem), input_(Extended(problem.input, 1)), kernel_(Extended(problem.kernel, 1)) {
  for (int i = 0; i < problem.axes(); ++i) output_.push_back(problem.output(i));
  output_ = Extended(output_, 1);
  window_ = {Extended(problem.pad, 0), Extended(problem.stride, 1), Extended(problem.dilation, 1)};
}

std::shared_ptr<CudnnGraph> ConvolutionGraphs::Product() const {
  auto graph = std::make_shared<CudnnGraph>();
  graph->Convolve(window_, Source(), Weights(), Destination());
  return graph;
}

std::shared_ptr<CudnnGraph> ConvolutionGraphs::Fused() const {
  auto graph = std::make_shared<CudnnGraph>();
  const CudnnTensor product = Between(kProduct);
  graph->Convolve(window_, Source(), Weights(), product);
  const CudnnTensor sum = problem_.activation.present() ? Between(kSum) : Destination();
  graph->Add(product, Bias(), sum);
  if (problem_.activation.present()) graph->Activate(problem_.activation.kind, sum, Destination());
  return graph;
}

std::shared_ptr<CudnnGraph> ConvolutionGraphs::SourceGradient() const {
  auto graph = std::make_shared<CudnnGraph>();
  graph->SourceGradient(window_, Destination(), Weights(), Source());
  return graph;
}

std::shared_ptr<CudnnGraph> ConvolutionGraphs::WeightsGradient() const {
  auto graph = std::make_shared<CudnnGraph>();
  graph->WeightsGradient(window_, Source(), Destination(), Weights());
  return graph;
}

std::string ConvolutionGraphs::Key(const std::string& what) const {
  std::ostringstream key;
  key << what << ' ' << Name(problem_.dtype) << (channels_last() ? " last" : " plain") << " n" << problem_.batch << " c"
      << problem_.channels << " k" << problem_.outputs << " g" << problem_.groups;
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

std::string ConvolutionGraphs::FusedKey(const std::string& what) const {
  std::ostringstream key;
  key << Key(what) << " bias activation " << static_cast<int>(problem_.activation.kind);
  return key.str();
}

CudnnTensor ConvolutionGraphs::Image(int64_t id, int64_t channels, const std::vector<int64_t>& extents) const {
  return Laid(id, problem_.dtype, problem_.batch, channels, extents);
}

CudnnTensor ConvolutionGraphs::Between(int64_t id) const {
  CudnnTensor tensor = Laid(id, DType::kF32, problem_.batch, problem_.outputs, output_);
  tensor.is_virtual = true;
  return tensor;
}

CudnnTensor ConvolutionGraphs::Weights() const {
  return Laid(kWeights, problem_.dtype, problem_.outputs, problem_.channels / problem_.groups, kernel_);
}

// Of the images' type: with another one cuDNN has only engines that it compiles first.
CudnnTensor ConvolutionGraphs::Bias() const {
  return Laid(kBias, problem_.dtype, 1, problem_.outputs, std::vector<int64_t>(input_.size(), 1));
}

CudnnTensor ConvolutionGraphs::Laid(int64_t id, DType dtype, int64_t outer, int64_t channels,
                                    const std::vector<int64_t>& extents) const {
  CudnnTensor tensor{id, TypeOf(dtype), {outer, channels}, {}};
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

}  // namespace crema::cuda
