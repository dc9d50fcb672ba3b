#include "ops/convolution/convolution.h"

#include "ops/convolution/convolution_kernels.h"

namespace crema {

namespace {

Shape Concatenate(int64_t first, int64_t second, const std::vector<int64_t>& rest) {
  std::vector<int64_t> dims{first, second};
  dims.insert(dims.end(), rest.begin(), rest.end());
  return Shape(std::move(dims));
}

constexpr KernelCandidate<ConvolutionKernel, ConvolutionProblem> kTable[] = {
    {"Winograd", MakeConvolutionWinograd},
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

}  // namespace crema
