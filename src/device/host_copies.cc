#include "device/host_copies.h"

#include <vector>

namespace crema {

void CopyPlainOut(Device& device, const ParameterLayout* layout, const Tensor& stored, float* plain) {
  if (device.type() == DeviceType::kCpu) return CopyToPlain(layout, stored, plain);
  if (!layout) return device.CopyOut(stored.raw(), plain, stored.bytes());
  std::vector<float> values(static_cast<size_t>(stored.count()));
  device.CopyOut(stored.raw(), values.data(), stored.bytes());
  CopyToPlain(layout, Tensor(values.data(), stored.spec()), plain);
}

void CopyPlainIn(Device& device, const ParameterLayout* layout, const float* plain, const Tensor& stored) {
  if (device.type() == DeviceType::kCpu) return CopyFromPlain(layout, plain, stored);
  if (!layout) return device.CopyIn(plain, stored.raw(), stored.bytes());
  std::vector<float> values(static_cast<size_t>(stored.count()));
  CopyFromPlain(layout, plain, Tensor(values.data(), stored.spec()));
  device.CopyIn(values.data(), stored.raw(), stored.bytes());
}

}  // namespace crema
