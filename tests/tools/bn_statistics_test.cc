// crema bn_statistics, and what is told of nets that normalise by the batch where they are used.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "crema/data.pb.h"
#include "crema/files.h"
#include "crema/net.h"
#include "data/databases/lmdb_writer.h"
#include "image/codec.h"
#include "tools/colour_net.h"
#include "tools/program.h"

namespace crema::testing_tools {
namespace {

namespace fs = std::filesystem;

class BnStatistics : public ::testing::Test {
 protected:
  void SetUp() override {
    LmdbWriter writer((folder_ / "db").string(), LmdbWriter::Existing::kRefuse);
    for (int i = 0; i < 12; ++i) {
      Datum datum;
      const std::vector<uint8_t> bytes = EncodePng(Coloured(4, 4, 20 * i, 100, 255 - 10 * i));
      datum.set_data(bytes.data(), bytes.size());
      datum.set_encoded(true);
      writer.Put("key" + std::to_string(100 + i), datum.SerializeAsString());
    }
    writer.Commit();
    folder_.Write("train.prototxt",
                  "layer { name: \"data\" type: \"Data\" top: \"data\"\n"
                  "  transform_param { scale: 0.01 } data_param { source: \"db\" backend: LMDB batch_size: 4 } }\n" +
                      Layers(""));
    folder_.Write("learn.prototxt", kInput + Layers(""));
    folder_.Write("inference.prototxt", kInput + Layers("bn_mode: INFERENCE"));
    const Net net(ReadNetFile((folder_ / "learn.prototxt").string()), {.phase = TEST, .backward = false});
    std::ofstream(folder_ / "trained.caffemodel", std::ios::binary) << net.ToProto().SerializeAsString();
    WritePng(folder_, "images/1.png", Coloured(4, 4, 250, 40, 0));
    WritePng(folder_, "images/2.png", Coloured(4, 4, 0, 40, 250));
  }

  static std::string Layers(const std::string& mode) {
    return "layer { name: \"n\" type: \"BN\" bottom: \"data\" top: \"n\" bn_param { scale_filler { value: 2 } " + mode +
           " } }\nlayer { name: \"p\" type: \"Pooling\" bottom: \"n\" top: \"p\"\n"
           "  pooling_param { pool: AVE global_pooling: true } }\n";
  }

  Finished Run(const std::vector<std::string>& words) const { return RunProgram(words, {.folder = folder_.path()}); }

  Finished Extract(const std::string& model, const std::string& weights, const std::string& batch) const {
    return Run({"crema", "extract", "--model=" + model, "--weights=" + weights, "--output=f.csv", "--force",
                "--batch=" + batch, "images"});
  }

