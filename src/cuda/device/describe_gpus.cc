#include <cuda_runtime_api.h>

#include "cuda/device/gpu.h"
#include "cuda/device/library_version.h"

namespace crema::cuda {

namespace {

// CUDA packs a version into one number: 13000 is 13.0.
std::string Version(int packed) { return std::to_string(packed / 1000) + "." + std::to_string(packed % 1000 / 10); }

std::string MiB(size_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

struct Versions {
  Versions() {
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
  }
  int driver = 0;  // 0: no driver is installed
  int runtime = 0;
};

std::string WhyNone(cudaError_t status, int driver, int runtime) {
  if (driver == 0) {
    return "no NVIDIA driver is loaded (this crema was built with CUDA " + Version(runtime) +
           "); install the driver, or in a container pass the GPU through";
  }
  if (status == cudaErrorInsufficientDriver) {
    return "the NVIDIA driver supports CUDA up to " + Version(driver) + ", and this crema was built with " +
           Version(runtime) + "; update the driver, or build with an older CUDA toolkit";
  }
  if (status == cudaSuccess || status == cudaErrorNoDevice) {
    return "the NVIDIA driver is loaded, but shows no GPU; check nvidia-smi and CUDA_VISIBLE_DEVICES";
  }
  return std::string("CUDA failed to start: ") + cudaGetErrorString(status) + " (" + cudaGetErrorName(status) + ")";
}

}  // namespace

int CountGpus(std::string* why) {
  why->clear();
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted == cudaSuccess && count > 0) return count;
  cudaGetLastError();  // an error left behind would surface in the next unrelated call
  const Versions versions;
  *why = WhyNone(counted, versions.driver, versions.runtime);
  return 0;
}

std::vector<DeviceFacts> Describe(std::string* why) {
  const int count = CountGpus(why);
  if (count == 0) return {};
  const auto [driver, runtime] = Versions();
  const std::string cublas = "libcublasLt.so." + std::to_string(runtime / 1000);
  const std::string cublas_version = LibraryVersion(cublas.c_str(), "cublasLtGetProperty");
  const std::string cudnn_version = LibraryVersion("libcudnn.so.9", "cudnnGetProperty");
  std::string fit = "yes";
  if (cublas_version == "not found") fit = "no: cuBLAS " + std::to_string(runtime / 1000) + " was not found";
  if (cudnn_version == "not found") fit = "no: cuDNN 9 was not found";
  if (driver / 1000 < runtime / 1000) {
    fit = "no: the driver supports CUDA up to " + Version(driver) + "; update it";
  }
  std::vector<DeviceFacts> gpus;
  for (int id = 0; id < count; ++id) {
    cudaDeviceProp properties;
    const cudaError_t status = cudaGetDeviceProperties(&properties, id);
    DeviceFacts gpu{"GPU " + std::to_string(id), {}};
    if (status != cudaSuccess) {
      cudaGetLastError();
      gpu.facts.emplace_back("Unusable", cudaGetErrorString(status));
      gpus.push_back(std::move(gpu));
      continue;
    }
    gpu.facts = {
        {"Name", properties.name},
        {"Memory", MiB(properties.totalGlobalMem)},
        {"Compute capability", std::to_string(properties.major) + "." + std::to_string(properties.minor)},
        {"Multiprocessors", std::to_string(properties.multiProcessorCount)},
        {"Driver", "CUDA " + Version(driver)},
        {"Runtime", "CUDA " + Version(runtime)},
        {"cuBLAS", cublas_version},
        {"cuDNN", cudnn_version},
        {"Driver and libraries fit", fit},
    };
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

}  // namespace crema::cuda
