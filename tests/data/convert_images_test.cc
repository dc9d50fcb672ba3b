#include "data/convert/convert_images.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <set>
#include <sstream>

#include "base/sha256.h"
#include "data/convert_testing.h"
#include "data/image_testing.h"

namespace crema {
namespace {

using testing::ContentOf;
using testing::Convert;
using testing::DatumOf;
using testing::ExpectThrows;
using testing::FolderList;
using testing::ReadFile;
using testing::SilentProgress;
using testing::WriteFile;

// One line as the corpus has it.
std::string RecordLine(const RecordSource& source, uint64_t i, const std::string& scratch) {
  const Datum datum = DatumOf(source, i);
  WriteFile(scratch, datum.data());
  std::ostringstream line;
  line << source.Key(i) << "\t" << datum.channels() << "\t" << datum.height() << "\t" << datum.width() << "\t"
       << datum.label() << "\t" << datum.encoded() << "\t" << datum.data().size() << "\t" << Sha256OfFile(scratch);
  return line.str();
}

TEST(ConvertImages, NumbersAreCountedAsNumbers) {
  const auto labels_of = [](const std::vector<std::string>& names) {
    TemporaryFolder folder;
    for (const std::string& name : names) {
      std::filesystem::create_directories(folder / name);
      WriteFile(folder / name + "/a.png", testing::Png(testing::Photograph(2, 2, 1, 1)));
    }
    return FolderList(folder.path()).labels;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(labels_of({"0", "1", "10", "11", "2"}), (Names{"0", "1", "2", "10", "11"}));
  EXPECT_EQ(labels_of({"007", "10", "7", "00"}), (Names{"00", "007", "7", "10"}));
  EXPECT_EQ(labels_of({"1", "10", "2", "b"}), (Names{"1", "10", "2", "b"}));
}

TEST(ConvertImages, WritesCaffesRecordsBitForBit) {
  const std::string corpus = CREMA_CORPUS_DIR "/convert/", archive = CREMA_CORPUS_DIR "/../data/dog-cat.tar.gz";
  if (!std::filesystem::exists(corpus + "list.txt") || !std::filesystem::exists(archive)) {
    GTEST_SKIP() << "what Caffe's converter wrote is not at " << corpus << ", or the photographs not at " << archive;
  }
  TemporaryFolder folder;
  std::string names;
  std::istringstream list_file(ReadFile(corpus + "list.txt"));
  for (std::string path, label; list_file >> path >> label;) names += " dog-cat/" + path;
  ASSERT_EQ(std::system(("tar -xzf " + archive + " -C " + folder.path() + names).c_str()), 0);
  ImageConversion raw, gray, encoded;
  raw.resize_height = 64;
  raw.resize_width = 48;
  gray.gray = true;
  gray.resize_height = gray.resize_width = 32;
  encoded.encoded = true;
  encoded.format = ImageFormat::kJpeg;
  const std::pair<std::string, ImageConversion> cases[] = {
      {"raw", raw}, {"gray", gray}, {"encoded", encoded}, {"native", {}}};
  const ImageList list = ReadImageList(corpus + "list.txt", folder / "dog-cat");
  for (const auto& [name, how] : cases) {
    Convert(list, how, {.database = folder / name});
    std::istringstream expected(ReadFile(corpus + name + ".tsv"));
    std::string line;
    std::getline(expected, line);
    const auto source = OpenRecordSource(folder / name);
    uint64_t i = 0;
    for (; std::getline(expected, line); ++i) EXPECT_EQ(RecordLine(*source, i, folder / "data"), line) << name;
    EXPECT_EQ(i, 24u);
    EXPECT_EQ(source->count(), i);
  }
}

TEST(ConvertImages, ThreadsDoNotChangeTheDatabase) {
  TemporaryFolder folder;
  testing::WritePictures(folder / "set", 20);
  const ImageList list = FolderList(folder / "set");
  ImageConversion how;
  how.shorter_side = 10;
  how.shuffle = true;
  std::string files[2];
  for (const int threads : {1, 2, 7}) {
    how.threads = threads;
    const std::string name = folder / ("db" + std::to_string(threads));
    Convert(list, how, {.database = name, .parts = ParseSplit("train:0.75,val:0.25"), .seed = 5});
    const std::string now[2] = {ReadFile(name + "_train_lmdb/data.mdb"), ReadFile(name + "_val_lmdb/data.mdb")};
    for (int part = 0; part < 2; ++part) {
      ASSERT_FALSE(now[part].empty());
      EXPECT_TRUE(threads == 1 || now[part] == files[part]) << threads;
      files[part] = now[part];
    }
    EXPECT_EQ(ReadFile(name + "_labels.txt"), "cat\ndog\n");
  }
}

TEST(ConvertImages, ShufflesAndSplitsBySeed) {
  TemporaryFolder folder;
  testing::WritePictures(folder / "set", 20);
  const ImageList list = FolderList(folder / "set");
  ImageConversion how;
  how.shuffle = true;
  const auto convert = [&](const std::string& name, uint64_t seed) {
    Convert(list, how, {.database = folder / name, .parts = ParseSplit("a:0.5,b:0.3,c:0.2"), .seed = seed});
    return ContentOf(folder / (name + "_a_lmdb")) + ContentOf(folder / (name + "_b_lmdb"));
  };
  EXPECT_EQ(convert("one", 1), convert("again", 1));
  EXPECT_NE(convert("two", 2), ContentOf(folder / "one_a_lmdb") + ContentOf(folder / "one_b_lmdb"));
  std::multiset<std::string> paths;
  const int per_class[] = {10, 6, 4};
  for (int part = 0; part < 3; ++part) {
    const auto source = OpenRecordSource(folder / (std::string("one_") + "abc"[part] + "_lmdb"));
    ASSERT_EQ(source->count(), 2u * per_class[part]);
    int cats = 0, changes = 0;
    for (uint64_t i = 0; i < source->count(); ++i) {
      paths.insert(source->Key(i).substr(9));
      EXPECT_EQ(source->Key(i).substr(0, 9), testing::KeyOf(static_cast<int>(i)) + "_");
      cats += DatumOf(*source, i).label() == 0;
      changes += i > 0 && DatumOf(*source, i).label() != DatumOf(*source, i - 1).label();
    }
    EXPECT_EQ(cats, per_class[part]);
    EXPECT_GT(changes, 1);
  }
  EXPECT_EQ(std::set<std::string>(paths.begin(), paths.end()).size(), 40u);
}

TEST(ConvertImages, StoresEncodedImagesAsAsked) {
  TemporaryFolder folder;
  testing::WritePictures(folder / "set", 1);
  const ImageList list = FolderList(folder / "set");
  ImageConversion how;
  how.encoded = true;
  Convert(list, how, {.database = folder / "same"});
  const auto same = OpenRecordSource(folder / "same");
  EXPECT_EQ(DatumOf(*same, 0).data(), ReadFile(folder / "set/cat/0.jpg"));
  EXPECT_EQ(DatumOf(*same, 1).data(), ReadFile(folder / "set/dog/0.png"));
  EXPECT_FALSE(DatumOf(*same, 0).has_height());

  how.format = ImageFormat::kPng;
  Convert(list, how, {.database = folder / "png"});
  const auto png = OpenRecordSource(folder / "png");
  Image from_jpeg, from_png;
  const std::string jpeg = ReadFile(folder / "set/cat/0.jpg"), stored = DatumOf(*png, 0).data();
  ASSERT_EQ(DecodeImage({reinterpret_cast<const uint8_t*>(jpeg.data()), jpeg.size()}, {}, &from_jpeg), "");
  ASSERT_EQ(DecodeImage({reinterpret_cast<const uint8_t*>(stored.data()), stored.size()}, {}, &from_png), "");
  EXPECT_EQ(from_jpeg.pixels, from_png.pixels);
  EXPECT_EQ(DatumOf(*png, 1).data(), ReadFile(folder / "set/dog/0.png"));

  how.format = ImageFormat::kUnknown;
  how.gray = true;
  how.shorter_side = 8;
  Convert(list, how, {.database = folder / "gray"});
  const auto gray = OpenRecordSource(folder / "gray");
  for (uint64_t i = 0; i < 2; ++i) {
    const std::string data = DatumOf(*gray, i).data();
    ImageInfo info;
    ASSERT_EQ(ReadImageInfo({reinterpret_cast<const uint8_t*>(data.data()), data.size()}, &info), "");
    EXPECT_EQ(info.channels, 1);
    EXPECT_EQ(std::min(info.height, info.width), 8);
    EXPECT_EQ(info.format, i == 0 ? ImageFormat::kJpeg : ImageFormat::kPng);
  }
}

TEST(ConvertImages, WritesSeveralLabels) {
  TemporaryFolder folder;
  testing::WritePictures(folder / "set", 4);
  std::string text;
  for (int i = 0; i < 4; ++i) {
    const std::string number = std::to_string(i);
    text += "cat/" + number + ".jpg " + number + " 0.5\ndog/" + number + ".png -" + number + " 1e3\n";
  }
  WriteFile(folder / "list.txt", text);
  const ImageList list = ReadImageList(folder / "list.txt", folder / "set", 2);
  for (const bool encoded : {false, true}) {
    ImageConversion how;
    how.shuffle = true;
    how.encoded = encoded;
    how.shorter_side = 8;
    const std::string name = folder / (encoded ? "encoded" : "raw");
    Convert(list, how, {.database = name, .parts = ParseSplit("a:0.75,b:0.25")});
    std::set<std::string> keys;
    for (const char* part : {"_a_lmdb", "_b_lmdb"}) {
      const auto source = OpenRecordSource(name + part);
      EXPECT_EQ(source->count(), part[1] == 'a' ? 6u : 2u);
      for (uint64_t i = 0; i < source->count(); ++i) {
        const std::string key = source->Key(i).substr(9);
        const Datum datum = DatumOf(*source, i);
        const float number = static_cast<float>(key[4] - '0');
        EXPECT_FALSE(datum.has_label());
        ASSERT_EQ(datum.labels_size(), 2) << key;
        EXPECT_EQ(datum.labels(0), key[0] == 'c' ? number : -number);
        EXPECT_EQ(datum.labels(1), key[0] == 'c' ? 0.5f : 1000);
        keys.insert(key);
      }
    }
    EXPECT_EQ(keys.size(), 8u);
  }
  EXPECT_EQ(testing::Listing(folder.path()), "encoded_a_lmdb encoded_b_lmdb list.txt raw_a_lmdb raw_b_lmdb set");
}

class BrokenImages : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::WritePictures(folder_ / "set", 3);
    const std::string jpeg = ReadFile(folder_ / "set/cat/1.jpg"), png = ReadFile(folder_ / "set/dog/1.png");
    WriteFile(folder_ / "set/cat/1.jpg", jpeg.substr(0, jpeg.size() / 2));
    WriteFile(folder_ / "set/dog/1.png", png.substr(0, png.size() - 20));
    WriteFile(folder_ / "set/cat/empty.jpg", "");
    WriteFile(folder_ / "set/cat/text.jpg", "no image at all");
    std::filesystem::create_directory(folder_ / "set/list");
    WriteFile(folder_ / "list.txt",
              "cat/0.jpg 0\ncat/1.jpg 0\ncat/2.jpg 0\ndog/0.png 1\ndog/1.png 1\ndog/absent.png 1\n"
              "cat/empty.jpg 0\ncat/text.jpg 0\nlist 1\ndog/2.png 1\n");
  }
  TemporaryFolder folder_;
};

TEST_F(BrokenImages, AreReportedByPathAndLeftOut) {
  for (const bool encoded : {false, true}) {
    ImageConversion how;
    how.encoded = encoded;
    SilentProgress progress;
    const std::string name = folder_ / (encoded ? "encoded" : "raw");
    const ImagesConverted done =
        ConvertImages(ReadImageList(folder_ / "list.txt", folder_ / "set"), how, {.database = name}, &progress.line);
    EXPECT_EQ(done.records, 4);
    EXPECT_EQ(done.broken, 6);
    for (const char* path : {"cat/1.jpg", "dog/1.png", "dog/absent.png", "cat/empty.jpg", "cat/text.jpg", "set/list"}) {
      EXPECT_NE(progress.text.find(path), std::string::npos) << path << " not in " << progress.text;
    }
    const auto source = OpenRecordSource(name);
    EXPECT_EQ(source->Key(1), "00000002_cat/2.jpg");  // the line's number, as in Caffe
    EXPECT_EQ(source->Key(3), "00000009_dog/2.png");
  }
}

TEST_F(BrokenImages, StripsThatWouldBecomeEnormousAreLeftOut) {
  ImageConversion how;
  how.shorter_side = 4000;
  WriteFile(folder_ / "set/dog/strip.png", testing::Png(testing::Photograph(1, 40000)));
  WriteFile(folder_ / "list.txt", "dog/strip.png 0\ncat/0.jpg 0\n");
  SilentProgress progress;
  const ImagesConverted done = ConvertImages(ReadImageList(folder_ / "list.txt", folder_ / "set"), how,
                                             {.database = folder_ / "db"}, &progress.line);
  EXPECT_EQ(done.records, 1);
  EXPECT_NE(progress.text.find("dog/strip.png\" (" + folder_ / "list.txt" +
                               ":1) is 1x40000, which would be resized to 4000x160000000"),
            std::string::npos)
      << progress.text;
}

TEST(ConvertImages, FoldersMayHoldLinks) {
  TemporaryFolder folder;
  testing::WritePictures(folder / "real", 2);
  std::filesystem::create_directory(folder / "set");
  std::filesystem::create_directory_symlink("../real/cat", folder / "set/cat");
  std::filesystem::create_directory_symlink("../real/dog", folder / "set/dog");
  std::filesystem::create_directory_symlink("..", folder / "real/cat/up");
  const ImageList list = FolderList(folder / "set");
  ASSERT_EQ(list.entries.size(), 6u) << "with those of dog behind the link in cat";
  EXPECT_EQ(list.entries[0].path, "cat/0.jpg");
  EXPECT_EQ(list.entries[2].path, "cat/up/dog/0.png");
  EXPECT_EQ(ImagesBelow(folder / "set").size(), 6u);
}

TEST_F(BrokenImages, StopTheConversionIfAsked) {
  ImageConversion how;
  how.broken = ImageConversion::Broken::kFail;
  const ImageList list = ReadImageList(folder_ / "list.txt", folder_ / "set");
  for (const int threads : {1, 4}) {
    how.threads = threads;
    ExpectThrows<UserError>([&] { Convert(list, how, {.database = folder_ / "db"}); }, {"cat/1.jpg", "nothing"});
    EXPECT_EQ(testing::Listing(folder_.path()), "list.txt set");
  }
}

TEST_F(BrokenImages, AloneMakeNoDatabase) {
  WriteFile(folder_ / "list.txt", "cat/1.jpg 0\n");
  ExpectThrows<UserError>(
      [&] { Convert(ReadImageList(folder_ / "list.txt", folder_ / "set"), {}, {.database = folder_ / "db"}); },
      {"none of the 1 images"});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "db"));
}

