#include "ops/onednn_defects.h"

#include <algorithm>
#include <cstdint>

namespace crema::onednn {

namespace {

bool Has(std::string_view implementation, std::string_view part) {
  return implementation.find(part) != std::string_view::npos;
}

// Whether tap k of the kernel lies on the image, not on padding, where output q is computed along axis i.
bool Meets(const ConvolutionProblem& p, int i, int64_t k, int64_t q) {
  const int64_t at = q * p.stride[i] - p.pad[i] + k * p.dilation[i];
  return at >= 0 && at < p.input[i];
}

// Whether every tap meets the image for some output.
bool EveryTapMeetsImage(const ConvolutionProblem& p) {
  for (int i = 0; i < p.axes(); ++i) {
    for (int64_t k = 0; k < p.kernel[i]; ++k) {
      bool meets = false;
      for (int64_t q = 0; q < p.output(i) && !meets; ++q) meets = Meets(p, i, k, q);
      if (!meets) return false;
    }
  }
  return true;
}

// Whether every output has a tap that meets the image.
bool EveryOutputMeetsImage(const ConvolutionProblem& p) {
  for (int i = 0; i < p.axes(); ++i) {
    for (int64_t q = 0; q < p.output(i); ++q) {
      bool meets = false;
      for (int64_t k = 0; k < p.kernel[i] && !meets; ++k) meets = Meets(p, i, k, q);
      if (!meets) return false;
    }
  }
  return true;
}

}  // namespace

Accepts SoundForward(const ConvolutionProblem& p) {
  const bool depthwise_rest = p.groups > 1 && p.groups == p.channels && p.channels % 8 != 0;
  if (!p.sum || (EveryOutputMeetsImage(p) && !depthwise_rest)) return nullptr;
  // The first crashes where an output sees nothing but padding, the second reads beyond the end of what it adds to.
  return [](std::string_view implementation) {
    return !Has(implementation, "brgconv") && !Has(implementation, "jit_dw:sse41");
  };
}

Accepts SoundSourceGradient(const ConvolutionProblem& p) {
  const bool one_tap = std::all_of(p.kernel.begin(), p.kernel.end(), [](int64_t extent) { return extent == 1; });
  if (p.dtype != DType::kBF16 || !one_tap || p.outputs / p.groups % 2 == 0) return nullptr;
  // Adds numbers of other pixels on processors without AMX, with channels last and, say, 30, 60, 90 or 120 pixels.
  return [](std::string_view implementation) { return !Has(implementation, "jit_bf16_1x1"); };
}

Accepts SoundWeightsGradient(const ConvolutionProblem& p) {
  if (p.dtype != DType::kBF16 || EveryTapMeetsImage(p)) return nullptr;
  // The direct ones leave the gradient of taps that meet padding alone, which is zero, unwritten.
  return [](std::string_view implementation) { return Has(implementation, "gemm") || Has(implementation, "ref"); };
}

}  // namespace crema::onednn
