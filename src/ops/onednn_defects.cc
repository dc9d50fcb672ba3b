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

// Whether each of n meets one of m others.
template <typename Meet>
bool EachMeetsSome(int64_t n, int64_t m, const Meet& meet) {
  for (int64_t each = 0; each < n; ++each) {
    int64_t other = 0;
    while (other < m && !meet(each, other)) ++other;
    if (other == m) return false;
  }
  return true;
}

// Whether every tap meets the image for some output along axis i.
bool EveryTapMeetsImage(const ConvolutionProblem& p, int i) {
  return EachMeetsSome(p.kernel[i], p.output(i), [&](int64_t k, int64_t q) { return Meets(p, i, k, q); });
}

// Whether every output along axis i has a tap that meets the image.
bool EveryOutputMeetsImage(const ConvolutionProblem& p, int i) {
  return EachMeetsSome(p.output(i), p.kernel[i], [&](int64_t q, int64_t k) { return Meets(p, i, k, q); });
}

// Whether the taps of some output along axis i meet the image all together.
bool WholeKernelMeetsImage(const ConvolutionProblem& p, int i) {
  for (int64_t q = 0; q < p.output(i); ++q) {
    if (Meets(p, i, 0, q) && Meets(p, i, p.kernel[i] - 1, q)) return true;
  }
  return false;
}

bool HasOneTap(const ConvolutionProblem& p) {
  return std::all_of(p.kernel.begin(), p.kernel.end(), [](int64_t extent) { return extent == 1; });
}

bool IsStrided(const ConvolutionProblem& p) {
  return std::any_of(p.stride.begin(), p.stride.end(), [](int64_t stride) { return stride > 1; });
}

// Gathers the pixels that a stride leaves, of eight channels at once even where there are fewer, over what lies behind.
bool GathersTooMuch(const ConvolutionProblem& p, std::string_view implementation) {
  return IsStrided(p) && HasOneTap(p) && p.channels / p.groups % 8 != 0 && Has(implementation, "jit_1x1:avx") &&
         !Has(implementation, "avx512");
}

Accepts NoBrgemmWhere(bool defective) {
  return [defective](std::string_view implementation) { return !(defective && Has(implementation, "brg")); };
}

}  // namespace

Accepts SoundForward(const ConvolutionProblem& p) {
  // Crash where an output sees nothing but padding: 2.6 where something is added to it, 3.12 where an activation
  // follows.
  bool no_brgconv = false;
  for (int i = 0; i < p.axes(); ++i) no_brgconv |= !EveryOutputMeetsImage(p, i);
  // Reads beyond the end of what it adds to.
  const bool no_depthwise = p.sum && p.groups > 1 && p.groups == p.channels && p.channels % 8 != 0;
  return [=, &p](std::string_view implementation) {
    return !(no_brgconv && (Has(implementation, "brgconv") || Has(implementation, "brg_conv"))) &&
           !(no_depthwise && Has(implementation, "jit_dw:sse41")) && !GathersTooMuch(p, implementation);
  };
}

Accepts SoundSourceGradient(const ConvolutionProblem& p) {
  // Adds numbers of other pixels on processors without AMX, with channels last and, say, 30, 60, 90 or 120 pixels.
  const bool no_one_tap = p.dtype == DType::kBF16 && HasOneTap(p) && p.outputs / p.groups % 2 != 0;
  return [=, &p](std::string_view implementation) {
    return !(no_one_tap && Has(implementation, "jit_bf16_1x1")) && !GathersTooMuch(p, implementation);
  };
}

Accepts SoundWeightsGradient(const ConvolutionProblem& p) {
  // The direct ones leave the gradient of taps that meet padding alone, which is zero, unwritten, and in three
  // dimensions more where no output sees the whole depth of the kernel: 2.6 with a stride, 3.12 with other sizes, too.
  bool indirect = p.axes() == 3 && !WholeKernelMeetsImage(p, 0);
  for (int i = 0; i < p.axes(); ++i) indirect |= !EveryTapMeetsImage(p, i);
  // Numbers are missing, or it crashes, with wide images (30 pixels, not 20).
  for (int i = 0; i + 1 < p.axes(); ++i) {
    indirect |= p.kernel[i] > 1 && p.dilation[i] > 1 && p.channels / p.groups % 16 != 0;
  }
  indirect &= p.dtype == DType::kBF16;
  // Those with AVX-512 gather the pixels that a stride leaves beyond the end of their memory.
  const bool no_one_tap = IsStrided(p) && HasOneTap(p) && p.channels / p.groups < 16;
  return [=, &p](std::string_view implementation) {
    return (!indirect || Has(implementation, "gemm") || Has(implementation, "ref")) &&
           !(no_one_tap && Has(implementation, "1x1:avx512")) && !GathersTooMuch(p, implementation);
  };
}

Accepts SoundSourceGradient(const InnerProductProblem& p) {
  // Crashes where threads share the sum over whole blocks of outputs for one block of inputs and one of rows.
  return NoBrgemmWhere(p.inputs <= 64 && p.outputs > 2048 && p.outputs % 64 == 0);
}

Accepts SoundProduct(const BatchedProductProblem& p) {
  // Threads that share the sum over k add up parts of other pairs.
  return NoBrgemmWhere(p.batches > 1 && p.transpose_a && p.k >= 2048);
}

}  // namespace crema::onednn
