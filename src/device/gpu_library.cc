#include "device/gpu_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/plugin.h"

namespace crema {

namespace {

namespace fs = std::filesystem;

// In the order in which they need each other. cuDNN loads its parts by itself, from beside it.
constexpr const char* kLibraries[] = {"libcudart.so", "libnvrtc.so", "libcublasLt.so",
                                      "libcublas.so", "libcudnn.so", "libnccl.so"};

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

void AddFolder(const fs::path& folder, std::vector<fs::path>* folders) {
  std::error_code ignored;
  if (fs::is_directory(folder, ignored)) folders->push_back(folder);
}

// The lib folders of NVIDIA's packages below <environment>/lib/python*/site-packages/nvidia.
void AddPackages(const fs::path& environment, std::vector<fs::path>* folders) {
  std::error_code ignored;
  for (const auto& python : fs::directory_iterator(environment / "lib", ignored)) {
    if (!python.path().filename().string().starts_with("python")) continue;
    for (const auto& package : fs::directory_iterator(python.path() / "site-packages" / "nvidia", ignored)) {
      AddFolder(package.path() / "lib", folders);
    }
  }
}

std::vector<fs::path> GivenFolders() {
  std::vector<fs::path> folders;
  if (const std::string home = Environment("CUDA_HOME"); !home.empty()) {
    AddFolder(fs::path(home) / "lib64", &folders);
    AddFolder(fs::path(home) / "lib", &folders);
  }
  return folders;
}

std::vector<fs::path> UsualFolders() {
  std::vector<fs::path> folders;
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const std::string environment = Environment(name); !environment.empty()) AddPackages(environment, &folders);
  }
  if (const std::string home = Environment("HOME"); !home.empty()) AddPackages(fs::path(home) / ".local", &folders);
  AddFolder("/usr/local/cuda/lib64", &folders);
  return folders;
}

// "libcudart.so.13" for "libcudart.so": the file of the highest version; empty without one.
fs::path Newest(const fs::path& folder, const std::string& name) {
  fs::path best;
  std::error_code ignored;
  for (const auto& file : fs::directory_iterator(folder, ignored)) {
    const std::string candidate = file.path().filename().string();
    if (!candidate.starts_with(name + ".")) continue;
    const auto number = [&](const std::string& text) { return std::atoi(text.c_str() + name.size() + 1); };
    if (best.empty() || number(candidate) > number(best.filename().string())) best = file.path();
  }
  return best;
}

}  // namespace

std::string GpuLibraryPath() { return PluginPath("CREMA_GPU_LIBRARY", "libcrema_cuda.so"); }

void LoadCudaLibraries() {
  const auto load = [](const fs::path& file) { return dlopen(file.c_str(), RTLD_LAZY | RTLD_GLOBAL) != nullptr; };
  const std::vector<fs::path> given = GivenFolders(), usual = UsualFolders();
  for (const char* name : kLibraries) {
    const auto load_from = [&](const fs::path& folder) {
      const fs::path file = Newest(folder, name);
      return !file.empty() && load(file);
    };
    if (std::any_of(given.begin(), given.end(), load_from)) continue;
    // The system's own, where it has this version.
    const auto is_known = [&](const fs::path& folder) {
      const fs::path file = Newest(folder, name);
      return !file.empty() && load(file.filename());
    };
    if (std::any_of(usual.begin(), usual.end(), is_known)) continue;
    (void)std::any_of(usual.begin(), usual.end(), load_from);
  }
}

}  // namespace crema
