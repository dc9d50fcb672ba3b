#include "ops/convolution.h"

#include "base/parallel.h"
#include "ops/convolution_kernels.h"
#include "ops/vector_math.h"

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

void SumPixels(const float* destination_gradient, int64_t batch, int64_t channels, int64_t pixels, Layout layout,
               float* gradient) {
  if (layout == Layout::kChannelsLast) return SumRows(batch * pixels, channels, destination_gradient, gradient);
  ParallelFor(channels, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, batch * pixels)),
              [&](int64_t begin, int64_t end) {
                for (int64_t c = begin; c < end; ++c) {
                  float sum = 0;
                  for (int64_t n = 0; n < batch; ++n) {
                    const float* row = destination_gradient + (n * channels + c) * pixels;
                    float part = 0;
#pragma omp simd reduction(+ : part)
                    for (int64_t i = 0; i < pixels; ++i) part += row[i];
                    sum += part;
                  }
                  gradient[c] = sum;
                }
              });
}

}  // namespace crema
