// Annotations in the text of SSD and of Darknet.
#include <gtest/gtest.h>

#include "data/convert_annotated_testing.h"

namespace crema {
namespace {

TEST_F(ConvertAnnotated, TextMayBeginWithAByteOrderMark) {
  AnnotatedConversion how = Conversion();
  how.format = AnnotatedConversion::Format::kText;
  WriteFile(folder_ / "a.txt",
            "\xEF\xBB\xBF"
            "2 10 5 30 15\r\n");
  EXPECT_EQ(Convert("a.png a.txt\n", how).objects, 1);
  WriteFile(folder_ / "wide.txt", std::string("\xFF\xFE"
                                              "2\0 \0",
                                              6));
  ExpectThrows<UserError>([&] { Convert("a.png wide.txt\n", how, "other"); }, {"wide.txt", "UTF-16"});
}

TEST_F(ConvertAnnotated, ReadsSsdsText) {
  AnnotatedConversion how = Conversion();
  how.format = AnnotatedConversion::Format::kText;
  WriteFile(folder_ / "a.txt", "2 10 5 30 15\n\n1 0 0 20.0 20\r\n2 30 5 60 15\n");
  const AnnotationsConverted done = Convert("a.png a.txt\n", how);
  EXPECT_EQ(done.objects, 3);
  EXPECT_EQ(done.clipped, 1);
  ExpectSaid("a.txt:4: the box 30 5 60 15 of class 2 reaches over");
  const AnnotatedDatum record = Record(0);
  ASSERT_EQ(record.annotation_group_size(), 2);
  EXPECT_EQ(record.annotation_group(0).group_label(), 2);
  EXPECT_EQ(record.annotation_group(0).annotation(1).bbox().xmax(), 1);
  EXPECT_EQ(record.annotation_group(1).annotation(0).bbox().xmax(), 0.5f);
  for (const char* line : {"0 1 2 3 4", "1 2 3 4", "dog 1 2 3 4", "1 2 3 4 5 6", "1.5 2 3 4 5"}) {
    WriteFile(folder_ / "bad.txt", std::string("2 10 5 30 15\n") + line);
    ExpectThrows<UserError>([&] { Convert("a.png bad.txt\n", how, "other"); }, {"bad.txt:2", line});
  }
  WriteFile(folder_ / "bad.txt", "7 1 2 3 4");
  ExpectThrows<UserError>([&] { Convert("a.png bad.txt\n", how, "other"); }, {"bad.txt:1", "label 7", "map.prototxt"});
  how.labels.reset();
  EXPECT_EQ(Convert("a.png bad.txt\n", how, "other").objects, 1);
  // Floats do not hold it.
  WriteFile(folder_ / "bad.txt", "16777217 1 2 3 4");
  ExpectThrows<UserError>([&] { Convert("a.png bad.txt\n", how, "third"); }, {"bad.txt:1", "16777217"});
}

TEST_F(ConvertAnnotated, ReadsDarknetsText) {
  AnnotatedConversion how;
  how.format = AnnotatedConversion::Format::kYolo;
  WriteFile(folder_ / "coco.names", "cat\nred dog\n\n");
  how.labels = ReadLabelMap(folder_ / "coco.names", false, true);
  // Six digits of a box along the border, and one that reaches over it.
  WriteFile(folder_ / "a.txt",
            "1 0.5 0.5 0.5 0.25\n0 0.1666665 0.5 0.333334 1\r\n\n1 0.75 0.9 0.25 0.5\n0 0.5 0.5 0 1\n");
  const AnnotationsConverted done = Convert("a.png\nb.jpg\n", how);
  EXPECT_EQ(done.images.records, 2);
  EXPECT_EQ(done.objects, 3);
  EXPECT_EQ(done.clipped, 1);
  EXPECT_EQ(done.empty, 1);
  EXPECT_EQ(done.missing, 1);
  EXPECT_EQ(done.tiny, 0);
  ExpectSaid("a.txt:4: the box 0.625 0.65 0.875 1.15 of class 2 reaches over the border of the image; it is cut off");
  ExpectSaid("a.txt:5: the box 0.5 0 0.5 1 of class 1 is empty");
  const AnnotatedDatum record = Record(0);
  ASSERT_EQ(record.annotation_group_size(), 2);
  EXPECT_EQ(record.annotation_group(0).group_label(), 2);
  const NormalizedBBox& box = record.annotation_group(0).annotation(0).bbox();
  EXPECT_EQ(box.xmin(), 0.25f);
  EXPECT_EQ(box.ymin(), 0.375f);
  EXPECT_EQ(box.xmax(), 0.75f);
  EXPECT_EQ(box.ymax(), 0.625f);
  EXPECT_EQ(record.annotation_group(1).group_label(), 1);
  EXPECT_EQ(record.annotation_group(1).annotation(0).bbox().xmin(), 0);

  for (const char* line : {"-1 0.5 0.5 0.5 0.5", "0 0.5 0.5 0.5", "0 0.1 0.1 0.9 0.1 0.9 0.9", "0 20 10 5 5",
                           "0 0.5 0.5 -0.1 0.5", "0.5 0.5 0.5 0.5 0.5", "cat 0.5 0.5 0.5 0.5"}) {
    WriteFile(folder_ / "a.txt", std::string("1 0.5 0.5 0.5 0.25\n") + line);
    ExpectThrows<UserError>([&] { Convert("a.png\n", how, "other"); },
                            {"a.txt:2", "expected \"class x y width height\"", line});
  }
  WriteFile(folder_ / "a.txt", "2 0.5 0.5 0.5 0.25");
  ExpectThrows<UserError>([&] { Convert("a.png\n", how, "other"); },
                          {"a.txt:1", "class 2 has label 3, which is not in", "coco.names"});
}

// Beside the folder of images, as Darknet and its successors look for them, before beside the image.
TEST_F(ConvertAnnotated, DarknetsTextLiesInAFolderOfItsOwn) {
  AnnotatedConversion how;
  how.format = AnnotatedConversion::Format::kYolo;
  for (const char* folder : {"images", "images/train", "labels", "labels/train", "JPEGImages"}) {
    std::filesystem::create_directory(folder_ / folder);
  }
  for (const char* image : {"images/train/a.png", "images/b.c.png", "JPEGImages/d.png"}) {
    std::filesystem::copy_file(folder_ / "a.png", folder_ / image);
  }
  WriteFile(folder_ / "labels/train/a.txt", "3 0.5 0.5 0.5 0.5\n");
  WriteFile(folder_ / "images/train/a.txt", "4 0.5 0.5 0.5 0.5\n");
  WriteFile(folder_ / "labels/b.c.txt", "5 0.5 0.5 0.5 0.5\n");
  WriteFile(folder_ / "JPEGImages/d.txt", "6 0.5 0.5 0.5 0.5\n");
  Convert("images/train/a.png\nimages/b.c.png\nJPEGImages/d.png\n", how);
  for (uint64_t i = 0; i < 3; ++i) {
    constexpr int kLabels[] = {4, 6, 7};
    ASSERT_EQ(Record(i).annotation_group_size(), 1) << i;
    EXPECT_EQ(Record(i).annotation_group(0).group_label(), kLabels[i]);
  }
  std::filesystem::remove(folder_ / "labels/b.c.txt");
  ExpectThrows<UserError>([&] { Convert("images/b.c.png\n", how, "other"); },
                          {"none of the files", "labels/b.c.txt", "a folder \"labels\" beside that called \"images\""});
}

}  // namespace
}  // namespace crema
