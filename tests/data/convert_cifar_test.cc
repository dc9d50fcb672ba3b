#include "data/convert/convert_cifar.h"

#include <gtest/gtest.h>

#include "data/convert_testing.h"

namespace crema {
namespace {

using testing::DatumOf;
using testing::ExpectThrows;
using testing::SilentProgress;
using testing::WriteFile;

// Images whose planes hold 10 + i, 20 + i and 30 + i behind the label bytes.
std::string Batch(int begin, int count, int label_bytes) {
  std::string file;
  for (int i = begin; i < begin + count; ++i) {
    if (label_bytes == 2) file += static_cast<char>(i % 20);
    file += static_cast<char>(label_bytes == 2 ? i % 100 : i % 10);
    for (int plane = 1; plane <= 3; ++plane) file += std::string(1024, static_cast<char>(10 * plane + i));
  }
  return file;
}

constexpr const char* kNames = "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n";

void WriteCifar10(const TemporaryFolder& folder) {
  std::filesystem::create_directory(folder / "in");
  for (int b = 1; b <= 5; ++b) {
    WriteFile(folder / ("in/data_batch_" + std::to_string(b) + ".bin"), Batch(4 * (b - 1), 4, 1));
  }
  WriteFile(folder / "in/test_batch.bin", Batch(40, 3, 1));
  WriteFile(folder / "in/batches.meta.txt", std::string(kNames) + "\n");
}

std::string Convert(const CifarConversion& how) {
  SilentProgress progress;
  return ConvertCifar(how, &progress.line);
}

TEST(ConvertCifar, WritesWhatCaffeWrites) {
  TemporaryFolder folder;
  WriteCifar10(folder);
  Convert({.input = folder / "in", .output = folder.path()});
  EXPECT_EQ(testing::Listing(folder.path()), "cifar10_labels.txt cifar10_test_lmdb cifar10_train_lmdb in");
  EXPECT_EQ(testing::ReadFile(folder / "cifar10_labels.txt"), kNames);
  const auto train = OpenRecordSource(folder / "cifar10_train_lmdb"),
             test = OpenRecordSource(folder / "cifar10_test_lmdb");
  ASSERT_EQ(train->count(), 20u);
  ASSERT_EQ(test->count(), 3u);
  EXPECT_EQ(train->Key(19), "00019");
  const Datum datum = DatumOf(*train, 17);
  EXPECT_EQ(datum.label(), 7);
  EXPECT_EQ(datum.channels(), 3);
  EXPECT_EQ(datum.height(), 32);
  EXPECT_EQ(datum.data(), std::string(1024, 27) + std::string(1024, 37) + std::string(1024, 47));
  Convert({.input = folder / "in", .output = folder.path(), .bgr = true, .replace = true});
  EXPECT_EQ(DatumOf(*OpenRecordSource(folder / "cifar10_train_lmdb"), 17).data(),
            std::string(1024, 47) + std::string(1024, 37) + std::string(1024, 27));
}

TEST(ConvertCifar, TakesEitherLabelOfCifar100) {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder / "in");
  WriteFile(folder / "in/train.bin", Batch(0, 50, 2));
  WriteFile(folder / "in/test.bin", Batch(0, 5, 2));
  SilentProgress progress;
  ConvertCifar({.input = folder / "in", .output = folder.path()}, &progress.line);
  EXPECT_NE(progress.text.find("in/fine_label_names.txt is not there: classes have numbers only"), std::string::npos);
  EXPECT_EQ(DatumOf(*OpenRecordSource(folder / "cifar100_train_lmdb"), 45).label(), 45);
  Convert({.input = folder / "in", .output = folder.path(), .coarse = true, .replace = true});
  EXPECT_EQ(DatumOf(*OpenRecordSource(folder / "cifar100_train_lmdb"), 45).label(), 5);
}

// Nothing in a file says how many there are to be.
TEST(ConvertCifar, OtherNumbersOfImagesThanTheDataSetsAreTold) {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder / "in");
  const std::string batch = Batch(0, 10000, 1);
  for (int b = 1; b <= 5; ++b) WriteFile(folder / ("in/data_batch_" + std::to_string(b) + ".bin"), batch);
  WriteFile(folder / "in/test_batch.bin", batch);
  WriteFile(folder / "in/batches.meta.txt", kNames);
  SilentProgress whole;
  ConvertCifar({.input = folder / "in", .output = folder.path()}, &whole.line);
  EXPECT_EQ(whole.text, "");
  std::filesystem::resize_file(folder / "in/data_batch_3.bin", 9999 * 3073);
  SilentProgress cut;
  ConvertCifar({.input = folder / "in", .output = folder.path(), .replace = true}, &cut.line);
  EXPECT_NE(cut.text.find("in/data_batch_3.bin\" holds 9999 images, but the data set's file of that name holds 10000"),
            std::string::npos)
      << cut.text;
  EXPECT_EQ(cut.text.find("data_batch_2.bin"), std::string::npos) << cut.text;
  EXPECT_EQ(OpenRecordSource(folder / "cifar10_train_lmdb")->count(), 49999u);
}

TEST(ConvertCifar, MistakesAreUserErrorsAndWriteNothing) {
  TemporaryFolder folder;
  WriteCifar10(folder);
  const auto expect = [&](const CifarConversion& how, const std::vector<std::string>& parts) {
    ExpectThrows<UserError>([&] { Convert(how); }, parts);
    EXPECT_EQ(testing::Listing(folder.path()), "in");
  };
  const CifarConversion how{.input = folder / "in", .output = folder.path()};
  expect({.input = folder.path(), .output = folder.path()}, {"data_batch_1.bin", "train.bin"});
  expect({.input = folder / "in", .output = folder.path(), .coarse = true}, {"--coarse"});
  WriteFile(folder / "in/batches.meta.txt", "airplane\nautomobile\n\n");
  expect(how, {"batches.meta.txt", "names 2 classes", "there are 10"});
  WriteFile(folder / "in/batches.meta.txt", kNames);
  const std::string batch = Batch(0, 4, 1);
  WriteFile(folder / "in/data_batch_3.bin", batch.substr(0, batch.size() - 1));
  expect(how, {"data_batch_3.bin", "3073"});
  std::string labels = batch;
  labels[2 * 3073] = 10;
  WriteFile(folder / "in/data_batch_3.bin", labels);
  expect(how, {"data_batch_3.bin", "image 2", "label 10"});
  std::filesystem::remove(folder / "in/data_batch_3.bin");
  expect(how, {"data_batch_3.bin", "does not exist"});
}

}  // namespace
}  // namespace crema
