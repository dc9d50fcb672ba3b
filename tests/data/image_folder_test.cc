#include "data/files/image_folder.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "data/convert/convert_images.h"
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
  LeftOut left_out;
  ExpectThrows<UserError>([&] { ListImageFolder(folder / "set", &left_out); },
                          {"parts of a data set, not classes", "Testing", "train"});
  EXPECT_GE(ListImageFolder(folder / "set/train", &left_out).labels.size(), 2u);
  // Classes may have such names, and classes folders in them.
  testing::WritePictures(folder / "trains/train", 1);
  testing::WritePictures(folder / "trains/tram", 1);
  EXPECT_EQ(ListImageFolder(folder / "trains", &left_out).labels, (std::vector<std::string>{"train", "tram"}));
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

TEST(ImageFolder, WhatBelongsToNoClassIsCounted) {
  const TemporaryFolder folder;
  testing::WritePictures(folder.path(), 1);
  testing::WriteFile(folder / "loose.JPG", "");
  testing::WriteFile(folder / "another.png", "");
  testing::WriteFile(folder / ".hidden.png", "");
  testing::WriteFile(folder / "README", "");
  testing::WriteFile(folder / "cat/notes.txt", "");
  LeftOut left_out;
  EXPECT_EQ(ListImageFolder(folder.path(), &left_out).entries.size(), 2u);
  EXPECT_EQ(left_out.loose, (std::vector<std::string>{folder / "another.png", folder / "loose.JPG"}));
  EXPECT_EQ(left_out.others, 2u);
}

TEST(ConvertImages, PathsMayBeLongerThanKeys) {
  TemporaryFolder folder;
  const std::string deep = std::string(250, 'a') + "/" + std::string(250, 'b');
  std::filesystem::create_directories(folder / deep);
  ImageList list;
  list.root = folder / "";
  for (int i = 0; i < 2; ++i) {
    list.entries.push_back({deep + "/" + std::to_string(i) + ".png", i});
    testing::WriteFile(list.PathOf(list.entries.size() - 1), testing::Png(testing::Photograph(2, 2, 1, 1)));
  }
  testing::SilentProgress progress;
  DatasetTarget target;
  target.database = folder / "db";
  EXPECT_EQ(ConvertImages(list, {}, target, &progress.line).records, 2);
  const auto source = OpenRecordSource(target.database);
  ASSERT_EQ(source->count(), 2u);
  for (uint64_t i = 0; i < 2; ++i) {
    const std::string whole = "0000000" + std::to_string(i) + "_" + list.entries[i].path;
    EXPECT_EQ(source->Key(i), whole.substr(0, 511));
    EXPECT_EQ(testing::DatumOf(*source, i).label(), static_cast<int>(i));
  }
}

}  // namespace
}  // namespace crema
