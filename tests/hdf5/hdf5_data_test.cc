// The layer HDF5Data, and the files it reads.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "crema/files.h"
#include "data/data_testing.h"
#include "data/loaders/hdf5_loader.h"
#include "data/loaders/prefetcher.h"
#include "data/source_driver.h"
#include "distributed/training/data_fingerprint.h"
#include "hdf5/hdf5_writer.h"

namespace crema {
namespace {

using testing::ExpectThrows;
using testing::Hdf5Dataset;
using testing::Ramp;
using testing::SourceDriver;
using testing::WriteHdf5;

class Hdf5DataTest : public testing::Hdf5Test {
 protected:
  // Row r of all has data 10 r .. 10 r + 5 (2 x 3 values), label r and weight r + 0.5; in files of these many rows.
  void WriteFiles(const std::vector<int>& rows) const {
    std::string list;
    int64_t first = 0;
    for (size_t f = 0; f < rows.size(); ++f) {
      std::vector<double> data, label, weight;
      for (int64_t r = first; r < first + rows[f]; ++r) {
        for (int i = 0; i < 6; ++i) data.push_back(static_cast<double>(10 * r + i));
        label.push_back(static_cast<double>(r));
        weight.push_back(static_cast<double>(r) + 0.5);
      }
      const std::string name = std::to_string(f) + ".h5";
      WriteHdf5(folder_ / name, {{"data", {rows[f], 2, 3}, data, Hdf5Dataset::kFloat, f % 2 ? 2 : 0},
                                 {"label", {rows[f]}, label, Hdf5Dataset::kInt64},
                                 {"weight", {rows[f], 1}, weight, Hdf5Dataset::kDouble}});
      list += (f == 1 ? "  " + (folder_ / name) + " \r\n\n" : name + "\n");
      first += rows[f];
    }
    testing::WriteFile(folder_ / "list.txt", list);
  }

  std::string Layer(const std::string& fields = "batch_size: 4",
                    const std::string& tops = "top: \"data\" top: \"label\" top: \"weight\"",
                    const std::string& rest = "") const {
    return tops + " hdf5_data_param { source: \"" + folder_ / "list.txt" + "\" " + fields + " } " + rest;
  }

  static SourceDriver Driver(const std::string& text, std::vector<std::pair<std::string, Shape>> shapes = {}) {
    return SourceDriver("HDF5Data", text, TRAIN, std::move(shapes));
  }

