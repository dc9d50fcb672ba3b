// Kernels of emulated GPUs, on the CPU.
#ifndef CREMA_TESTS_CUDA_EMULATION_KERNEL_H_
#define CREMA_TESTS_CUDA_EMULATION_KERNEL_H_

#include <cuda_runtime.h>

#include <functional>

namespace crema_emulation {

// Runs all threads of all blocks on the calling thread. Results must not depend on their order: every other kernel
// takes them from behind.
void RunKernel(dim3 grid, dim3 block, const std::function<void()>& body);

}  // namespace crema_emulation

#endif  // CREMA_TESTS_CUDA_EMULATION_KERNEL_H_
