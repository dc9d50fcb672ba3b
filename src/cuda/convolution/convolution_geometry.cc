#include "cuda/convolution/convolution_geometry.h"

#include <limits>

namespace crema::cuda {

bool ConvolutionSizes::Fits(const ConvolutionProblem& problem) {
  double padded = 1, taps = 1;
  for (int i = 0; i < problem.axes(); ++i) {
    padded *= static_cast<double>(problem.input[i] + 2 * problem.pad[i]);
    taps *= static_cast<double>(problem.kernel[i]);
  }
  // No pixel of the destination, and no dilated kernel, reaches further than the padded source.
  constexpr double kMost = std::numeric_limits<int32_t>::max();
  return padded <= kMost && taps <= kMost;
}

ConvolutionSizes::ConvolutionSizes(const ConvolutionProblem& problem)
    : batch(problem.batch),
      groups(problem.groups),
      group_channels(problem.channels / problem.groups),
      group_outputs(problem.outputs / problem.groups) {
  source.channels = problem.channels;
  destination.channels = problem.outputs;
  source.channels_last = destination.channels_last = problem.layout == Layout::kChannelsLast;
  geometry.axes = problem.axes();
  for (int i = 0; i < problem.axes(); ++i) {
    const auto as_int = [](int64_t value) { return static_cast<int32_t>(value); };
    geometry.axis[i] = {as_int(problem.input[i]),  as_int(problem.output(i)), as_int(problem.kernel[i]),
                        as_int(problem.stride[i]), as_int(problem.pad[i]),    as_int(problem.dilation[i])};
    source.pixels *= problem.input[i];
    destination.pixels *= problem.output(i);
    taps *= as_int(problem.kernel[i]);
  }
}

}  // namespace crema::cuda
