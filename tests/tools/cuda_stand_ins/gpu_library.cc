#include "device/gpu.h"

extern "C" int StandInVersion();

extern "C" {
extern const crema::GpuLibrary crema_gpu_library;
const crema::GpuLibrary crema_gpu_library{crema::kGpuInterface, nullptr,
                                          [](std::string* why) {
                                            *why = "the stand-in has no GPU, by a runtime of version " +
                                                   std::to_string(StandInVersion());
                                            return std::vector<crema::DeviceFacts>();
                                          },
                                          nullptr, nullptr};
}
