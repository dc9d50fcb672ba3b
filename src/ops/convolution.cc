#include "ops/convolution.h"

#include <algorithm>

#include "base/bfloat16.h"
#include "base/parallel.h"
#include "ops/convolution_kernels.h"

namespace crema {

namespace {

Shape Concatenate(int64_t first, int64_t second, const std::vector<int64_t>& rest) {
  std::vector<int64_t> dims{first, second};
  dims.insert(dims.end(), rest.begin(), rest.end());
  return Shape(std::move(dims));
}

constexpr KernelCandidate<ConvolutionKernel, ConvolutionProblem> kTable[] = {
    {"oneDNN", MakeConvolutionOneDnn},
    {"reference", MakeConvolutionReference},
};

}  // namespace

Shape ConvolutionProblem::source_shape() const { return Concatenate(batch, channels, input); }

Shape ConvolutionProblem::weights_shape() const { return Concatenate(outputs, channels / groups, kernel); }

Shape ConvolutionProblem::destination_shape() const {
  std::vector<int64_t> extents;
  for (int i = 0; i < axes(); ++i) extents.push_back(output(i));
  return Concatenate(batch, outputs, extents);
}

double ConvolutionProblem::flops() const {
  return 2.0 * static_cast<double>(destination_shape().count()) * static_cast<double>(weights_shape().count(1));
}

std::unique_ptr<ConvolutionKernel> MakeConvolution(const ConvolutionProblem& problem, const Device& device,
                                                   KernelChoice* choice, std::string_view only) {
  return ChooseKernel(kTable, problem, device, only, choice);
}

namespace {

template <typename Number>
void SumPixelsOf(const Number* gradients, const ConvolutionProblem& problem, float* sums) {
  const int64_t pixels = problem.destination_shape().count(2), item = problem.outputs * pixels;
  const bool channels_last = problem.layout == Layout::kChannelsLast;
  const int64_t channel_stride = channels_last ? 1 : pixels, pixel_stride = channels_last ? problem.outputs : 1;
  ParallelFor(problem.outputs, std::clamp<int64_t>(32768 / std::max<int64_t>(1, problem.batch * pixels), 1, 16),
              [&](int64_t begin, int64_t end) {
                for (int64_t c = begin; c < end; ++c) {
                  double sum = 0;
                  for (int64_t n = 0; n < problem.batch; ++n) {
                    const Number* from = gradients + n * item + c * channel_stride;
                    for (int64_t i = 0; i < pixels; ++i) sum += from[i * pixel_stride];
                  }
                  sums[c] = static_cast<float>(sum);
                }
              });
}

}  // namespace

void SumPixels(const void* destination_gradient, const ConvolutionProblem& problem, float* gradient) {
  if (problem.dtype == DType::kBF16) {
    SumPixelsOf(static_cast<const BFloat16*>(destination_gradient), problem, gradient);
  } else {
    SumPixelsOf(static_cast<const float*>(destination_gradient), problem, gradient);
  }
}

}  // namespace crema