  const std::string kInput =
      "layer { name: \"data\" type: \"Input\" top: \"data\" input_param { shape { dim: [1, 3, 4, 4] } }\n"
      "  transform_param { scale: 0.01 } }\n";
  const ScratchFolder folder_;
};

TEST_F(BnStatistics, LetANetSayTheSameOfAnImageWhateverIsBesideIt) {
  const Finished done = Run({"crema", "bn_statistics", "--model=train.prototxt", "--weights=trained.caffemodel",
                             "--output=ready.caffemodel"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.out,
            "ready.caffemodel: 1 layer, statistics of 3 batches\n"
            "1 of SegNet (BN): the net that uses these weights has bn_mode: INFERENCE in it\n");
  const Finished together = Extract("inference.prototxt", "ready.caffemodel", "2");
  ASSERT_EQ(together.exit_code, 0) << together.err;
  EXPECT_EQ(together.err, "");
  const std::string features = ReadText(folder_ / "f.csv");
  ASSERT_EQ(Extract("inference.prototxt", "ready.caffemodel", "1").exit_code, 0);
  EXPECT_EQ(ReadText(folder_ / "f.csv"), features);

  const Finished again = Run({"crema", "bn_statistics", "--model=train.prototxt", "--weights=trained.caffemodel",
                              "--output=ready.caffemodel"});
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_TRUE(again.Says("ready.caffemodel: error: exists already")) << again.err;
  // Before the net is read, let alone run.
  const Finished nowhere = Run({"crema", "bn_statistics", "--model=absent.prototxt", "--weights=trained.caffemodel",
                                "--output=no/x.caffemodel"});
  EXPECT_EQ(nowhere.exit_code, 1);
  EXPECT_TRUE(nowhere.Says("cannot create no/x.caffemodel")) << nowhere.err;
  const Finished few = Run({"crema", "bn_statistics", "--model=train.prototxt", "--weights=trained.caffemodel",
                            "--output=ready.caffemodel", "--force", "--iterations=1"});
  EXPECT_EQ(few.exit_code, 0) << few.err;
  EXPECT_TRUE(few.out.starts_with("ready.caffemodel: 1 layer, statistics of 1 batch\n")) << few.out;
}

TEST_F(BnStatistics, AreAskedForWhereANetReadsNone) {
  const Finished trained = Extract("inference.prototxt", "trained.caffemodel", "1");
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_TRUE(
      trained.Says("inference.prototxt:3:1: warning: layer \"n\" (BN) has bn_mode: INFERENCE, but "
                   "trained.caffemodel was saved by a net that normalises by the batch there"))
      << trained.err;
  const Finished together = Extract("learn.prototxt", "trained.caffemodel", "2");
  EXPECT_EQ(together.exit_code, 0) << together.err;
  EXPECT_TRUE(
      together.Says("learn.prototxt:3:1: warning: layer \"n\" (BN) normalises by the images of each pass, of "
                    "which there are 2: what comes of an image depends on those beside it"))
      << together.err;
  const std::string features = ReadText(folder_ / "f.csv");
  const Finished alone = Extract("learn.prototxt", "trained.caffemodel", "1");
  EXPECT_EQ(alone.exit_code, 0) << alone.err;
  EXPECT_EQ(alone.err, "");
  EXPECT_NE(ReadText(folder_ / "f.csv"), features) << "else there was nothing to warn of";

  folder_.Write("norm.prototxt", kInput +
                                     "layer { name: \"n\" type: \"BatchNorm\" bottom: \"data\" top: \"n\"\n"
                                     "  batch_norm_param { use_global_stats: false } }\n");
  const Net net(ReadNetFile((folder_ / "norm.prototxt").string()), {.phase = TEST, .backward = false});
  std::ofstream(folder_ / "norm.caffemodel", std::ios::binary) << net.ToProto().SerializeAsString();
  const Finished norm = Extract("norm.prototxt", "norm.caffemodel", "2");
  EXPECT_EQ(norm.exit_code, 0) << norm.err;
  EXPECT_TRUE(norm.Says("Leave use_global_stats: false out")) << norm.err;
}

// As SegNet's nets are, whose own list need not be there for other images.
TEST_F(BnStatistics, ANetForTrainingTakesImagesWithoutLabels) {
  folder_.Write(
      "dense.prototxt",
      "layer { name: \"data\" type: \"DenseImageData\" top: \"data\" top: \"label\"\n"
      "  transform_param { scale: 0.01 } dense_image_data_param { source: \"absent.txt\" } }\n" +
          Layers("") +
          "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"n\" bottom: \"label\" top: \"loss\" }\n");
  const Finished run = Run({"crema", "extract", "--model=dense.prototxt", "--weights=trained.caffemodel", "--blob=n",
                            "--batch=1", "--output=masks/", "images"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, "masks/: 2 records, n 3x4x4 as label images of 3 classes\n");
  EXPECT_TRUE(fs::exists(folder_ / "masks/2.png"));
}

TEST_F(BnStatistics, SaysMistakes) {
  const auto says = [&](const std::vector<std::string>& more, const std::string& text) {
    std::vector<std::string> words = {"crema", "bn_statistics", "--weights=trained.caffemodel"};
    words.insert(words.end(), more.begin(), more.end());
    const Finished run = Run(words);
    EXPECT_EQ(run.exit_code, 2) << run.out;
    EXPECT_TRUE(run.Says(text)) << run.err;
  };
  says({"--model=train.prototxt", "--output=ready.h5"}, "expected a name that ends in .caffemodel");
  says({"--model=train.prototxt", "--output=./trained.caffemodel", "--force"}, "is what is read");
  says({"--model=learn.prototxt", "--output=ready.caffemodel"}, "the net gets \"data\" from an Input layer");
  EXPECT_FALSE(fs::exists(folder_ / "ready.caffemodel"));
}

}  // namespace
}  // namespace crema::testing_tools
