#include "device/gpu.h"

#include <dlfcn.h>

#include <map>
#include <mutex>

#include "base/plugin.h"
#include "crema/error.h"
#include "device/gpu_library.h"

namespace crema {

namespace {

// Null, with the reason in *why, where it is not there or cannot be loaded.
const GpuLibrary* Load(std::string* why) {
  const std::string path = GpuLibraryPath();
  if (!MayBeThere(path)) {
    *why = "this crema was built without CUDA (there is no " + path +
           "); to use a GPU, install the CUDA toolkit (12 or later, nvcc on PATH) and configure with -DCREMA_CUDA=ON";
    return nullptr;
  }
  // Never closed: what it registered and its threads stay in use until the process ends.
  const auto load = [&] { return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); };
  // One that the user names may find what it links by itself.
  void* library = NamesGpuLibrary() && !NamesCuda() ? load() : nullptr;
  std::string passed_over;
  if (!library) {
    passed_over = LoadCudaLibraries(path);
    library = load();
  }
  if (!library) {
    *why =
        std::string("the GPU library does not load: ") + dlerror() +
        "; it needs the CUDA runtime it was built with, cuBLAS and cuDNN 9: install them, or say where they are with "
        "CUDA_HOME or LD_LIBRARY_PATH" +
        (passed_over.empty() ? "" : " (passed over: " + passed_over + ")");
    return nullptr;
  }
  const auto* found = static_cast<const GpuLibrary*>(dlsym(library, "crema_gpu_library"));
  if (!found || found->interface_version != kGpuInterface) {
    *why = path + " is of another version of crema; install both from one build";
    return nullptr;
  }
  return found;
}

struct Loaded {
  Loaded() { library = Load(&why); }
  const GpuLibrary* library = nullptr;
  std::string why;
};

const Loaded& Library() {
  static const Loaded loaded;
  return loaded;
}

}  // namespace

Device& GpuDevice(int id) { return OpenGpu(id); }

Gpu& OpenGpu(int id) {
  static std::mutex mutex;
  // Never destroyed: when the process ends, what the GPU library needs for that may be gone before.
  static auto& open = *new std::map<int, std::unique_ptr<Gpu>>;
  const std::lock_guard lock(mutex);
  std::unique_ptr<Gpu>& gpu = open[id];
  if (gpu) return *gpu;
  const Loaded& loaded = Library();
  if (!loaded.library) throw EnvironmentError("no GPU: " + loaded.why);
  gpu = loaded.library->open(id);
  return *gpu;
}

std::vector<std::unique_ptr<Communicator>> ConnectGpus(const std::vector<Gpu*>& gpus) {
  // There is a GPU, so the library was loaded.
  return Library().library->connect(gpus);
}

std::unique_ptr<Communicator> ConnectGpu(Gpu& gpu, Processes& processes) {
  return Library().library->connect_process(gpu, processes);
}

std::vector<DeviceFacts> DescribeGpus(std::string* why) {
  why->clear();
  const Loaded& loaded = Library();
  if (loaded.library) return loaded.library->describe(why);
  *why = loaded.why;
  return {};
}

}  // namespace crema
