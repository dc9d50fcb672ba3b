// Local response normalisation (Krizhevsky, Sutskever, Hinton, "ImageNet classification with deep convolutional neural
// networks", NIPS 2012), images in either layout. f32 or, across channels that come last, bf16: computed in f32 and
// rounded once.
#ifndef CREMA_OPS_NORMALIZATION_LRN_H_
#define CREMA_OPS_NORMALIZATION_LRN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "crema/tensor.h"
#include "ops/kernel_choice.h"

namespace crema {

struct LrnProblem {
  enum class Region {
    kAcrossChannels,  // scale = k + alpha / size * sum of x^2 over `size` neighbouring channels
    kWithinChannel,   // scale = 1 + alpha * average of x^2 over a size x size window, border windows clipped as Caffe's
  };                  // average pooling does: the divisor counts the padding
  Region region = Region::kAcrossChannels;
  Layout layout = Layout::kPlain;  // of all tensors
  int64_t batch = 1, channels = 1, height = 1, width = 1;
  int64_t size = 5;  // odd
  float alpha = 1, beta = 0.75f, k = 1;
  bool backward = false;      // Backward will be called
  DType dtype = DType::kF32;  // of all tensors
};

// y = x * scale^-beta. Allocates nothing when run; one thread at a time.
class LrnKernel {
 public:
  virtual ~LrnKernel() = default;
  virtual size_t forward_workspace() const { return 0; }
  virtual size_t backward_workspace() const { return 0; }
  virtual void Forward(const void* source, void* destination, std::byte* workspace) = 0;
  // Overwrites all of source_gradient; scale is computed again from source, which is cheaper than keeping it.
  virtual void Backward(const void* source, const void* destination_gradient, void* source_gradient,
                        std::byte* workspace) = 0;
};

// Chooses from the table in lrn.cc; `only` ("reference") forces one of its candidates.
std::unique_ptr<LrnKernel> MakeLrn(const LrnProblem& problem, const Device& device, KernelChoice* choice,
                                   std::string_view only = {});

}  // namespace crema

#endif  // CREMA_OPS_NORMALIZATION_LRN_H_
