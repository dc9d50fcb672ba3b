// crema export; what is in its files is tested in tests/onnx.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "crema/net.h"
#include "source_folder.h"
#include "tools/colour_net.h"
#include "tools/program.h"

namespace crema::testing_tools {
namespace {

namespace fs = std::filesystem;

class Export : public ::testing::Test {
 protected:
  void SetUp() override { WriteColourNet(folder_); }

  Finished Run(std::vector<std::string> more, const std::string& model = "deploy.prototxt") const {
    std::vector<std::string> words = {"crema", "export", "--model=" + model, "--weights=net.caffemodel"};
    words.insert(words.end(), more.begin(), more.end());
    return RunProgram(words, {.folder = folder_.path()});
  }

  const ScratchFolder folder_;
};

TEST_F(Export, WritesTheFileAndSaysWhatItTakes) {
  const Finished done = Run({"--output=net.onnx"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.err, "");
  EXPECT_EQ(done.out.find("net.onnx: "), 0u) << done.out;
  EXPECT_NE(done.out.find("\ninput   data  Nx3x4x4\noutput  prob  Nx3\n"), std::string::npos) << done.out;
  EXPECT_NE(done.out.find("\"data\" takes images as transform_param says: scale: 0.0039"), std::string::npos)
      << done.out;
  EXPECT_NE(done.out.find("channels in the order blue, green, red"), std::string::npos) << done.out;
  const std::string bytes = ReadText(folder_ / "net.onnx");
  EXPECT_NE(bytes.find("crema"), std::string::npos);
  // Again, over the one that is there: the same.
  ASSERT_EQ(Run({"--output=net.onnx"}).exit_code, 0);
  EXPECT_EQ(ReadText(folder_ / "net.onnx"), bytes);
}

TEST_F(Export, MakesValuesReadyInTheFile) {
  const Finished done = Run({"--output=net.onnx", "--with_transform"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.out.find("with values from 0 to 255, of which the file makes (value - mean)"), std::string::npos)
      << done.out;
  EXPECT_NE(ReadText(folder_ / "net.onnx").find("data.factor"), std::string::npos);

  folder_.Write("bare.prototxt", R"(
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 3 dim: 4 dim: 4 } } }
layer { name: "pool" type: "Pooling" bottom: "data" top: "pool" pooling_param { kernel_size: 2 } })");
  const Finished bare = Run({"--output=bare.onnx", "--with_transform"}, "bare.prototxt");
  EXPECT_EQ(bare.exit_code, 2);
  EXPECT_TRUE(bare.Says("--with_transform: bare.prototxt does not say how values are made ready; add transform_param"))
      << bare.err;
}

TEST_F(Export, FixesTheBatch) {
  const Finished done = Run({"--output=net.onnx", "--batch=5"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.out.find("input   data  5x3x4x4\n"), std::string::npos) << done.out;
}

// Of tables and texts, which have neither pixels nor colours.
TEST_F(Export, SaysOfOtherRecordsNoMoreThanTheirTransform) {
  const Finished scaled = Run({"--output=net.onnx", "--shape=data=1,48,1,1"}, "train_val.prototxt");
  ASSERT_EQ(scaled.exit_code, 0) << scaled.err;
  EXPECT_NE(scaled.out.find("\"data\" takes values as transform_param says: scale: 0.0039"), std::string::npos)
      << scaled.out;
  EXPECT_NE(scaled.out.find("that is (value - mean) / std * scale\n"), std::string::npos) << scaled.out;
  std::string net = ReadText(folder_ / "train_val.prototxt");
  for (size_t at; (at = net.find("transform_param { scale: 0.00392156863 }")) != std::string::npos;) {
    net.replace(at, std::string("transform_param { scale: 0.00392156863 }").size(), "");
  }
  folder_.Write("table.prototxt", net);
  const Finished table = Run({"--output=net.onnx", "--shape=data=1,48,1,1"}, "table.prototxt");
  ASSERT_EQ(table.exit_code, 0) << table.err;
  EXPECT_EQ(table.out.find("takes"), std::string::npos) << table.out;
  const Finished images = Run({"--output=net.onnx", "--shape=data=1,3,4,4"}, "table.prototxt");
  EXPECT_NE(
      images.out.find("\"data\" takes images with values from 0 to 255, channels in the order blue, green, red\n"),
      std::string::npos)
      << images.out;
}

TEST_F(Export, TakesANetForTraining) {
  const Finished done = Run({"--output=net.onnx", "--shape=data=1,3,4,4"}, "train_val.prototxt");
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.out.find("input   data  Nx3x4x4\n"), std::string::npos) << done.out;
  const Finished shapeless = Run({"--output=other.onnx"}, "train_val.prototxt");
  EXPECT_EQ(shapeless.exit_code, 2);
  EXPECT_TRUE(shapeless.Says("--shape=data=N,C,H,W")) << shapeless.err;
}

TEST_F(Export, TakesABlobOfANetThatTellsNoClasses) {
  folder_.Write("regression.prototxt", R"(
layer { name: "data" type: "Data" top: "data" top: "label" data_param { source: "absent" backend: LMDB batch_size: 7 } }
layer { name: "score" type: "InnerProduct" bottom: "data" top: "score" inner_product_param { num_output: 3 } }
layer { name: "loss" type: "EuclideanLoss" bottom: "score" bottom: "label" top: "loss" })");
  const Finished which = Run({"--output=net.onnx", "--shape=data=1,3,4,4"}, "regression.prototxt");
  EXPECT_EQ(which.exit_code, 2);
  EXPECT_TRUE(which.Says("name what is wanted with --blob=NAME")) << which.err;
  const Finished done = Run({"--output=net.onnx", "--shape=data=1,3,4,4", "--blob=score"}, "regression.prototxt");
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.out.find("input   data  Nx3x4x4\noutput  score  Nx3\n"), std::string::npos) << done.out;
  // Of a deploy net what lies behind it is left out.
  const Finished early = Run({"--output=early.onnx", "--blob=score"});
  ASSERT_EQ(early.exit_code, 0) << early.err;
  EXPECT_NE(early.out.find("output  score  Nx3\n"), std::string::npos) << early.out;
  EXPECT_EQ(early.out.find("prob"), std::string::npos) << early.out;
  EXPECT_EQ(Run({"--output=none.onnx", "--blob=scor"}).exit_code, 2);
}

