// Weights in HDF5: ReadWeights on .caffemodel.h5.
#include <gtest/gtest.h>

#include "crema/files.h"
#include "crema/net.h"
#include "data/data_testing.h"
#include "hdf5/hdf5_writer.h"

namespace crema {
namespace {

using testing::ExpectThrows;
using testing::Hdf5Dataset;
using testing::Ramp;
using testing::WriteHdf5;

class Hdf5WeightsTest : public testing::Hdf5Test {
 protected:
  std::vector<LayerWeights> Read(const std::vector<Hdf5Dataset>& datasets,
                                 const std::vector<std::string>& groups = {}) const {
    WriteHdf5(folder_ / "w.caffemodel.h5", datasets, groups);
    return ReadWeights(folder_ / "w.caffemodel.h5");
  }
};

TEST_F(Hdf5WeightsTest, BlobsOfEveryLayer) {
  std::vector<Hdf5Dataset> datasets = {{"data/ip/0", {2, 3}, Ramp(6, 0.5)},
                                       {"data/ip/1", {2}, {7, 8}, Hdf5Dataset::kDouble},
                                       {"data/inception_3a/1x1/0", {1, 1, 1, 2}, {4, 5}},
                                       {"data/inception_3a/0", {1}, {6}},
                                       {"diff/ip/0", {2, 3}, Ramp(6, 100)}};
  for (int i = 0; i < 11; ++i) datasets.push_back({"data/many/" + std::to_string(i), {1}, {i + 0.25}});
  const std::vector<LayerWeights> weights = Read(datasets, {"data/relu"});
  ASSERT_EQ(weights.size(), 4u);
  EXPECT_EQ(weights[0].name, "inception_3a");
  EXPECT_EQ(weights[1].name, "inception_3a/1x1");
  EXPECT_EQ(weights[1].blobs[0].shape, (Shape{1, 1, 1, 2}));
  EXPECT_EQ(weights[2].name, "ip");
  EXPECT_EQ(weights[2].type, "");
  ASSERT_EQ(weights[2].blobs.size(), 2u);
  EXPECT_EQ(weights[2].blobs[0].shape, (Shape{2, 3}));
  EXPECT_EQ(weights[2].blobs[0].data, (std::vector<float>{0.5, 1.5, 2.5, 3.5, 4.5, 5.5}));
  EXPECT_EQ(weights[2].blobs[1].data, (std::vector<float>{7, 8}));
  EXPECT_FALSE(weights[2].blobs[0].legacy_shape);
  // "10" comes behind "9".
  for (int i = 0; i < 11; ++i) EXPECT_EQ(weights[3].blobs[i].data[0], static_cast<float>(i) + 0.25f);
}

// Caffe writes no blobs of layers that share those of others.
TEST_F(Hdf5WeightsTest, LayersThatShareAllParametersAreNotFresh) {
  const std::string layers =
      "layer { name: \"in\" type: \"Input\" top: \"a\" top: \"b\" "
      "input_param { shape { dim: 1 dim: 3 } shape { dim: 1 dim: 3 } } }"
      "layer { name: \"one\" type: \"InnerProduct\" bottom: \"a\" top: \"c\" param { name: \"w\" } "
      "inner_product_param { num_output: 2 bias_term: false } }"
      "layer { name: \"two\" type: \"InnerProduct\" bottom: \"b\" top: \"d\" param { name: \"w\" } "
      "inner_product_param { num_output: 2 bias_term: false } }"
      "layer { name: \"own\" type: \"InnerProduct\" bottom: \"d\" top: \"e\" inner_product_param { num_output: 1 } }";
  Net net(ParseNet(layers, "shared.prototxt"), {});
  const WeightsReport report = net.LoadWeights(Read({{"data/one/0", {2, 3}, Ramp(6)}}, {"data/two"}));
  EXPECT_EQ(report.copied, std::vector<std::string>{"one"});
  EXPECT_EQ(report.fresh, std::vector<std::string>{"own"});
}

TEST_F(Hdf5WeightsTest, OtherFilesAreNamed) {
  const std::string path = folder_ / "w.caffemodel.h5";
  ExpectThrows<UserError>(
      [&] {
        Read({{"iter", {1}, {5}}, {"learned_net", {1}, {0}, Hdf5Dataset::kText}}, {"history"});
      },
      {path, "is the state of a solver", ".caffemodel.h5"});
  ExpectThrows<UserError>(
      [&] {
        Read({{"label", {1}, {5}}}, {"model_weights"});
      },
      {path, "no .caffemodel.h5", "model_weights, label"});
  ExpectThrows<UserError>(
      [&] {
        Read({{"data/ip/1", {1}, {5}}});
      },
      {path, "layer \"ip\"", "no blob 0", "shares", "BINARYPROTO"});
  ExpectThrows<UserError>(
      [&] {
        Read({{"data/ip/0", {1}, {0}, Hdf5Dataset::kText}});
      },
      {path, "data/ip/0", "holds text"});
  ExpectThrows<UserError>([&] { Read({{"data/stray", {1}, {0}}}); }, {path, "holds no layers"});
  EXPECT_TRUE(Read({}, {"data/relu"}).empty());
  Read({{"data/ip/0", {100}, Ramp(100)}});
  const std::string whole = testing::ReadFile(path);
  testing::WriteFile(path, whole.substr(0, whole.size() / 2));
  ExpectThrows<UserError>([&] { ReadWeights(path); }, {path, "cut short"});
}

}  // namespace
}  // namespace crema
