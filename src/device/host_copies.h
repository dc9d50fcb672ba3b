// Parameters on their way between a device and the host's plain arrays.
#ifndef CREMA_DEVICE_HOST_COPIES_H_
#define CREMA_DEVICE_HOST_COPIES_H_

#include "crema/parameter_layout.h"
#include "device/device.h"

namespace crema {

// The values of `stored` (f32, in the device's memory), which lies as `layout` says (null: plain), in C order in the
// host's memory; and back. Done when they return.
void CopyPlainOut(Device& device, const ParameterLayout* layout, const Tensor& stored, float* plain);
void CopyPlainIn(Device& device, const ParameterLayout* layout, const float* plain, const Tensor& stored);

}  // namespace crema

#endif  // CREMA_DEVICE_HOST_COPIES_H_
