// Byte order marks, which some editors put before UTF-8 text, are no part of the first line.
#include <gtest/gtest.h>

#include "data/convert_testing.h"
#include "data/hdf5_files.h"
#include "data/image_list.h"
#include "data/window_file.h"

namespace crema {
namespace {

using testing::WriteFile;

constexpr char kMark[] = "\xef\xbb\xbf";

class TextLists : public ::testing::Test {
 protected:
  std::string Marked(const std::string& text) const {
    WriteFile(folder_ / "list.txt", kMark + text);
    return folder_ / "list.txt";
  }

  TemporaryFolder folder_;
};

TEST_F(TextLists, OfImagesMayBeginWithAMark) {
  const ImageList list = ReadImageList(Marked("a b.jpg 1\n" + std::string(kMark) + "c.jpg 0\n"), "");
  ASSERT_EQ(list.entries.size(), 2u);
  EXPECT_EQ(list.entries[0].path, "a b.jpg");
  EXPECT_EQ(list.entries[1].path, kMark + std::string("c.jpg"));
  EXPECT_EQ(ReadImageList(Marked("a.jpg 0.5 1\n"), "", 2).entries[0].path, "a.jpg");
  EXPECT_EQ(ReadAnnotatedImageList(Marked("a.jpg a.xml\n"), "").images.entries[0].path, "a.jpg");
  EXPECT_EQ(ReadDenseImageList(Marked("a.jpg a.png\n"), "").images.entries[0].path, "a.jpg");
  EXPECT_EQ(ReadImageSegList(Marked("a.jpg\n"), "", ImageDataParameter::NONE, 0).images.entries[0].path, "a.jpg");
  EXPECT_EQ(ReadImageList(Marked("\r\na.jpg 1\r\n"), "").entries[0].path, "a.jpg");
}

TEST_F(TextLists, OfClassesMayBeginWithAMark) {
  EXPECT_EQ(ReadLabels(Marked("big dog\r\ncat\r\n")), (std::vector<std::string>{"big dog", "cat"}));
}

TEST_F(TextLists, OfClassesHaveNoEmptyLinesButAtTheEnd) {
  WriteFile(folder_ / "list.txt", "cat\n \ndog\n\n\n");
  EXPECT_EQ(ReadLabels(folder_ / "list.txt"), (std::vector<std::string>{"cat", " ", "dog"}));
  WriteFile(folder_ / "list.txt", "cat\n\ndog\n");
  testing::ExpectThrows<UserError>([&] { ReadLabels(folder_ / "list.txt"); }, {"list.txt:2", "the line is empty"});
}

TEST_F(TextLists, OfHdf5FilesMayBeginWithAMark) {
  WriteFile(folder_ / "rows.h5", "");
  EXPECT_EQ(ReadHdf5List(Marked(" rows.h5\n")), std::vector<std::string>{folder_ / "rows.h5"});
}

TEST_F(TextLists, OfWindowsMayBeginWithAMark) {
  const WindowFile file = ReadWindowFile(Marked("# 0\na.jpg\n3 50 35\n1\n1 0.8 1 2 10 21\n"), "", 0.5f, 0.5f);
  EXPECT_EQ(file.images.entries[0].path, "a.jpg");
}

}  // namespace
}  // namespace crema
