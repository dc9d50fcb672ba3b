// Copies of models.
#include <gtest/gtest.h>

#include <filesystem>

#include "crema/error.h"
#include "errors.h"
#include "temporary_folder.h"
#include "zoo/zoo.h"

namespace crema {
namespace {

// Nothing is at the address at which a process's memory begins.
TEST(CopyModel, SaysWhatKeptAFileFromBeingRead) {
  const TemporaryFolder folder;
  ZooModel model;
  model.folder = folder / "model";
  std::filesystem::create_directory(model.folder);
  std::filesystem::create_symlink("/proc/self/mem", model.folder + "/README.md");
  EXPECT_EQ(ThrownBy<EnvironmentError>([&] { CopyModel(model, folder / "copy", false); }),
            model.folder + "/README.md: cannot be read: Input/output error");
}

}  // namespace
}  // namespace crema
