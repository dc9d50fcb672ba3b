#include "data/image_folder.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "data/convert_testing.h"
#include "data/image_testing.h"
#include "temporary_folder.h"

namespace crema {
namespace {

using testing::ExpectThrows;

TEST(ImageFolder, PartsOfADataSetAreNoClasses) {
  const TemporaryFolder folder;
  testing::WritePictures(folder / "set/train", 2);
  testing::WritePictures(folder / "set/Testing", 2);
  size_t skipped = 0;
  ExpectThrows<UserError>([&] { ListImageFolder(folder / "set", &skipped); },
                          {"parts of a data set, not classes", "Testing", "train"});
  EXPECT_GE(ListImageFolder(folder / "set/train", &skipped).labels.size(), 2u);
  // Classes may have such names, and classes folders in them.
  testing::WritePictures(folder / "trains/train", 1);
  testing::WritePictures(folder / "trains/tram", 1);
  EXPECT_EQ(ListImageFolder(folder / "trains", &skipped).labels, (std::vector<std::string>{"train", "tram"}));
}

TEST(ImageFolder, PartsAreFoundUnderTheirUsualNames) {
  const TemporaryFolder folder;
  EXPECT_EQ(FindParts(folder.path()).training, "");
  std::filesystem::create_directory(folder / "Training");
  EXPECT_EQ(FindParts(folder.path()).training, "") << "without another part";
  std::filesystem::create_directory(folder / "test");
  EXPECT_EQ(FindParts(folder.path()).training, folder / "Training");
  EXPECT_EQ(FindParts(folder.path()).validation, folder / "test");
  std::filesystem::create_directory(folder / "Valid");
  EXPECT_EQ(FindParts(folder.path()).validation, folder / "Valid") << "tests are for the end";
  EXPECT_EQ(FindParts(folder / "absent").validation, "");
}

}  // namespace
}  // namespace crema
