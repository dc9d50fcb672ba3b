#include "data/files/class_names.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "data/data_testing.h"
#include "data/databases/dataset_writer.h"
#include "temporary_folder.h"

namespace crema {
namespace {

using testing::ExpectThrows;
using testing::WriteFile;
using Names = std::vector<std::string>;

TEST(ClassNames, LabelsLieBesideTheDatabaseOrItsWhole) {
  const TemporaryFolder folder;
  EXPECT_EQ(LabelsBeside(folder / "pets_train_lmdb"), "");
  WriteFile(folder / "pets_labels.txt", "cat\n");
  for (const char* name : {"pets_train_lmdb", "pets_lmdb", "pets", "pets_val_lmdb/", "pets_val.lmdb"}) {
    EXPECT_EQ(LabelsBeside(folder / name), folder / "pets_labels.txt") << name;
  }
  WriteFile(folder / "pets_train_labels.txt", "dog\n");
  EXPECT_EQ(LabelsBeside(folder / "pets_train_lmdb"), folder / "pets_train_labels.txt");
  EXPECT_EQ(LabelsBeside(folder / "petsy_lmdb"), "");
  WriteFile(folder / "pets_train_labels.txt", "im/a cat.png 0\nim/b.png 1\n");
  EXPECT_EQ(LabelsBeside(folder / "pets_train_lmdb"), folder / "pets_labels.txt") << "the other is a list of images";
  for (const char* list : {"im/a.png 0 7\n", "\n \r\nim/b.png 1\n", "im/b.png\r\n", "a b.jpg 0.5 1 2\n"}) {
    WriteFile(folder / "pets_train_labels.txt", list);
    EXPECT_EQ(LabelsBeside(folder / "pets_train_lmdb"), folder / "pets_labels.txt") << list;
  }
  // A name of folders above is no part.
  std::filesystem::create_directory(folder / "a_b");
  WriteFile(folder / "a_labels.txt", "dog\n");
  EXPECT_EQ(LabelsBeside(folder / "a_b/c_lmdb"), "");
  EXPECT_EQ(LabelsBeside(folder / "a_b/_lmdb"), "");
}

TEST(ClassNames, ADatabaseWithOtherNumbersIsRefused) {
  const TemporaryFolder folder;
  const std::string database = folder / "va_lmdb";
  Diagnostics warnings;
  CheckClassesOf(database, {"tr_labels.txt", {"a", "b"}}, &warnings);  // it has no file
  WriteFile(folder / "va_labels.txt", "bird\ncat\n");
  ExpectThrows<UserError>(
      [&] {
        CheckClassesOf(database, {"tr_labels.txt", {"ant", "bird", "cat"}}, &warnings);
      },
      {"va_lmdb", "has \"bird\" as class 0, says", "va_labels.txt", "\"tr_labels.txt\" has it as class 1",
       "--labels=tr_labels.txt"});
  CheckClassesOf(database, {"tr_labels.txt", {"bird", "cat", "dog"}}, &warnings);
  CheckClassesOf(database, {"tr_labels.txt", {"bird"}}, &warnings);
  EXPECT_TRUE(warnings.list().empty());
  CheckClassesOf(database, {"german.txt", {"Vogel", "Katze"}}, &warnings);
  ASSERT_EQ(warnings.list().size(), 1u);
  EXPECT_NE(warnings.list()[0].message.find("calls class 0 \"bird\""), std::string::npos);
}

TEST(ClassNames, WhatLiesBesideADatabaseMayBeNoListOfNames) {
  const TemporaryFolder folder;
  const std::string database = folder / "va_lmdb", file = folder / "va_labels.txt";
  Diagnostics warnings;
  WriteFile(file, "item { name: \"ant\" label: 0 }\n\nitem { name: \"bird\" label: 1 }\n");
  CheckClassesOf(database, {file, {"ant", "bird"}}, &warnings);
  CheckClassesOf(database, {"same.txt", {"ant", "bird"}}, &warnings);
  EXPECT_TRUE(warnings.list().empty());
  ExpectThrows<UserError>(
      [&] {
        CheckClassesOf(database, {"other.txt", {"bird", "ant"}}, &warnings);
      },
      {"has \"ant\" as class 0"});
  WriteFile(file, "a note\n\non birds\n");
  CheckClassesOf(database, {"other.txt", {"bird", "ant"}}, &warnings);
  ASSERT_EQ(warnings.list().size(), 1u);
  EXPECT_NE(warnings.list()[0].message.find("has the name of a list of its classes, but"), std::string::npos);
  EXPECT_NE(warnings.list()[0].message.find("the line is empty"), std::string::npos);
}

TEST(ClassNames, FoldersAreNumberedAsAFileSays) {
  const TemporaryFolder folder;
  WriteFile(folder / "labels.txt", "dog\ncat\nowl\n");
  ImageList list;
  list.root = "pets/";
  list.labels = {"cat", "dog"};
  list.entries = {{"cat/1.png", 0}, {"dog/1.png", 1}};
  NumberClassesAs(ReadClassList(folder / "labels.txt"), &list);
  EXPECT_EQ(list.entries[0].label, 1);
  EXPECT_EQ(list.entries[1].label, 0);
  EXPECT_EQ(list.labels, (Names{"dog", "cat", "owl"}));
  list.labels = {"cat", "dgo"};
  ExpectThrows<UserError>(
      [&] {
        NumberClassesAs({"labels.txt", {"dog", "cat"}}, &list);
      },
      {"pets/dgo", "none of the 2 classes of \"labels.txt\"", "did you mean \"dog\"?"});
  WriteFile(folder / "labels.txt", "dog\ncat\ndog\n");
  ExpectThrows<UserError>([&] { ReadClassList(folder / "labels.txt"); }, {"\"dog\" stands twice"});
}

TEST(ClassNames, CountsAreATable) {
  ClassCounts counts({"automobile", "cat"}, {"train", "val"});
  counts.counts = {{240, 27}, {9, 0}};
  EXPECT_EQ(CountsTable(counts),
            "class          train       val\n"
            "automobile       240        27\n"
            "cat                9         0");
  EXPECT_EQ(MissingClasses(counts), Names{"there is no record of \"cat\" in val"});
  Names many;
  for (int i = 0; i < 25; ++i) many.push_back("c" + std::to_string(i));
  ClassCounts large(many, {"images"});
  for (size_t i = 0; i < 25; ++i) large.counts[i][0] = static_cast<int64_t>(100 - i);
  const std::string table = CountsTable(large);
  EXPECT_EQ(table.find("the 20 smallest classes"), 0u);
  EXPECT_LT(table.find("c24 "), table.find("c23 "));
  EXPECT_EQ(table.find("c4 "), std::string::npos);
}

TEST(ClassNames, WhatLooksAlikeIsTold) {
  EXPECT_TRUE(LookAlikes({"cat", "dog", "cats"}).empty());
  const Names told = LookAlikes({"Dog", "Dog ", "cat", "dog", "snow leopard", "SnowLeopard"});
  ASSERT_EQ(told.size(), 3u);
  EXPECT_EQ(told[0].find("the classes \"Dog\" and \"Dog \" differ in case or blanks alone"), 0u);
  EXPECT_EQ(told[2].find("the classes \"snow leopard\" and \"SnowLeopard\""), 0u);
}

TEST(ClassNames, OrderByClassIsSeen) {
  EXPECT_TRUE(LieInOrder({0, 0, 1, 1}));
  EXPECT_TRUE(LieInOrder({2, 2, 0, 0, 0, 1}));
  EXPECT_FALSE(LieInOrder({0, 1, 0, 1}));
  EXPECT_FALSE(LieInOrder({0, 0, 0}));
  EXPECT_FALSE(LieInOrder({0, 1, 2})) << "one of each";
  EXPECT_FALSE(LieInOrder({}));
}

}  // namespace
}  // namespace crema
