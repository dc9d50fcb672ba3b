#include "data/convert/convert_mnist.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <csignal>
#include <cstdlib>
#include <map>
#include <set>

#include "data/convert_testing.h"
#include "data/data_testing.h"
#include "data/databases/datum.h"
#include "data/databases/record_source.h"
#include "data/files/idx_file.h"

namespace crema {
namespace {

using testing::DatumOf;
using testing::ExpectThrows;
using testing::WriteFile;

std::string Number(uint32_t n) {
  return {static_cast<char>(n >> 24), static_cast<char>(n >> 16), static_cast<char>(n >> 8), static_cast<char>(n)};
}

std::string Images(int count, int height, int width) {
  std::string file = Number(2051) + Number(count) + Number(height) + Number(width);
  for (int i = 0; i < count; ++i) file += testing::ImageDatum(1, height, width, i).data();
  return file;
}

std::string Labels(int count) {
  std::string file = Number(2049) + Number(count);
  for (int i = 0; i < count; ++i) file += static_cast<char>(i % 10);
  return file;
}

void WriteGz(const std::string& path, const std::string& content) {
  gzFile file = gzopen(path.c_str(), "wb");
  ASSERT_EQ(gzwrite(file, content.data(), static_cast<unsigned>(content.size())), static_cast<int>(content.size()));
  gzclose(file);
}

TEST(ConvertMnist, WritesWhatCaffeWrites) {
  TemporaryFolder folder;
  WriteFile(folder / "images", Images(25, 5, 4));
  WriteFile(folder / "labels", Labels(25));
  WriteGz(folder / "images.gz", Images(25, 5, 4));
  WriteGz(folder / "labels.gz", Labels(25));
  for (const std::string ending : {"", ".gz"}) {
    const MnistConversion done =
        ConvertMnist(folder / ("images" + ending), folder / ("labels" + ending), folder / ("db" + ending), false);
    EXPECT_EQ(done.records, 25);
    EXPECT_EQ(done.height, 5);
    EXPECT_EQ(done.width, 4);
    EXPECT_EQ(done.min_label, 0);
    EXPECT_EQ(done.max_label, 9);
    const auto source = OpenRecordSource(folder / ("db" + ending));
    ASSERT_EQ(source->count(), 25u);
    for (int i = 0; i < 25; ++i) {
      EXPECT_EQ(source->Key(i), testing::KeyOf(i));
      const Datum datum = DatumOf(*source, i);
      EXPECT_EQ(datum.channels(), 1);
      EXPECT_EQ(datum.height(), 5);
      EXPECT_EQ(datum.width(), 4);
      EXPECT_EQ(datum.label(), i % 10);
      EXPECT_EQ(datum.data(), testing::ImageDatum(1, 5, 4, i).data());
      EXPECT_FALSE(datum.has_encoded());
      EXPECT_EQ(datum.float_data_size(), 0);
    }
  }
}

TEST(ConvertMnist, MistakesAreUserErrorsAndWriteNothing) {
  TemporaryFolder folder;
  const std::string images = Images(25, 5, 4), labels = Labels(25);
  WriteFile(folder / "images", images);
  WriteFile(folder / "labels", labels);
  const auto expect = [&](const std::string& bad_images, const std::string& bad_labels,
                          const std::vector<std::string>& parts) {
    WriteFile(folder / "i", bad_images);
    WriteFile(folder / "l", bad_labels);
    ExpectThrows<UserError>([&] { ConvertMnist(folder / "i", folder / "l", folder / "db", false); }, parts);
  };
  expect(labels, images, {"2049", "2051", "swapped"});
  expect("", labels, {"ends in its header"});
  expect(images.substr(0, 10), labels, {"ends in its header"});
  expect("\x89PNG\r\n\x1a\n", labels, {"is no IDX file", "2051"});
  expect(Number(0x0D03) + images.substr(4), labels, {"holds floats"});
  expect(images.substr(0, images.size() - 1), labels, {"515 bytes", "take 516"});
  expect(images + "x", labels, {"517 bytes", "take 516"});
  expect(images, Labels(24), {"25 images", "24 labels"});
  expect(Number(2051) + Number(0) + Number(5) + Number(4), Number(2049) + Number(0), {"holds no images"});
  expect(Number(2051) + Number(1) + Number(0) + Number(4), Labels(1), {"extent 1"});
  expect(Number(2051) + Number(1) + Number(0xffffffff) + Number(0xffffffff), Labels(1), {"extent 1"});
  ExpectThrows<UserError>([&] { ConvertMnist(folder / "none", folder / "l", folder / "db", false); },
                          {"none", "images", "does not exist"});
  ExpectThrows<UserError>([&] { ConvertMnist(folder.path(), folder / "l", folder / "db", false); }, {"is a folder"});
  EXPECT_EQ(testing::Listing(folder.path()), "i images l labels");
  ConvertMnist(folder / "images", folder / "labels", folder / "db", false);
  ExpectThrows<UserError>([&] { ConvertMnist(folder / "images", folder / "labels", folder / "db", false); },
                          {"exists already"});
  EXPECT_EQ(ConvertMnist(folder / "images", folder / "labels", folder / "db", true).records, 25);
}

TEST(ConvertMnist, PairsOfImages) {
  TemporaryFolder folder;
  WriteFile(folder / "images", Images(25, 5, 4));
  WriteFile(folder / "labels", Labels(25));
  EXPECT_EQ(ConvertMnistPairs(folder / "images", folder / "labels", folder / "db", false, 3).records, 25);
  std::map<std::string, int> class_of;
  for (int i = 0; i < 25; ++i) class_of[testing::ImageDatum(1, 5, 4, i).data()] = i % 10;
  ASSERT_EQ(class_of.size(), 25u);
  const auto source = OpenRecordSource(folder / "db");
  ASSERT_EQ(source->count(), 25u);
  std::set<std::string> pairs;
  for (int i = 0; i < 25; ++i) {
    EXPECT_EQ(source->Key(i), testing::KeyOf(i));
    const Datum datum = DatumOf(*source, i);
    EXPECT_EQ(datum.channels(), 2);
    ASSERT_EQ(datum.data().size(), 40u);
    const int first = class_of.at(datum.data().substr(0, 20)), second = class_of.at(datum.data().substr(20));
    EXPECT_EQ(datum.label(), first == second ? 1 : 0);
    pairs.insert(datum.data());
  }
  EXPECT_GT(pairs.size(), 20u);
  const auto again = [&](uint64_t seed) {
    ConvertMnistPairs(folder / "images", folder / "labels", folder / "again", true, seed);
    return DatumOf(*OpenRecordSource(folder / "again"), 7).data();
  };
  EXPECT_EQ(again(3), DatumOf(*source, 7).data());
  EXPECT_NE(again(4), again(3));
  ExpectThrows<UserError>([&] { ConvertMnistPairs(folder / "images", folder / "none", folder / "other", false, 3); },
                          {"none", "labels"});
}

TEST(ConvertMnist, PairsOfFewerImagesThanTheHeaderSays) {
  TemporaryFolder folder;
  WriteGz(folder / "images.gz", Number(2051) + Number(0xffffffff) + Number(16384) + Number(16384));
  WriteGz(folder / "labels.gz", Number(2049) + Number(0xffffffff));
  ExpectThrows<UserError>(
      [&] { ConvertMnistPairs(folder / "images.gz", folder / "labels.gz", folder / "db", false, 1); },
      {"images.gz", "cut short", "0 of 4294967295 images"});
  EXPECT_EQ(testing::Listing(folder.path()), "images.gz labels.gz");
}

TEST(ConvertMnist, CompressedFilesCutShortAtEveryLength) {
  TemporaryFolder folder;
  std::string images = Images(25, 5, 4);
  WriteGz(folder / "images.gz", images);
  WriteFile(folder / "labels", Labels(25));
  const std::string whole = testing::ReadFile(folder / "images.gz");
  for (size_t bytes = 0; bytes < whole.size(); bytes += 3) {
    WriteFile(folder / "cut.gz", whole.substr(0, bytes));
    EXPECT_THROW(ConvertMnist(folder / "cut.gz", folder / "labels", folder / "db", false), UserError) << bytes;
  }
  // One bit changed in the compressed data: the checksum tells.
  for (size_t at = 30; at < whole.size() - 8; at += 7) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 4);
    WriteFile(folder / "flipped.gz", flipped);
    EXPECT_THROW(ConvertMnist(folder / "flipped.gz", folder / "labels", folder / "db", false), UserError) << at;
  }
  WriteGz(folder / "longer.gz", images + "x");
  ExpectThrows<UserError>([&] { ConvertMnist(folder / "longer.gz", folder / "labels", folder / "db", false); },
                          {"goes on behind"});
  EXPECT_EQ(testing::Listing(folder.path()), "cut.gz flipped.gz images.gz labels longer.gz");
}

