// Whether kernels multiply bf16 numbers, and whether that pays.
#ifndef CREMA_OPS_ARRAYS_BFLOAT16_H_
#define CREMA_OPS_ARRAYS_BFLOAT16_H_

#include "device/device.h"

namespace crema {

// Of CPUs that have the instructions oneDNN may have been told to make no use of them (ONEDNN_MAX_CPU_ISA).
bool ComputesBFloat16(const Device& device);

// Whether the device computes in bf16, and faster so than in f32; else it at most saves memory.
bool GainsByBFloat16(const Device& device);

}  // namespace crema

#endif  // CREMA_OPS_ARRAYS_BFLOAT16_H_