  static void ExpectRow(SourceDriver& driver, int i, int64_t row) {
    for (int j = 0; j < 6; ++j) EXPECT_EQ(driver.value(0)[i * 6 + j], static_cast<float>(10 * row + j));
    EXPECT_EQ(driver.value(1)[i], static_cast<float>(row));
    EXPECT_EQ(driver.value(2)[i], static_cast<float>(row) + 0.5f);
  }
};

TEST_F(Hdf5DataTest, DeliversFilesAndRowsInOrder) {
  WriteFiles({5, 3, 6});
  SourceDriver driver = Driver(Layer());
  EXPECT_EQ(driver.setup().top_specs()[0].shape, (Shape{4, 2, 3}));
  EXPECT_EQ(driver.setup().top_specs()[1].shape, (Shape{4}));
  EXPECT_EQ(driver.setup().top_specs()[2].shape, (Shape{4, 1}));
  EXPECT_TRUE(driver.setup().is_source());
  EXPECT_TRUE(driver.setup().warnings().empty());
  for (int k = 0; k < 9; ++k) {
    driver.Forward();
    for (int i = 0; i < 4; ++i) ExpectRow(driver, i, (4 * k + i) % 14);
    EXPECT_EQ(driver.layer().position(), static_cast<uint64_t>(4 * k + 4));
  }
  // Batch 8 began with row 4 of the first file.
  EXPECT_EQ(driver.layer().DescribeItem(0), "row 4 of " + folder_ / "0.h5");
  EXPECT_EQ(driver.layer().DescribeItem(2), "row 1 of " + folder_ / "1.h5");
  driver.Forward(true);
  ExpectRow(driver, 0, 4);
  EXPECT_NE(driver.layer().data_supply().remedy.find("compression"), std::string::npos);
}

TEST_F(Hdf5DataTest, OneTopAloneAndLargeBatches) {
  WriteFiles({2, 3});
  SourceDriver one = Driver(Layer("batch_size: 13", "top: \"weight\""));
  EXPECT_EQ(one.setup().top_specs()[0].shape, (Shape{13, 1}));
  for (int k = 0; k < 2; ++k) {
    one.Forward();
    for (int i = 0; i < 13; ++i) EXPECT_EQ(one.value(0)[i], static_cast<float>((13 * k + i) % 5) + 0.5f);
  }
}

TEST_F(Hdf5DataTest, ShufflesFilesAndRowsWithinThem) {
  const std::vector<int> sizes = {5, 7, 1, 9};  // 22 rows
  WriteFiles(sizes);
  SourceDriver driver = Driver(Layer("batch_size: 11 shuffle: true"));
  std::set<std::vector<int>> orders, file_orders;
  for (int epoch = 0; epoch < 6; ++epoch) {
    std::vector<int> order;
    for (int half = 0; half < 2; ++half) {
      driver.Forward();
      for (int i = 0; i < 11; ++i) {
        order.push_back(static_cast<int>(driver.value(1)[i]));
        ExpectRow(driver, i, order.back());
      }
    }
    std::vector<int> files;
    for (const int row : order) {
      const int file = row < 5 ? 0 : row < 12 ? 1 : row < 13 ? 2 : 3;
      if (files.empty() || files.back() != file) files.push_back(file);
    }
    EXPECT_EQ(files.size(), 4u) << "a file's rows stay together";
    file_orders.insert(files);
    orders.insert(order);
    std::sort(order.begin(), order.end());
    for (int i = 0; i < 22; ++i) EXPECT_EQ(order[i], i);
  }
  EXPECT_EQ(orders.size(), 6u);
  EXPECT_GT(file_orders.size(), 2u);
}

TEST_F(Hdf5DataTest, ResumesAndTakesTurnsWithAnyNumberOfThreads) {
  WriteFiles({5, 7, 1, 9});
  const std::string text = Layer("batch_size: 4 shuffle: true");
  SourceDriver whole = Driver(text);
  std::vector<std::vector<float>> batches;
  for (int k = 0; k < 14; ++k) {
    whole.Forward();
    batches.push_back(whole.value(0));
  }
  SourceDriver other_seed = Driver(text);
  other_seed.Forward(false, 2);
  EXPECT_NE(other_seed.value(0), batches[0]);
  SourceDriver resumed = Driver(text);
  resumed.layer().set_position(6 * 4);
  for (int k = 6; k < 10; ++k) {
    resumed.Forward();
    EXPECT_EQ(resumed.value(0), batches[k]);
  }
  EXPECT_EQ(resumed.layer().next_batch(), 10u);
  resumed.layer().set_position(4);
  resumed.Forward();
  EXPECT_EQ(resumed.value(0), batches[1]);
  for (int rank = 0; rank < 3; ++rank) {
    SourceDriver worker = Driver(text);
    worker.layer().ReadBatches({static_cast<uint64_t>(rank), 1, 3});
    for (int k = rank; k < 14; k += 3) {
      worker.Forward();
      EXPECT_EQ(worker.value(0), batches[k]);
    }
  }
  const Hdf5Files files = LookAtHdf5Files(folder_ / "list.txt", {"data", "label"});
  SampleOrder order;
  order.seed = 1;
  order.shuffle = true;
  for (const int threads : {1, 5}) {
    Prefetcher prefetcher(std::make_shared<Hdf5Loader>(files, order), {.batch = 4, .ahead = 3, .threads = threads});
    for (int k = 0; k < 14; ++k) {
      const Batch& batch = prefetcher.Next();
      for (int i = 0; i < 4; ++i) EXPECT_EQ(batch.data[i * 7 + 5], batches[k][i * 6 + 5]);
    }
  }
}

// Named by a top of the same name, wherever it lies.
TEST_F(Hdf5DataTest, DatasetsInGroups) {
  WriteHdf5(folder_ / "g.h5", {{"train/x", {3, 2}, Ramp(6)}, {"train/y", {3}, Ramp(3)}});
  testing::WriteFile(folder_ / "list.txt", "g.h5\n");
  SourceDriver driver = Driver(Layer("batch_size: 3", "top: \"train/x\" top: \"train/y\""));
  driver.Forward();
  EXPECT_EQ(driver.value(0), (std::vector<float>{0, 1, 2, 3, 4, 5}));
}

TEST_F(Hdf5DataTest, PathsAreFoundInTheWorkingDirectoryFirst) {
  WriteFiles({2, 2});
  const std::vector<std::string> paths = ReadHdf5List(folder_ / "list.txt");
  EXPECT_EQ(paths, (std::vector<std::string>{folder_ / "0.h5", folder_ / "1.h5"}));
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::create_directory(folder_ / "here");
  WriteHdf5(folder_ / "here/0.h5", {});
  std::filesystem::current_path(folder_ / "here");
  const std::vector<std::string> here = ReadHdf5List(folder_ / "list.txt");
  std::filesystem::current_path(before);
  EXPECT_EQ(here[0], "0.h5");
}

TEST_F(Hdf5DataTest, ShapesFromTheCommandLine) {
  // Without the files.
  const std::string text = Layer("batch_size: 4", "top: \"data\" top: \"label\"");
  const SourceDriver given = Driver(text, {{"data", Shape{8, 2, 3}}, {"label", Shape{8}}});
  EXPECT_EQ(given.setup().top_specs()[0].shape, (Shape{8, 2, 3}));
  EXPECT_EQ(given.setup().top_specs()[1].shape, (Shape{8}));
  ExpectThrows<UserError>(
      [&] {
        Driver(text, {{"data", Shape{8, 2, 3}}});
      },
      {"hdf5_data_param.source", "does not exist here", "--shape=data=4,... --shape=label=4,..."});
  ExpectThrows<UserError>(
      [&] {
        Driver(text, {{"data", Shape{8, 2}}, {"label", Shape{4}}});
      },
      {":top", "\"label\" cannot be 4 beside \"data\" of 8x2"});
  ExpectThrows<UserError>([&] { Driver(text, {{"data", Shape{}}, {"label", Shape{4}}}); }, {":top", "scalar"});
  // They must be those of the files when the net runs.
  WriteFiles({9});
  SourceDriver right = Driver(text, {{"data", Shape{8, 2, 3}}, {"label", Shape{8}}});
  right.Forward();
  EXPECT_EQ(right.value(1)[7], 7);
  SourceDriver wrong = Driver(text, {{"data", Shape{8, 3, 2}}, {"label", Shape{8}}});
  ExpectThrows<UserError>([&] { wrong.Forward(); },
                          {"hdf5_data_param.source", "layer \"in\" (HDF5Data)", "rows of 3x2", "are 2x3", "--shape"});
}

TEST_F(Hdf5DataTest, MistakesAreNamedWithFileAndDataset) {
  const auto expect = [&](const std::string& text, const std::vector<std::string>& parts) {
    SCOPED_TRACE(text);
    ExpectThrows<UserError>([&] { Driver(text); }, parts);
  };
  WriteFiles({4, 4});
  expect("top: \"d\" hdf5_data_param { batch_size: 4 }", {"net.prototxt:hdf5_data_param", "source"});
  expect(Layer(""), {"hdf5_data_param.batch_size", "at least 1"});
  expect(Layer("batch_size: 4", "top: \"data\"", "transform_param { scale: 0.5 }"),
         {"net.prototxt:transform_param", "takes no transform_param", "Scale"});
  expect(Layer("batch_size: 4", "top: \"labels\""),
         {"hdf5_data_param.source", folder_ / "0.h5", "no dataset \"labels\"", "did you mean \"label\"?"});
  const auto with = [&](const std::vector<Hdf5Dataset>& datasets) {
    WriteHdf5(folder_ / "1.h5", datasets);
    return Layer("batch_size: 4", "top: \"data\" top: \"label\"");
  };
  expect(with({{"data", {4, 2, 3}, Ramp(24)}}), {"source", folder_ / "1.h5", "no dataset \"label\""});
  expect(with({{"data", {4, 2, 3}, Ramp(24)}, {"label", {5}, Ramp(5)}}),
         {folder_ / "1.h5", "\"label\" has 5 rows", "\"data\" has 4"});
  expect(with({{"data", {4, 3, 2}, Ramp(24)}, {"label", {4}, Ramp(4)}}),
         {folder_ / "1.h5", "\"data\" has rows of 3x2", folder_ / "0.h5", "2x3"});
  expect(with({{"data", {4, 2, 3}, Ramp(24)}, {"label", {}, {1}}}), {"\"label\" is a single value"});
  expect(with({{"data", {4, 2, 0}, {}}, {"label", {4}, Ramp(4)}}), {"\"data\" is 4x2x0", "empty"});
  expect(with({{"data", {4, 2, 3}, Ramp(24)}, {"label", {4}, Ramp(4), Hdf5Dataset::kText}}), {"\"label\" holds text"});
  testing::WriteFile(folder_ / "1.h5", testing::ReadFile(folder_ / "0.h5").substr(0, 700));
  expect(Layer(), {"hdf5_data_param.source", folder_ / "1.h5", "cut short or damaged"});
  testing::WriteFile(folder_ / "list.txt", "0.h5\nnowhere.h5\n1.h5\nnor.h5\n");
  expect(Layer(), {folder_ / "list.txt" + ":2", "\"nowhere.h5\"", folder_ / "list.txt" + ":4", "beside the list"});
  testing::WriteFile(folder_ / "list.txt", "\n\n");
  expect(Layer(), {"hdf5_data_param.source", "names no file"});
  std::filesystem::copy_file(folder_ / "0.h5", folder_ / "list.txt", std::filesystem::copy_options::overwrite_existing);
  expect(Layer(), {"hdf5_data_param.source", "is an HDF5 file; expected a text file"});
  std::filesystem::remove(folder_ / "list.txt");
  expect(Layer(), {"hdf5_data_param.source", "does not exist here", "--shape=data=4"});
  std::filesystem::create_directory(folder_ / "list.txt");
  expect(Layer(), {"hdf5_data_param.source", "is a folder"});
}

TEST_F(Hdf5DataTest, FilesWithoutRowsAreLeftOut) {
  WriteFiles({0, 2, 0, 1});
  SourceDriver driver = Driver(Layer("batch_size: 7 shuffle: true"));
  driver.Forward();
  std::map<float, int> seen;
  for (const float label : driver.value(1)) ++seen[label];
  EXPECT_EQ(seen.size(), 3u);
  WriteFiles({0, 0});
  ExpectThrows<UserError>([&] { Driver(Layer()); }, {"hdf5_data_param.source", "without rows"});
}

TEST_F(Hdf5DataTest, FilesThatChangeWhileTheyAreReadAreNoticed) {
  WriteFiles({4, 4});
  SourceDriver driver = Driver(Layer("batch_size: 4"));
  WriteHdf5(folder_ / "0.h5", {{"data", {3, 2, 3}, Ramp(18)}, {"label", {3}, Ramp(3)}, {"weight", {3, 1}, Ramp(3)}});
  ExpectThrows<UserError>([&] { driver.Forward(); }, {"net.prototxt:hdf5_data_param.source", "layer \"in\" (HDF5Data)",
                                                      folder_ / "0.h5", "\"data\" is no longer 4x2x3"});
}

TEST_F(Hdf5DataTest, WorkersTellCopiesApart) {
  WriteFiles({5, 3});
  NetParameter net;
  *net.add_layer() = testing::ParseSource("HDF5Data", Layer());
  EXPECT_EQ(DataSourceOf(net.layer(0)), folder_ / "list.txt");
  const auto fingerprint = [&] { return FingerprintData(net, {}).at(0).value; };
  const uint64_t original = fingerprint();
  EXPECT_EQ(fingerprint(), original);
  WriteFiles({3, 5});
  EXPECT_NE(fingerprint(), original);
  WriteFiles({5, 3});
  // The same values in another form, elsewhere.
  std::filesystem::create_directory(folder_ / "copy");
  for (const char* name : {"list.txt", "0.h5", "1.h5"}) std::filesystem::copy(folder_ / name, folder_ / "copy");
  testing::WriteFile(folder_ / "copy/list.txt", "0.h5\n1.h5\n");
  ReadDataFrom(folder_ / "copy", &net);
  EXPECT_EQ(DataSourceOf(net.layer(0)), folder_ / "copy/list.txt");
  EXPECT_EQ(fingerprint(), original);
  WriteHdf5(folder_ / "copy/1.h5",
            {{"data", {3, 2, 3}, Ramp(18)}, {"label", {3}, Ramp(3)}, {"weight", {3, 1}, Ramp(3)}});
  EXPECT_NE(fingerprint(), original);
  ReadDataFrom(folder_ / "other.txt", &net);
  EXPECT_EQ(DataSourceOf(net.layer(0)), folder_ / "other.txt");
}

}  // namespace
}  // namespace crema