constexpr char kFashion[] = "/usr/share/datasets/fashion-mnist/";

TEST(ConvertMnist, RealFiles) {
  const std::string images = std::string(kFashion) + "t10k-images-idx3-ubyte.gz";
  if (access(images.c_str(), R_OK) != 0) GTEST_SKIP() << "Fashion-MNIST is not installed under " << kFashion;
  TemporaryFolder folder;
  const std::string labels = std::string(kFashion) + "t10k-labels-idx1-ubyte.gz";
  const MnistConversion done = ConvertMnist(images, labels, folder / "db", false);
  EXPECT_EQ(done.records, 10000);
  EXPECT_EQ(done.height, 28);
  EXPECT_EQ(done.max_label, 9);
  const auto source = OpenRecordSource(folder / "db");
  ASSERT_EQ(source->count(), 10000u);
  int per_class[10] = {};
  for (int i = 0; i < 10000; ++i) ++per_class[DatumOf(*source, i).label()];
  for (const int n : per_class) EXPECT_EQ(n, 1000);
}

struct Outcome {
  int code;
  std::string text;
};

class ConvertMnistProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    if (access(kProgram, X_OK) != 0) GTEST_SKIP() << kProgram << " is not built";
  }

  Outcome Run(const std::string& arguments) {
    const std::string command = std::string(kProgram) + " " + arguments + " >" + (folder_ / "out") + " 2>&1";
    const int status = std::system(command.c_str());
    const std::string text = testing::ReadFile(folder_ / "out");
    std::filesystem::remove(folder_ / "out");
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text};
  }

  static constexpr const char* kProgram = CREMA_BIN_DIR "/convert_mnist_data";
  TemporaryFolder folder_;
};

