// .weights files: their header, the order of their numbers, and where they end.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "crema/error.h"
#include "darknet/made_net.h"
#include "darknet/weights_file.h"
#include "errors.h"
#include "temporary_folder.h"

namespace crema::darknet {
namespace {

const char kConvolutions[] =
    "[convolutional]\nfilters=2\nactivation=linear\nbatch_normalize=1\n[maxpool]\nsize=2\nstride=2\n"
    "[convolutional]\nfilters=3\nactivation=linear\n";
// 2 biases, scales, means and variances, and 2 x 1 weights; then 3 biases and 3 x 2 weights.
constexpr int64_t kFirst = 10, kAll = 19;

std::vector<float> Counted(int64_t count) {
  std::vector<float> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<float>(i));
  return numbers;
}

std::string WithConvolutions() { return NetSection(1, 4, 4) + kConvolutions; }

std::vector<float> BlobOf(const ImportedNet& imported, const std::string& layer, int blob) {
  for (const LayerParameter& weights : imported.weights.layer()) {
    if (weights.name() == layer) return {weights.blobs(blob).data().begin(), weights.blobs(blob).data().end()};
  }
  return {};
}

using Numbers = std::vector<float>;

TEST(Weights, LieInTheOrderOfTheFile) {
  const MadeNet made(WithConvolutions(), Counted(kAll));
  const ImportedNet imported = made.Import();
  EXPECT_EQ(BlobOf(imported, "conv_0_scale", 1), (Numbers{0, 1}));
  EXPECT_EQ(BlobOf(imported, "conv_0_scale", 0), (Numbers{2, 3}));
  EXPECT_EQ(BlobOf(imported, "conv_0_bn", 0), (Numbers{4, 5}));
  EXPECT_EQ(BlobOf(imported, "conv_0_bn", 1), (Numbers{6, 7}));
  EXPECT_EQ(BlobOf(imported, "conv_0_bn", 2), (Numbers{1}));
  EXPECT_EQ(BlobOf(imported, "conv_0", 0), (Numbers{8, 9}));
  EXPECT_EQ(BlobOf(imported, "conv_2", 1), (Numbers{10, 11, 12}));
  EXPECT_EQ(BlobOf(imported, "conv_2", 0), (Numbers{13, 14, 15, 16, 17, 18}));
  EXPECT_EQ(imported.parameters, kAll + 1);
  EXPECT_TRUE(imported.notes.empty());
}

TEST(Weights, OfAFileThatGetsShorterEndEarly) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.weights";
  std::ofstream(path) << std::string(1 << 16, '\1');
  WeightsFile file(path);
  std::filesystem::resize_file(path, 1 << 15);
  std::vector<float> numbers(1 << 13);
  file.Read(1 << 12, numbers.data());
  EXPECT_EQ(ThrownBy<EnvironmentError>([&] { file.Read(1 << 13, numbers.data()); }),
            path + ": cannot be read: it ends early");
}