TEST_F(Export, LeavesNothingBehindAMistake) {
  const Finished other_name = Run({"--output=net.caffemodel"});
  EXPECT_EQ(other_name.exit_code, 2);
  EXPECT_TRUE(other_name.Says("--output=net.caffemodel: expected a name that ends in .onnx")) << other_name.err;

  folder_.Write("other.prototxt", R"(
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 3 dim: 4 dim: 4 } } }
layer { name: "another" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 3 } })");
  const Finished other_net = Run({"--output=net.onnx"}, "other.prototxt");
  EXPECT_EQ(other_net.exit_code, 2);
  EXPECT_TRUE(other_net.Says("no layer of other.prototxt has the name of one in it")) << other_net.err;

  folder_.Write("columns.prototxt", R"(
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 3 dim: 4 dim: 4 } } }
layer { name: "columns" type: "Im2col" bottom: "data" top: "columns" convolution_param { kernel_size: 3 } })");
  const Finished refused = Run({"--output=net.onnx"}, "columns.prototxt");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(refused.Says("columns.prototxt:3:25: error: layer \"columns\" (Im2col): there is no form of it in ONNX"))
      << refused.err;

  const Finished full =
      RunProgram({"crema", "export", "--model=deploy.prototxt", "--weights=net.caffemodel", "--output=net.onnx"},
                 {.folder = folder_.path(), .file_size_limit = 100});
  EXPECT_EQ(full.exit_code, 1) << full.err;
  for (const auto& entry : fs::directory_iterator(folder_.path())) {
    EXPECT_EQ(entry.path().string().find("onnx"), std::string::npos) << entry.path();
  }
}

