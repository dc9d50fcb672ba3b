// crema evaluate on folders, lists and databases of small images whose colour is their class.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "crema/data.pb.h"
#include "data/databases/lmdb_writer.h"
#include "image/codec.h"
#include "report/json_reader.h"
#include "tools/colour_net.h"
#include "tools/program.h"

namespace crema::testing_tools {
namespace {

namespace fs = std::filesystem;
using testing_json::Json;
using testing_json::ParseJson;

// Six images, of which one green one lies among the red.
struct Sample {
  std::string path;
  Image image;
  int label;
};

std::vector<Sample> Samples() {
  return {{"blue/1.png", Coloured(4, 4, 255, 0, 0), 0},  {"blue/2.png", Coloured(4, 4, 200, 0, 0), 0},
          {"green/1.png", Coloured(4, 4, 0, 255, 0), 1}, {"red/1.png", Coloured(4, 4, 0, 0, 255), 2},
          {"red/2.png", Coloured(4, 4, 0, 0, 250), 2},   {"red/odd.png", Coloured(4, 4, 0, 255, 0), 2}};
}

class Evaluate : public ::testing::Test {
 protected:
  void SetUp() override {
    WriteColourNet(folder_);
    std::string list;
    for (const Sample& sample : Samples()) {
      WritePng(folder_, "images/" + sample.path, sample.image);
      list += sample.path + " " + std::to_string(sample.label) + "\n";
    }
    folder_.Write("list.txt", list);
  }

  void WriteDatabase(const std::string& name, bool encoded) const {
    LmdbWriter writer((folder_ / name).string(), LmdbWriter::Existing::kRefuse);
    for (const Sample& sample : Samples()) {
      Datum datum;
      datum.set_label(sample.label);
      if (encoded) {
        const std::vector<uint8_t> bytes = EncodePng(sample.image);
        datum.set_data(bytes.data(), bytes.size());
        datum.set_encoded(true);
      } else {
        std::string planes(sample.image.size(), '\0');
        ToPlanes(sample.image, reinterpret_cast<uint8_t*>(planes.data()));
        datum.set_channels(3);
        datum.set_height(4);
        datum.set_width(4);
        datum.set_data(planes);
      }
      writer.Put(sample.path, datum.SerializeAsString());
    }
    writer.Commit();
  }

  Finished Run(std::vector<std::string> words, const std::string& model = "deploy.prototxt") const {
    words.insert(words.begin(), {"crema", "evaluate", "--model=" + model, "--weights=net.caffemodel", "--threads=1"});
    return RunProgram(words, {.folder = folder_.path()});
  }

