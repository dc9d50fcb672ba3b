// A convolution as graphs of cuDNN's.
#ifndef CREMA_CUDA_CONVOLUTION_CUDNN_CONVOLUTION_GRAPHS_H_
#define CREMA_CUDA_CONVOLUTION_CUDNN_CONVOLUTION_GRAPHS_H_

#include <memory>
#include <string>
#include <vector>

#include "cuda/device/cudnn_graph.h"
#include "ops/convolution/convolution.h"

namespace crema::cuda {

// The graphs of one problem, which are not finished yet, and names for the choice of their engines.
class ConvolutionGraphs {
 public:
  // The tensors; cuDNN is given addresses in this order. Where gradients are computed they are those of the gradients.
  enum Id : int64_t { kSource = 1, kWeights, kDestination, kBias, kProduct, kSum };

  // `problem`, of 1 to 3 axes, must outlive this.
  explicit ConvolutionGraphs(const ConvolutionProblem& problem);

  std::shared_ptr<CudnnGraph> Product() const;
  // With the bias, which there must be, and the activation: none or one of CudnnGraph::Activate.
  std::shared_ptr<CudnnGraph> Fused() const;
  std::shared_ptr<CudnnGraph> SourceGradient() const;
  // Of the images' type: cuDNN has no engine with another one.
  std::shared_ptr<CudnnGraph> WeightsGradient() const;

  // `what` and the problem, without what follows the product; and with that.
  std::string Key(const std::string& what) const;
  std::string FusedKey(const std::string& what) const;

 private:
  bool channels_last() const { return problem_.layout == Layout::kChannelsLast; }

  CudnnTensor Image(int64_t id, int64_t channels, const std::vector<int64_t>& extents) const;
  CudnnTensor Source() const { return Image(kSource, problem_.channels, input_); }
  CudnnTensor Destination() const { return Image(kDestination, problem_.outputs, output_); }
  CudnnTensor Between(int64_t id) const;
  CudnnTensor Weights() const;
  CudnnTensor Bias() const;
  CudnnTensor Laid(int64_t id, DType dtype, int64_t outer, int64_t channels, const std::vector<int64_t>& extents) const;

  const ConvolutionProblem& problem_;
  std::vector<int64_t> input_, kernel_, output_;
  CudnnWindow window_;
};

}  // namespace crema::cuda

#endif  // CREMA_CUDA_CONVOLUTION_CUDNN_CONVOLUTION_GRAPHS_H_
