// Memory that shows what was written and read.
#ifndef CREMA_TESTS_LAYERS_GUARDED_TENSOR_H_
#define CREMA_TESTS_LAYERS_GUARDED_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "crema/tensor.h"
#include "device/device.h"

namespace crema::testing {

// Memory of one tensor as the host sees it, with a copy of it, guard zones included, on a device that is not the CPU:
// what a layer is given. Poisoned with a pattern that is NaN as f32, as bf16 and as f16, between two guard zones: the
// second one reaches to where the tensor would end if each number took four bytes, and further.
class GuardedTensor {
 public:
  GuardedTensor() = default;
  explicit GuardedTensor(const TensorSpec& spec, Device& device = CpuDevice());
  GuardedTensor(GuardedTensor&&) noexcept = default;
  GuardedTensor& operator=(GuardedTensor&&) noexcept = default;

  const Tensor& tensor() const { return tensor_; }
  // The same on the device.
  const Tensor& on_device() const { return copy_.bytes() > 0 ? on_device_ : tensor_; }
  void Upload() const;
  void Download() const;
  void Poison();
  bool GuardsIntact() const;
  // Elements that still hold the pattern.
  int64_t Poisoned() const;

 private:
  uint32_t GuardWord(size_t index) const;  // what the guard zones hold

  std::vector<uint32_t> memory_;
  uint32_t serial_ = 0;
  Device* device_ = nullptr;
  Buffer copy_;
  Tensor tensor_, on_device_;
};

}  // namespace crema::testing

#endif  // CREMA_TESTS_LAYERS_GUARDED_TENSOR_H_