TEST_F(ConvertMnistProgram, ConvertsAndReports) {
  WriteFile(folder_ / "images", Images(25, 5, 4));
  WriteFile(folder_ / "labels", Labels(25));
  const std::string files = folder_ / "images" + " " + folder_ / "labels" + " " + folder_ / "db";
  Outcome outcome = Run(files);
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("25 records of 1x5x4, labels 0 to 9"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("images/s"), std::string::npos);
  outcome = Run(files);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.text.find("--force"), std::string::npos) << outcome.text;
  for (const std::string flags : {"--force ", "-force ", "--force=true --backend lmdb ", "--backend=lmdb --force "}) {
    EXPECT_EQ(Run(flags + files).code, 0) << flags;
  }
  EXPECT_EQ(Run(files + " --force").code, 0);
}

TEST_F(ConvertMnistProgram, RejectsMistakesOnTheCommandLine) {
  const std::vector<std::pair<std::string, std::string>> cases = {{"--forse a b c", "did you mean \"--force\"?"},
                                                                  {"--backend=leveldb a b c", "db_tool convert"},
                                                                  {"--backend=hdf5 a b c", "expected lmdb"},
                                                                  {"--backend", "needs a value"},
                                                                  {"--force=maybe a b c", "expected true or false"},
                                                                  {"", "got nothing"},
                                                                  {"a b", "got a, b"},
                                                                  {"a b c d", "got a, b, c, d"},
                                                                  {folder_ / "none" + " b c", "does not exist"}};
  for (const auto& [arguments, text] : cases) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_NE(outcome.text.find(text), std::string::npos) << arguments << ": " << outcome.text;
  }
  const Outcome help = Run("--help");
  EXPECT_EQ(help.code, 0);
  EXPECT_NE(help.text.find("examples:"), std::string::npos);
  WriteFile(folder_ / "images", Images(2, 5, 4));
  WriteFile(folder_ / "labels", Labels(2));
  EXPECT_EQ(Run(folder_ / "images" + " " + folder_ / "labels" + " " + folder_ / "no/such/folder/db").code, 1);
}

}  // namespace
}  // namespace crema
