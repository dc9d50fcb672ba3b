#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "base/aligned_memory.h"
#include "base/machine_memory.h"
#include "crema/error.h"
#include "device/device.h"

namespace crema {

namespace {

class Cpu final : public Device {
 public:
  DeviceType type() const override { return DeviceType::kCpu; }
  std::string name() const override { return "CPU"; }
  bool ComputesBFloat16() const override {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512bf16");
#else
    return false;
#endif
  }

  void* Allocate(size_t bytes) override {
    void* data = AllocateAligned(bytes);
    if (!data) {
      throw EnvironmentError(
          "not enough memory for " + std::to_string(bytes >> 20) +
          " MiB of activations or of one parameter; lower batch_size (and raise iter_size to keep the "
          "effective batch), or num_output where a layer is that large");
    }
    return data;
  }
  void Free(void* data) override { std::free(data); }
  void CopyIn(const void* host, void* data, size_t bytes) override { std::memcpy(data, host, bytes); }
  void CopyOut(const void* data, void* host, size_t bytes) override { std::memcpy(host, data, bytes); }
  size_t FreeMemory() const override { return FreeMachineMemory(); }
};

}  // namespace

Device& CpuDevice() {
  static Cpu cpu;
  return cpu;
}

DeviceFacts DescribeCpu() {
  DeviceFacts facts{"CPU", {}};
  std::ifstream cpuinfo("/proc/cpuinfo");
  std::string line, model, flags;
  while (std::getline(cpuinfo, line)) {
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    if (model.empty() && line.starts_with("model name")) model = line.substr(colon + 2);
    if (flags.empty() && line.starts_with("flags")) flags = " " + line.substr(colon + 2) + " ";
  }
  if (!model.empty()) facts.facts.emplace_back("Model", model);
  facts.facts.emplace_back("Logical cores", std::to_string(sysconf(_SC_NPROCESSORS_ONLN)));
  facts.facts.emplace_back("Compute threads", std::to_string(std::min(omp_get_max_threads(), omp_get_thread_limit())) +
                                                  (std::getenv("OMP_NUM_THREADS") ? " (OMP_NUM_THREADS)" : ""));
  facts.facts.emplace_back("Memory", std::to_string(MachineMemory() >> 20) + " MiB");
  std::string vector_units;
  for (const char* flag : {"avx2", "fma", "avx512f", "avx512_bf16", "avx512_vnni", "amx_bf16", "amx_int8"}) {
    if (flags.find(" " + std::string(flag) + " ") != std::string::npos)
      vector_units += std::string(vector_units.empty() ? "" : " ") + flag;
  }
  if (!vector_units.empty()) facts.facts.emplace_back("Vector units", vector_units);
  return facts;
}

}  // namespace crema
