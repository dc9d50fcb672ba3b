// Real files: every net, solver and weights file of the corpus.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <iostream>
#include <regex>
#include <set>

#include "corpus_files.h"
#include "crema/files.h"
#include "files.h"

namespace crema {
namespace {

#define SKIP_WITHOUT_CORPUS(paths) \
  if (paths.empty()) GTEST_SKIP() << "no corpus at " << CorpusFolder()

TEST(Corpus, EveryNetParses) {
  const std::vector<std::string> paths = CorpusFiles("nets", {".prototxt", ".pt"});
  SKIP_WITHOUT_CORPUS(paths);
  int layers = 0, upgraded = 0;
  for (const std::string& path : paths) {
    try {
      const NetFile file = ReadNetFile(path);
      EXPECT_GT(file.net.layer_size(), 0) << path;
      EXPECT_EQ(file.net.layers_size() + file.net.input_size(), 0) << path;
      upgraded += !file.warnings.empty();
      for (int i = 0; i < file.net.layer_size(); ++i) {
        const Location place = file.source->Layer(i, "type");
        EXPECT_EQ(place.file, path);
        EXPECT_GT(place.line, 0) << path << " layer " << i;
        EXPECT_FALSE(file.net.layer(i).type().empty()) << path << " layer " << i;
        ++layers;
      }
    } catch (const UserError& error) {
      ADD_FAILURE() << error.what();
    }
  }
  std::cout << paths.size() << " nets with " << layers << " layers, " << upgraded << " of them in an older syntax\n";
}

// Every complaint about a file from a fork must be about something that only the fork has.
struct Tally {
  size_t files = 0, parsed = 0;
  std::set<std::string> unknown;  // names of fields and enum values
};

template <typename Read>
Tally ReadAll(const std::vector<std::string>& paths, const Read& read, const std::set<std::string>& broken = {}) {
  static const std::regex known(
      ".*: error: .* has no (field|value) \"?([A-Za-z_0-9]+).*|.*: error: \"(\\w+)\" is a layer type of a fork .*|"
      ".*: error: stopped after .*");
  Tally tally;
  for (const std::string& path : paths) {
    const std::string name = path.substr(CorpusFolder().size() + 1);
    ++tally.files;
    try {
      read(path);
      ++tally.parsed;
    } catch (const UserError& error) {
      if (broken.count(name)) continue;
      for (const Diagnostic& mistake : error.diagnostics()) {
        std::smatch match;
        const std::string text = mistake.ToString();
        if (std::regex_match(text, match, known)) {
          if (match[2].length() > 0) tally.unknown.insert(match[2]);
        } else {
          ADD_FAILURE() << text;
        }
      }
    }
  }
  return tally;
}

TEST(Corpus, SolversParseExceptForFieldsOfForks) {
  const std::vector<std::string> paths = CorpusFiles("solvers", {".prototxt", ".pt"});
  SKIP_WITHOUT_CORPUS(paths);
  // A layer was pasted into the middle of this one.
  const std::set<std::string> broken = {
      "solvers/GongCheng1919+Quantitative-and-ternary-caffe-for-network-compression/examples/cifar10/"
      "cifar10_full_solver_compress_conv.prototxt"};
  const Tally tally = ReadAll(
      paths, [](const std::string& path) { ReadSolverFile(path); }, broken);
  // One of NVIDIA's fork, and one of an old BVLC release candidate.
  const std::set<std::string> forks = {"larc_turbo", "stepearly"};
  for (const std::string& name : tally.unknown) EXPECT_TRUE(forks.count(name)) << name;
  EXPECT_GE(tally.parsed, 190u);
  std::cout << tally.parsed << " of " << tally.files << " solvers parse; the others use fields of forks:";
  for (const std::string& name : tally.unknown) std::cout << " " << name;
  std::cout << "\n";
}

TEST(Corpus, NetsOfForksParseExceptForFieldsOfForks) {
  const std::vector<std::string> paths = CorpusFiles("forks", {".prototxt", ".pt"});
  SKIP_WITHOUT_CORPUS(paths);
  // Templates with holes, and one with a type in the syntax of old files.
  const std::set<std::string> broken = {
      "forks/chuanqi305+MobileNet-SSD/template/MobileNetSSD_deploy_template.prototxt",
      "forks/chuanqi305+MobileNet-SSD/template/MobileNetSSD_test_template.prototxt",
      "forks/chuanqi305+MobileNet-SSD/template/MobileNetSSD_train_template.prototxt",
      "forks/GongCheng1919+Quantitative-and-ternary-caffe-for-network-compression/examples/cifar10/vgg11.prototxt"};
  const Tally tally = ReadAll(
      paths, [](const std::string& path) { ReadNetFile(path); }, broken);
  const auto* layer = LayerParameter::descriptor();
  for (const std::string& name : tally.unknown) EXPECT_EQ(layer->FindFieldByName(name), nullptr) << name;
  std::cout << tally.parsed << " of " << tally.files << " nets of forks parse; the others use " << tally.unknown.size()
            << " fields that are not in the schema:";
  for (const std::string& name : tally.unknown) std::cout << " " << name;
  std::cout << "\n";
}

void ExpectEqual(const LayerWeights& read, const google::protobuf::RepeatedPtrField<BlobProto>& blobs) {
  ASSERT_EQ(read.blobs.size(), static_cast<size_t>(blobs.size()));
  for (int b = 0; b < blobs.size(); ++b) {
    const BlobProto& expected = blobs.Get(b);
    const LayerWeights::Blob& blob = read.blobs[b];
    EXPECT_EQ(blob.legacy_shape, expected.has_num());
    if (expected.has_num()) {
      EXPECT_EQ(blob.shape, Shape({expected.num(), expected.channels(), expected.height(), expected.width()}));
    } else {
      EXPECT_EQ(blob.shape.dims(), std::vector<int64_t>(expected.shape().dim().begin(), expected.shape().dim().end()));
    }
    ASSERT_EQ(blob.data.size(), static_cast<size_t>(expected.data_size()));
    EXPECT_EQ(std::memcmp(blob.data.data(), expected.data().data(), blob.data.size() * sizeof(float)), 0);
  }
}

TEST(Corpus, WeightsEqualTheGeneratedParsers) {
  const std::vector<std::string> paths = CorpusFiles("models", {".caffemodel"});
  SKIP_WITHOUT_CORPUS(paths);
  size_t layers = 0, values = 0;
  for (const std::string& path : paths) {
    SCOPED_TRACE(path);
    NetParameter net;
    ASSERT_TRUE(net.ParseFromString(ReadFile(path)));
    const std::vector<LayerWeights> weights = ReadWeights(path);
    size_t next = 0;
    for (const LayerParameter& layer : net.layer()) {
      if (layer.blobs_size() == 0) continue;
      ASSERT_LT(next, weights.size());
      EXPECT_EQ(weights[next].name, layer.name());
      EXPECT_EQ(weights[next].type, layer.type());
      ExpectEqual(weights[next], layer.blobs());
      for (const LayerWeights::Blob& blob : weights[next].blobs) values += blob.data.size();
      ++next;
    }
    for (const V1LayerParameter& layer : net.layers()) {
      if (layer.blobs_size() == 0) continue;
      ASSERT_LT(next, weights.size());
      EXPECT_EQ(weights[next].name, layer.name());
      ExpectEqual(weights[next], layer.blobs());
      ++next;
    }
    EXPECT_EQ(next, weights.size());
    EXPECT_GT(next, 0u);
    layers += next;
  }
  std::cout << paths.size() << " models with " << layers << " layers and " << values << " values\n";
}

TEST(Corpus, Hdf5WeightsAreRead) {
  const std::vector<std::string> paths = CorpusFiles("models", {".h5"});
  SKIP_WITHOUT_CORPUS(paths);
  for (const std::string& path : paths) {
    SCOPED_TRACE(path);
    std::vector<LayerWeights> weights;
    try {
      weights = ReadWeights(path);
    } catch (const EnvironmentError& error) {
      GTEST_SKIP() << error.what();
    }
    EXPECT_FALSE(weights.empty());
    for (const LayerWeights& layer : weights) {
      for (const LayerWeights::Blob& blob : layer.blobs) {
        EXPECT_EQ(static_cast<int64_t>(blob.data.size()), blob.shape.count()) << layer.name;
      }
    }
  }
}

TEST(Corpus, NetsSurviveARoundTripThroughText) {
  const std::vector<std::string> paths = CorpusFiles("nets", {".prototxt", ".pt"});
  SKIP_WITHOUT_CORPUS(paths);
  for (const std::string& path : paths) {
    const NetFile file = ReadNetFile(path);
    std::string text;
    ASSERT_TRUE(google::protobuf::TextFormat::PrintToString(file.net, &text));
    const NetFile again = ParseNet(text, path);
    EXPECT_EQ(again.net.SerializeAsString(), file.net.SerializeAsString()) << path;
    NetParameter binary;
    ASSERT_TRUE(binary.ParseFromString(file.net.SerializeAsString()));
    EXPECT_EQ(binary.SerializeAsString(), file.net.SerializeAsString()) << path;
  }
}

}  // namespace
}  // namespace crema
