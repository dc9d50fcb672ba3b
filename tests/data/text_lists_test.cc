// Byte order marks, which some editors put before UTF-8 text, are no part of the first line.
#include <gtest/gtest.h>
#include <zlib.h>

#include "data/convert_testing.h"
#include "data/files/annotation_file.h"
#include "data/files/hdf5_files.h"
#include "data/files/image_list.h"
#include "data/files/kitti_labels.h"
#include "data/files/vocabulary.h"
#include "data/files/window_file.h"
#include "errors.h"

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

TEST_F(TextLists, MayBeCompressed) {
  const auto compressed = [&](const std::string& text) {
    const gzFile file = gzopen((folder_ / "list.gz").c_str(), "wb");
    gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    gzclose(file);
    return folder_ / "list.gz";
  };
  WriteFile(folder_ / "rows.h5", "");
  EXPECT_EQ(ReadImageList(compressed("a.jpg 1\n"), "").entries[0].path, "a.jpg");
  EXPECT_EQ(ReadLabels(compressed("cat\n")), std::vector<std::string>{"cat"});
  EXPECT_EQ(ReadHdf5List(compressed("rows.h5\n")), std::vector<std::string>{folder_ / "rows.h5"});
  EXPECT_EQ(ReadWindowFile(compressed("# 0\na.jpg\n3 50 35\n0\n"), "", 0.5f, 0.5f).images.entries[0].path, "a.jpg");
}

TEST_F(TextLists, HoldNoBytesThatAreZero) {
  const std::string path = folder_ / "list.txt", said = path + ": error: is no text, as its bytes that are zero show; ";
  WriteFile(path, std::string("a b\0\n", 5));
  EXPECT_EQ(ThrownBy<UserError>([&] { ReadLabels(path); }),
            said + "expected a list with the name of one class per line");
  EXPECT_EQ(ThrownBy<UserError>([&] { ReadHdf5List(path); }),
            said + "expected a text file that names one HDF5 file per line");
  EXPECT_EQ(ThrownBy<UserError>([&] { ReadWindowFile(path, "", 0.5f, 0.5f); }), said + "expected a window file");
  EXPECT_EQ(ThrownBy<UserError>([&] { ReadTextAnnotation(path); }), said + "expected a file of text");
  EXPECT_EQ(ThrownBy<UserError>([&] { ReadKittiLabels(path); }), said + "expected a file of text");
  // As one of characters that was made of such a text.
  WriteFile(path, std::string("\0\n", 2));
  EXPECT_EQ(Vocabulary::Read(path, TextUnit::kCharacter).Find(std::string(1, '\0')), 0);
}

TEST_F(TextLists, OfWindowsMayBeginWithAMark) {
  const WindowFile file = ReadWindowFile(Marked("# 0\na.jpg\n3 50 35\n1\n1 0.8 1 2 10 21\n"), "", 0.5f, 0.5f);
  EXPECT_EQ(file.images.entries[0].path, "a.jpg");
}

}  // namespace
}  // namespace crema
