// Whether bf16 pays.
#ifndef CREMA_DEVICE_BFLOAT16_GAIN_H_
#define CREMA_DEVICE_BFLOAT16_GAIN_H_

#include "device/device.h"

namespace crema {

// Whether the device computes in bf16, and faster so than in f32; else it at most saves memory.
bool GainsByBFloat16(const Device& device);

}  // namespace crema

#endif  // CREMA_DEVICE_BFLOAT16_GAIN_H_