TEST(Weights, OfConnectedSectionsStandBeforeTheNormalisation) {
  const std::string cfg = NetSection(1, 1, 2) + "[connected]\noutput=3\nbatch_normalize=1\nactivation=linear\n";
  const ImportedNet imported = MadeNet(cfg, Counted(18)).Import();
  EXPECT_EQ(BlobOf(imported, "connected_0_scale", 1), (Numbers{0, 1, 2}));
  EXPECT_EQ(BlobOf(imported, "connected_0", 0), (Numbers{3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(BlobOf(imported, "connected_0_scale", 0), (Numbers{9, 10, 11}));
  EXPECT_EQ(BlobOf(imported, "connected_0_bn", 0), (Numbers{12, 13, 14}));
  EXPECT_EQ(BlobOf(imported, "connected_0_bn", 1), (Numbers{15, 16, 17}));
}

TEST(Weights, OfTheFirstVersionAreTurnedRound) {
  const std::string cfg = NetSection(1, 1, 2) + "[connected]\noutput=3\nactivation=linear\n";
  const Numbers plain = {3, 4, 5, 6, 7, 8}, turned = {3, 6, 4, 7, 5, 8};
  EXPECT_EQ(BlobOf(MadeNet(cfg, WeightsBytes(Counted(9), 0, 1)).Import(), "connected_0", 0), plain);
  EXPECT_EQ(BlobOf(MadeNet(cfg, WeightsBytes(Counted(9), 1001, 0)).Import(), "connected_0", 0), turned);
  EXPECT_EQ(BlobOf(MadeNet(cfg, WeightsBytes(Counted(9), 0, 1001)).Import(), "connected_0", 0), turned);
  // A convolution's never are.
  const MadeNet made(WithConvolutions(), WeightsBytes(Counted(kAll), 1001, 0));
  EXPECT_EQ(BlobOf(made.Import(), "conv_2", 0), (Numbers{13, 14, 15, 16, 17, 18}));
}

TEST(Weights, HaveAHeaderOfTwoLengths) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.weights";
  const auto header = [&](int32_t major, int32_t minor) {
    std::ofstream(path, std::ios::binary) << WeightsBytes({}, major, minor) << "1234";
    const WeightsFile file(path);
    EXPECT_EQ(file.left(), 4) << major << "." << minor;
    return file.header();
  };
  EXPECT_EQ(header(0, 0), 16);
  EXPECT_EQ(header(0, 1), 16);
  EXPECT_EQ(header(0, 2), 20);
  EXPECT_EQ(header(0, 999), 20);
  EXPECT_EQ(header(1, 0), 20);
  EXPECT_EQ(header(1001, 0), 16);
  EXPECT_EQ(header(-1, 5), 16);
  EXPECT_EQ(header(INT32_MAX, INT32_MAX), 16);
}

void ExpectWeightsError(const std::string& bytes, const std::string& part) {
  const MadeNet made(WithConvolutions(), bytes);
  const std::string error = made.Error();
  EXPECT_NE(error.find(made.weights() + ": error: " + part), std::string::npos) << part << "\n" << error;
}

TEST(Weights, EndTooEarlyOrTooLate) {
  ExpectWeightsError(
      "", "has 0 bytes; a .weights of Darknet begins with 16 or 20 bytes of header; was the file cut short?");
  ExpectWeightsError(WeightsBytes({}).substr(0, 17), "has 17 bytes; the header of version 0.2 alone has 20");
  ExpectWeightsError(WeightsBytes({}),
                     "has a header and no weights (crema import --data trains from scratch without a file); the "
                     "weights of this .cfg have 96 bytes in all, the file has 20");
  ExpectWeightsError(
      WeightsBytes(Counted(kFirst - 1)),
      "breaks off in layer \"conv_0\" (section 0, [convolutional] in line 5), of which 36 bytes of 40 are there");
  ExpectWeightsError(
      WeightsBytes(Counted(kAll - 1)),
      "breaks off in layer \"conv_2\" (section 2, [convolutional] in line 12), of which 32 bytes of 36 are there: "
      "it was cut short, or belongs to another .cfg; the weights of this .cfg have 96 bytes in all, the file has 92");
  ExpectWeightsError(WeightsBytes(Counted(kAll)) + "x",
                     "goes on for 1 bytes behind the last layer: it belongs to another .cfg");
  ExpectWeightsError(WeightsBytes(Counted(kAll + 5)), "goes on for 20 bytes behind the last layer");
  // The same numbers with the shorter header.
  ExpectWeightsError(WeightsBytes(Counted(kAll), 0, 1) + "1234", "goes on for 4 bytes");
}

TEST(Weights, OfTheFirstSectionsAreEnough) {
  const MadeNet made(WithConvolutions(), Counted(kFirst));
  const ImportedNet imported = made.Import();
  ASSERT_EQ(imported.notes.size(), 1u);
  EXPECT_EQ(
      imported.notes[0].ToString(),
      made.weights() +
          ": note: ends behind layer \"conv_0\": from \"conv_2\" (section 2, [convolutional] in line 12) on layers "
          "have no weights, and begin anew where the net is trained");
  EXPECT_EQ(imported.weights.layer_size(), 3);
  EXPECT_EQ(BlobOf(imported, "conv_0", 0), (Numbers{8, 9}));
  EXPECT_EQ(BlobOf(imported, "conv_2", 0), Numbers());
}

TEST(Weights, AreNoFile) {
  const MadeNet made(WithConvolutions(), Counted(kAll));
  const TemporaryFolder folder;
  EXPECT_THROW(ImportDarknetNet(made.cfg(), folder / "absent.weights"), UserError);
  EXPECT_THROW(ImportDarknetNet(made.cfg(), folder.path()), UserError);
}

}  // namespace
}  // namespace crema::darknet
