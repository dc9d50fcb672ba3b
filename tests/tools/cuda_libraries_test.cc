// Which of several CUDAs on a machine is loaded.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tools/program.h"

namespace crema::testing_tools {
namespace {

namespace fs = std::filesystem;

// A GPU library that needs version 7 of the runtime.
class CudaLibraries : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(CREMA_STAND_IN_GPU_LIBRARY)) GTEST_SKIP() << "the stand-ins are not here";
  }
  // Where Python's packages bring it along.
  void PutIntoEnvironment(const std::string& version) {
    Put(version, folder_ / "venv/lib/python3.11/site-packages/nvidia/cuda_runtime/lib");
  }
  static void Put(const std::string& version, const fs::path& folder) {
    fs::create_directories(folder);
    fs::copy(std::string(CREMA_STAND_IN_CUDARTS) + "/" + version + "/libcudart.so." + version, folder);
  }
  std::string Query(const std::vector<std::string>& variables = {}) const {
    std::vector<std::string> words = {"/usr/bin/env",
                                      "-u",
                                      "CUDA_HOME",
                                      "-u",
                                      "CONDA_PREFIX",
                                      "CREMA_GPU_LIBRARY=" CREMA_STAND_IN_GPU_LIBRARY,
                                      "VIRTUAL_ENV=" + (folder_ / "venv").string(),
                                      "HOME=" + (folder_ / "home").string()};
    words.insert(words.end(), variables.begin(), variables.end());
    words.insert(words.end(), {std::string(CREMA_BIN_DIR) + "/crema", "device_query"});
    return RunProgram(words, {.folder = folder_.path()}).out;
  }
  static void ExpectLoaded(const std::string& said) {
    EXPECT_NE(said.find("by a runtime of version 7"), std::string::npos) << said;
  }

  ScratchFolder folder_;
};

TEST_F(CudaLibraries, AnotherVersionOfTheSystemDoesNotHideTheOneThatFits) {
  PutIntoEnvironment("7");
  Put("8", folder_ / "system");
  ExpectLoaded(Query({"LD_LIBRARY_PATH=" + (folder_ / "system").string()}));
}

TEST_F(CudaLibraries, ANewerOneBesideItDoesNot) {
  PutIntoEnvironment("7");
  PutIntoEnvironment("8");
  ExpectLoaded(Query());
}

TEST_F(CudaLibraries, AnotherVersionInCudaHomeDoesNot) {
  PutIntoEnvironment("7");
  Put("8", folder_ / "cuda/lib64");
  ExpectLoaded(Query({"CUDA_HOME=" + (folder_ / "cuda").string()}));
}

TEST_F(CudaLibraries, OneThatDoesNotLoadDoesNotEndTheSearch) {
  fs::create_directories(folder_ / "cuda/lib64");
  folder_.Write("cuda/lib64/libcudart.so.7", "no library");
  PutIntoEnvironment("7");
  ExpectLoaded(Query({"CUDA_HOME=" + (folder_ / "cuda").string()}));
}

TEST_F(CudaLibraries, SaysWhatWasThereInstead) {
  PutIntoEnvironment("8");
  fs::create_directories(folder_ / "cuda/lib64");
  folder_.Write("cuda/lib64/libcudart.so.7", "no library");
  const std::string said = Query({"CUDA_HOME=" + (folder_ / "cuda").string()});
  for (const char* part : {"libcudart.so.7: cannot open", "passed over: ", "cuda/lib64/libcudart.so.7: ",
                           "cuda_runtime/lib/libcudart.so.8 is not libcudart.so.7"}) {
    EXPECT_NE(said.find(part), std::string::npos) << part << "\n" << said;
  }
}

}  // namespace
}  // namespace crema::testing_tools