TEST_F(Export, OfALayerThatSeveralFilesHaveTheLastCounts) {
  NetParameter net;
  ASSERT_TRUE(net.ParseFromString(ReadText(folder_ / "net.caffemodel")));
  for (LayerParameter& layer : *net.mutable_layer()) {
    for (BlobProto& blob : *layer.mutable_blobs()) blob.set_data(0, 1234.5f);
  }
  folder_.Write("other.caffemodel", net.SerializeAsString());
  const auto exported = [&](const std::string& weights) {
    const Finished done =
        RunProgram({"crema", "export", "--model=deploy.prototxt", "--weights=" + weights, "--output=net.onnx"},
                   {.folder = folder_.path()});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return ReadText(folder_ / "net.onnx");
  };
  const std::string other = exported("other.caffemodel");
  EXPECT_NE(exported("net.caffemodel"), other);
  EXPECT_EQ(exported("net.caffemodel,other.caffemodel"), other);
}

// Of export and probe, which read all files before the net, and of time, which copies one after the other.
TEST_F(Export, EachFileOfWeightsMustGiveSomething) {
  NetParameter net;
  ASSERT_TRUE(net.ParseFromString(ReadText(folder_ / "net.caffemodel")));
  for (LayerParameter& layer : *net.mutable_layer()) layer.set_name("of_another_net_" + layer.name());
  folder_.Write("other.caffemodel", net.SerializeAsString());
  for (LayerParameter& layer : *net.mutable_layer()) layer.clear_blobs();
  folder_.Write("bare.caffemodel", net.SerializeAsString());
  for (const std::string files :
       {"other.caffemodel", "net.caffemodel,other.caffemodel", "other.caffemodel,net.caffemodel", "bare.caffemodel"}) {
    const std::string unused = files[0] == 'b' ? "bare.caffemodel" : "other.caffemodel";
    for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
             {"export", "--output=net.onnx"}, {"probe"}, {"time", "--iterations=1"}}) {
      std::vector<std::string> words = {"crema", more[0], "--model=deploy.prototxt", "--weights=" + files};
      words.insert(words.end(), more.begin() + 1, more.end());
      const Finished refused = RunProgram(words, {.folder = folder_.path()});
      EXPECT_EQ(refused.exit_code, 2) << more[0] << " " << files << refused.out;
      EXPECT_TRUE(refused.Says("--weights=" + unused + ": no layer of deploy.prototxt has the name of one in it"))
          << more[0] << " " << files << refused.err;
      EXPECT_TRUE(refused.Says("leave the file out")) << refused.err;
      EXPECT_FALSE(fs::exists(folder_ / "net.onnx"));
    }
  }
}

TEST_F(Export, SaysWhatIsNotInTheWeights) {
  folder_.Write("more.prototxt", ReadText(folder_ / "deploy.prototxt") + R"(
layer { name: "more" type: "InnerProduct" bottom: "prob" top: "more"
        inner_product_param { num_output: 2 weight_filler { type: "xavier" } } })");
  const Finished refused = Run({"--output=net.onnx"}, "more.prototxt");
  EXPECT_EQ(refused.exit_code, 2) << refused.err;
  EXPECT_TRUE(refused.Says("net.caffemodel: error: has nothing for layer \"more\", and ")) << refused.err;
  EXPECT_FALSE(fs::exists(folder_ / "net.onnx"));
  const Finished done = Run({"--output=net.onnx", "--missing=fill"}, "more.prototxt");
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_TRUE(done.Says("net.caffemodel: warning: has nothing for layer \"more\", which keeps what its fillers make\n"))
      << done.err;
}

}  // namespace
}  // namespace crema::testing_tools