TEST(ConvertImages, WhatMayNotBeReadIsNotSaidToBeAbsent) {
  TemporaryFolder folder;
  chmod(folder.path().c_str(), 0777);
  testing::WritePictures(folder / "set", 1);
  WriteFile(folder / "list", "cat/0.jpg 0\n");
  chmod((folder / "set").c_str(), 0);
  const int status = testing::InUnprivilegedChild([&] {
    SilentProgress progress;
    try {
      ConvertImages(ReadImageList(folder / "list", folder / "set"), {}, {.database = folder / "db"}, &progress.line);
    } catch (const UserError& error) {
      const std::string said = error.what();
      return said.find("none of the 1 images") != std::string::npos && said.find("no file") == std::string::npos ? 0
                                                                                                                 : 1;
    }
    return 2;
  });
  chmod((folder / "set").c_str(), 0700);
  EXPECT_EQ(status, 0);
}

TEST(ConvertImages, MistakesAreUserErrorsAndWriteNothing) {
  TemporaryFolder folder;
  testing::WritePictures(folder / "set", 2);
  const ImageList list = FolderList(folder / "set");
  ImageConversion half, both, sizes;
  half.resize_height = 10;
  both.resize_height = both.resize_width = both.shorter_side = 10;
  sizes.check_size = true;
  const auto expect = [&](const ImageConversion& how, const std::vector<std::string>& parts) {
    ExpectThrows<UserError>([&] { Convert(list, how, {.database = folder / "db"}); }, parts);
  };
  expect(half, {"--resize_width"});
  expect(both, {"--shorter_side"});
  expect(sizes, {"3x21x30", "3x20x30", "cat/1.jpg", "--resize_height"});
  EXPECT_EQ(testing::Listing(folder.path()), "set");
  sizes.resize_height = sizes.resize_width = 5;
  Convert(list, sizes, {.database = folder / "db"});
}

}  // namespace
}  // namespace crema