  const ScratchFolder folder_;
};

void ExpectResult(const Finished& run) {
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.out.find("accuracy 83.33% (5 of 6)"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("green               0.5000  1.0000  0.6667      1"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("2  red    .  1  2\n"), std::string::npos) << run.out;
  // The worst one is the green among the red: 4 * 15 / 16 for green, 0 for others.
  char line[64];
  std::snprintf(line, sizeof line, "%.3f  red    green           %.4f  ", std::log(2 + std::exp(3.75)),
                std::exp(3.75) / (2 + std::exp(3.75)));
  EXPECT_NE(run.out.find(line), std::string::npos) << run.out;
}

TEST_F(Evaluate, Folders) {
  ExpectResult(Run({"images"}));
  ExpectResult(Run({"images", "--labels=labels.txt", "--batch=4"}));
}

TEST_F(Evaluate, FoldersThatHoldOnlySomeClasses) {
  fs::remove_all(folder_ / "images/blue");
  const Finished refused = Run({"images"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(refused.Says("holds folders for 2 classes, but the net tells 3 apart; give --labels")) << refused.err;
  const Finished run = Run({"images", "--labels=labels.txt"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.out.find("accuracy 75.00% (3 of 4)"), std::string::npos) << run.out;
  fs::rename(folder_ / "images/green", folder_ / "images/gren");
  EXPECT_TRUE(Run({"images", "--labels=labels.txt"}).Says("images/gren: error: is no class of the net; did you mean"));
}

TEST_F(Evaluate, Lists) {
  ExpectResult(Run({"list.txt", "--root=images", "--labels=labels.txt"}));
  folder_.Write("list.txt", "red/1.png 3\n");
  const Finished run = Run({"list.txt", "--root=images"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_TRUE(run.Says("has the label 3, but the net tells 3 classes apart")) << run.err;
}

TEST_F(Evaluate, DatabasesRawAndEncoded) {
  WriteDatabase("db", false);
  WriteDatabase("encoded", true);
  const Finished raw = Run({"db", "--labels=labels.txt"});
  ExpectResult(raw);
  EXPECT_NE(raw.out.find("  red/odd.png\n"), std::string::npos) << raw.out;
  EXPECT_EQ(Run({"encoded", "--labels=labels.txt"}).out, raw.out);
}

TEST_F(Evaluate, NetsForTrainingAsTheirTestPhaseSays) {
  WriteDatabase("db", false);
  ExpectResult(Run({"--labels=labels.txt"}, "train_val.prototxt"));
  ExpectResult(Run({"images"}, "train_val.prototxt"));
  // The same as crema test computes.
  const Finished test = RunProgram(
      {"crema", "test", "--model=train_val.prototxt", "--weights=net.caffemodel", "--iterations=6", "--threads=1"},
      {.folder = folder_.path()});
  ASSERT_EQ(test.exit_code, 0) << test.err;  // six batches of seven: each record seven times
  EXPECT_TRUE(test.Says("accuracy = 0.833333")) << test.err;
  const Finished evaluate = Run({"--labels=labels.txt", "--output=out"}, "train_val.prototxt");
  const double loss = ParseJson(ReadText(folder_ / "out/report.json"))["loss"].number;
  const size_t at = test.err.rfind("Loss: ");
  EXPECT_NEAR(std::stod(test.err.substr(at + 6)), loss, 1e-5);
  const Finished none = Run({}, "deploy.prototxt");
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_TRUE(none.Says("the net names no data for its TEST phase")) << none.err;
}

TEST_F(Evaluate, WritesFiles) {
  folder_.Write("images/green/broken.png", "no image");
  const Finished run = Run({"images", "--output=out/deep", "--worst=1"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.Says("images/green/broken.png: warning: ")) << run.err;
  const Json json = ParseJson(ReadText(folder_ / "out/deep/report.json"));
  EXPECT_EQ(json["data"].string, "images");
  EXPECT_NEAR(json["result"]["accuracy"].number, 5.0 / 6, 1e-9);
  ASSERT_EQ(json["worst"].items.size(), 1u);
  EXPECT_EQ(json["worst"].items[0]["image"].string, "images/red/odd.png");
  EXPECT_EQ(json["worst"].items[0]["predicted"].string, "green");
  EXPECT_EQ(json["broken"].items.size(), 1u);
  EXPECT_EQ(ReadText(folder_ / "out/deep/confusion.csv"), "class,blue,green,red\nblue,2,0,0\ngreen,0,1,0\nred,0,1,2\n");
  EXPECT_NE(ReadText(folder_ / "out/deep/confusion.svg").find("red taken for green: 1 of 3"), std::string::npos);
  const std::string predictions = ReadText(folder_ / "out/deep/predictions.csv");
  EXPECT_EQ(std::count(predictions.begin(), predictions.end(), '\n'), 7);
  EXPECT_NE(predictions.find("images/red/odd.png,2,red,1,green,"), std::string::npos) << predictions;
  EXPECT_EQ(Run({"images", "--broken=fail", "--output=none"}).exit_code, 2);
  EXPECT_FALSE(fs::exists(folder_ / "none/predictions.csv"));
}

TEST_F(Evaluate, SaysMistakes) {
  EXPECT_TRUE(Run({"nowhere"}).Says("nowhere: error: there is no such database, folder or list"));
  EXPECT_TRUE(Run({"images/red"}).Says("images/red: error: holds no folders; expected one folder of images"));
  EXPECT_TRUE(Run({"images/red/1.png"}).Says("images/red/1.png: error: is no text"));
  EXPECT_TRUE(Run({}).Says("crema evaluate: error: the net names no data"));
  folder_.Write(
      "pixels.prototxt",
      "layer { name: \"data\" type: \"DenseImageData\" top: \"data\" top: \"label\"\n"
      "  dense_image_data_param { source: \"pairs.txt\" batch_size: 2 } transform_param { crop_size: 4 } }\n"
      "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"data\" bottom: \"label\" top: \"loss\" }\n");
  const Finished pixels = Run({}, "pixels.prototxt");
  EXPECT_EQ(pixels.exit_code, 2);
  EXPECT_TRUE(pixels.Says("pixels.prototxt:2:64: error: the data of the net's TEST phase have label images"))
      << pixels.err;
  LmdbWriter writer((folder_ / "far").string(), LmdbWriter::Existing::kRefuse);
  Datum datum;
  datum.set_channels(3);
  datum.set_height(4);
  datum.set_width(4);
  datum.set_data(std::string(48, 'x'));
  datum.set_label(7);
  writer.Put("seven", datum.SerializeAsString());
  writer.Commit();
  const Finished run = Run({"far"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_TRUE(run.Says("seven: error: the label is 7, but the net tells 3 classes apart")) << run.err;
}

}  // namespace
}  // namespace crema::testing_tools
