// Nets of forks as they are.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compiler/compiler.h"
#include "corpus_files.h"
#include "device/device.h"
#include "report/assumed_inputs.h"

namespace crema {
namespace {

struct ForkNet {
  std::string file;
  BlobShapes shapes = {};  // of tops of data layers
  bool warns = false;      // of old syntax, or of equal names
};

void ExpectToCompile(const std::string& folder, const std::vector<ForkNet>& nets) {
  NetOptions options;
  options.context.device = &CpuDevice();
  for (const ForkNet& net : nets) {
    const NetFile file = ReadNetFile(CorpusFolder() + "/" + folder + "/" + net.file);
    for (const Phase phase : {TRAIN, TEST}) {
      options.phase = phase;
      const auto compiled = Compile(AssumeInputs(file, net.shapes, false), options);
      EXPECT_EQ(compiled->warnings.empty(), !net.warns) << net.file;
    }
  }
}

TEST(CorpusOfWarpCtc, NetsCompile) {
  const std::string folder = "forks/xmfbit+warpctc-caffe/examples/warpctc_captcha";
  if (CorpusFiles(folder).empty()) GTEST_SKIP() << "there is no corpus at " << CorpusFolder();
  ExpectToCompile(folder, {{"lstm_ctc.prototxt", {{"data", Shape{512, 3, 30, 80}}, {"label", Shape{512, 5}}}},
                           {"deploy.prototxt"}});
}

TEST(CorpusOfCaffeFace, NetsCompile) {
  const std::string folder = "forks/ydwen+caffe-face";
  if (CorpusFiles(folder).empty()) GTEST_SKIP() << "there is no corpus at " << CorpusFolder();
  const BlobShapes faces = {{"data", Shape{8, 3, 112, 96}}, {"label", Shape{8}}};
  const BlobShapes digits = {{"data", Shape{8, 1, 28, 28}}, {"label", Shape{8}}};
  ExpectToCompile(
      folder, {{"face_example/face_train_test.prototxt", faces}, {"mnist_example/mnist_train_test.prototxt", digits}});
}

TEST(CorpusOfCaffeLstm, NetsCompile) {
  const std::string folder = "forks/junhyukoh+caffe-lstm/examples/lstm_sequence";
  if (CorpusFiles(folder).empty()) GTEST_SKIP() << "there is no corpus at " << CorpusFolder();
  ExpectToCompile(folder, {{"lstm_short.prototxt", {}, true},
                           {"lstm_long.prototxt", {}, true},
                           {"deep_lstm_short.prototxt", {}, true},
                           {"deep_lstm_long.prototxt", {}, true}});
}

TEST(CorpusOfCrfRnn, NetsCompile) {
  const std::string folder = "forks/torrvision+crfasrnn/python-scripts";
  if (CorpusFiles(folder).empty()) GTEST_SKIP() << "there is no corpus at " << CorpusFolder();
  ExpectToCompile(folder, {{"TVG_CRFRNN_COCO_VOC.prototxt", {}, true}, {"TVG_CRFRNN_new_deploy.prototxt", {}, true}});
}

// What the published weights are.
TEST(CorpusOfCrfRnn, BlobsAreSquare) {
  const std::string folder = "forks/torrvision+crfasrnn/python-scripts";
  if (CorpusFiles(folder).empty()) GTEST_SKIP() << "there is no corpus at " << CorpusFolder();
  NetOptions options;
  options.context.device = &CpuDevice();
  for (const char* file : {"TVG_CRFRNN_COCO_VOC.prototxt", "TVG_CRFRNN_new_deploy.prototxt"}) {
    const auto compiled = Compile(ReadNetFile(CorpusFolder() + "/" + folder + "/" + file), options);
    int blobs = 0;
    for (const Node& node : compiled->graph.nodes) {
      if (node.param->type() != "MultiStageMeanfield") continue;
      for (const int param : node.params) {
        EXPECT_EQ(compiled->graph.params[param].spec.shape, (Shape{1, 1, 21, 21}));
        ++blobs;
      }
    }
    EXPECT_EQ(blobs, 3) << file;
  }
}

}  // namespace
}  // namespace crema
