#include "device/gpu_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <vector>

#include "base/plugin.h"
#include "device/needed_libraries.h"

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

// The lib folders of NVIDIA's packages below <environment>/lib/python*/site-packages/nvidia, or where Debian's Python
// has them.
void AddPackages(const fs::path& environment, std::vector<fs::path>* folders) {
  std::error_code ignored;
  for (const auto& python : fs::directory_iterator(environment / "lib", ignored)) {
    if (!python.path().filename().string().starts_with("python")) continue;
    for (const char* packages : {"site-packages", "dist-packages"}) {
      for (const auto& package : fs::directory_iterator(python.path() / packages / "nvidia", ignored)) {
        AddFolder(package.path() / "lib", folders);
      }
    }
  }
}

// Of the python3 on PATH, and of those that it is a link to: an environment need not be active to be used.
void AddPackagesOfPython(std::vector<fs::path>* folders) {
  std::error_code ignored;
  fs::path python;
  std::istringstream path(Environment("PATH"));
  for (std::string folder; python.empty() && std::getline(path, folder, ':');) {
    if (!folder.empty() && fs::exists(fs::path(folder) / "python3", ignored)) python = fs::path(folder) / "python3";
  }
  for (int links = 0; !python.empty() && links < 8; ++links) {
    AddPackages(python.parent_path().parent_path(), folders);
    if (!fs::is_symlink(python, ignored)) return;
    python = python.parent_path() / fs::read_symlink(python, ignored);  // one that is absolute replaces all
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
  AddPackagesOfPython(&folders);
  if (const std::string home = Environment("HOME"); !home.empty()) AddPackages(fs::path(home) / ".local", &folders);
  AddPackages("/usr/local", &folders);
  AddFolder("/usr/local/cuda/lib64", &folders);
  return folders;
}

// The files that the GPU library needs, by kLibraries; empty: of any version. cuDNN loads some by itself, which belong
// to the CUDA runtime.
class Wanted {
 public:
  explicit Wanted(const std::string& gpu_library) : needed_(NeededLibraries(gpu_library)) {}

  std::string File(const std::string& name) const {
    if (const std::string file = Needed(name); !file.empty()) return file;
    const std::string runtime = "libcudart.so", needed = Needed(runtime);
    const bool of_runtime = name == "libnvrtc.so" || name == "libcublas.so";
    return of_runtime && !needed.empty() ? name + needed.substr(runtime.size()) : "";
  }

 private:
  std::string Needed(const std::string& name) const {
    for (const std::string& file : needed_) {
      if (file.starts_with(name + ".")) return file;
    }
    return "";
  }

  const std::vector<std::string> needed_;
};

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

bool NamesGpuLibrary() { return !Environment("CREMA_GPU_LIBRARY").empty(); }

bool NamesCuda() { return !Environment("CUDA_HOME").empty(); }

std::string GpuLibraryPath() { return PluginPath("CREMA_GPU_LIBRARY", "libcrema_cuda.so"); }

std::string LoadCudaLibraries(const std::string& gpu_library) {
  const Wanted wanted_files(gpu_library);
  const auto load = [](const fs::path& file) { return dlopen(file.c_str(), RTLD_LAZY | RTLD_GLOBAL) != nullptr; };
  const std::vector<fs::path> given = GivenFolders(), usual = UsualFolders();
  std::string passed_over;
  for (const char* name : kLibraries) {
    const std::string wanted = wanted_files.File(name);
    std::string others;
    const auto note = [&](const std::string& other) {
      if (others.find(other) == std::string::npos) others += (others.empty() ? "" : "; ") + other;
    };
    const auto load_from = [&](const fs::path& folder) {
      const fs::path newest = Newest(folder, name), file = wanted.empty() ? newest : folder / wanted;
      std::error_code ignored;
      if (newest.empty() || !fs::exists(file, ignored)) {
        if (!newest.empty()) note(newest.string() + " is not " + wanted);
        return false;
      }
      if (load(file)) return true;
      note(dlerror());
      return false;
    };
    if (std::any_of(given.begin(), given.end(), load_from)) continue;
    // The system's own, where it has this version.
    const auto is_known = [&](const fs::path& folder) {
      const fs::path file = Newest(folder, name);
      return !file.empty() && load(file.filename());
    };
    if (wanted.empty() ? std::any_of(usual.begin(), usual.end(), is_known) : load(wanted)) continue;
    if (std::any_of(usual.begin(), usual.end(), load_from) || others.empty()) continue;
    passed_over += (passed_over.empty() ? "" : "; ") + others;
  }
  return passed_over;
}

}  // namespace crema
