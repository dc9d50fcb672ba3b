// Convolution by own kernels, which take every problem.
#include <algorithm>

#include "cuda/convolution/convolution_bias.h"
#include "cuda/convolution/convolution_gather.h"
#include "cuda/convolution/convolution_kernels.h"
#include "cuda/convolution/convolution_weights.h"

namespace crema::cuda {

namespace {

class DirectConvolution final : public ConvolutionKernel {
 public:
  DirectConvolution(const ConvolutionProblem& problem, CudaGpu& gpu) : problem_(problem), sizes_(problem), gpu_(gpu) {
    if (!problem.prepared) return;
    weights_ = Buffer(gpu, WeightsBytes());
    if (problem.bias) bias_ = Buffer(gpu, BiasBytes());
  }

  size_t backward_workspace() const override {
    size_t bytes = 0;
    if (problem_.weights_gradient) bytes = WeightsGradientWorkspace(gpu_.queue(), sizes_);
    if (problem_.bias_gradient) {
      bytes = std::max(bytes, BiasGradientWorkspace(gpu_.queue(), sizes_.destination, sizes_.batch));
    }
    return bytes;
  }

  void Prepare(const float* weights, const float* bias) override {
    Keep(weights, WeightsBytes(), weights_);
    if (problem_.bias) Keep(bias, BiasBytes(), bias_);
  }

  void Forward(const void* source, const float* weights, const float* bias, void* destination, std::byte*) override {
    if (problem_.prepared) {
      weights = reinterpret_cast<const float*>(weights_.data());
      bias = reinterpret_cast<const float*>(bias_.data());
    }
    GatherForward(gpu_.queue(), sizes_, problem_.dtype, source, weights,
                  {problem_.bias ? bias : nullptr, problem_.sum, problem_.activation}, destination);
  }

  void Backward(const void* source, const float* weights, const void* destination_gradient, void* source_gradient,
                float* weights_gradient, float* bias_gradient, std::byte* workspace) override {
    const Queue& queue = gpu_.queue();
    if (problem_.source_gradient) {
      GatherSourceGradient(queue, sizes_, problem_.dtype, destination_gradient, weights, source_gradient);
    }
    if (problem_.weights_gradient) {
      WeightsGradient(queue, sizes_, problem_.dtype, source, destination_gradient, weights_gradient, workspace);
    }
    if (problem_.bias_gradient) {
      BiasGradient(queue, sizes_.destination, sizes_.batch, problem_.dtype, destination_gradient, bias_gradient,
                   workspace);
    }
  }

 private:
  size_t WeightsBytes() const { return static_cast<size_t>(sizes_.weights()) * sizeof(float); }
  size_t BiasBytes() const { return static_cast<size_t>(problem_.outputs) * sizeof(float); }

  void Keep(const float* from, size_t bytes, const Buffer& to) const {
    Check(cudaMemcpyAsync(to.data(), from, bytes, cudaMemcpyDeviceToDevice, gpu_.queue().stream), "copying on the GPU");
  }

  ConvolutionProblem problem_;
  ConvolutionSizes sizes_;
  CudaGpu& gpu_;
  Buffer weights_, bias_;  // where prepared
};

}  // namespace

std::unique_ptr<ConvolutionKernel> MakeConvolutionDirect(const ConvolutionProblem& problem, CudaGpu& gpu,
                                                         std::string* why_not) {
  if (!ConvolutionSizes::Fits(problem)) {
    *why_not = "an image has planes of 2^31 pixels or more";
    return nullptr;
  }
  return std::make_unique<DirectConvolution>(problem, gpu);
}

}  // namespace crema::cuda
