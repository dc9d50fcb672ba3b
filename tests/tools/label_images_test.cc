// crema extract that writes what a net tells of each pixel as PNG files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/input_file.h"
#include "crema/data.pb.h"
#include "data/databases/lmdb_writer.h"
#include "image/codec.h"
#include "tools/colour_net.h"
#include "tools/program.h"

namespace crema::testing_tools {
namespace {

namespace fs = std::filesystem;

class LabelImages : public ::testing::Test {
 protected:
  void SetUp() override {
    WriteColourNet(folder_);
    WritePng(folder_, "images/red/1.png", Coloured(4, 4, 0, 0, 255));
    WritePng(folder_, "images/red/2.png", Coloured(4, 4, 0, 0, 51));
    WritePng(folder_, "images/blue/1.png", Coloured(4, 4, 255, 0, 0));
  }

  Finished Run(std::vector<std::string> words, const std::string& model = "deploy.prototxt") const {
    words.insert(words.begin(), {"crema", "extract", "--model=" + model, "--weights=net.caffemodel", "--threads=1"});
    return RunProgram(words, {.folder = folder_.path()});
  }

  const ScratchFolder folder_;
};

// The blob "data" has the colours as channels, of which the upper left pixel is black.
TEST_F(LabelImages, HaveTheHighestClassOfEachPixel) {
  const Finished run = Run({"--blob=data", "--output=masks/", "images/red", "images/blue/1.png"});
  EXPECT_EQ(run.exit_code, 2) << run.out;
  EXPECT_TRUE(run.Says("images/blue/1.png: error: would be written as 1.png, and so would images/red/1.png"))
      << run.err;
  const auto left = [&] {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("masks")) names.push_back(name);
    }
    return names;
  };
  EXPECT_TRUE(left().empty());
  const Finished red = Run({"--blob=data", "--output=masks/", "images/red"});
  ASSERT_EQ(red.exit_code, 0) << red.err;
  EXPECT_EQ(red.out, "masks/: 2 records, data 3x4x4 as label images of 3 classes\n");
  EXPECT_EQ(left(), std::vector<std::string>{"masks"});
  Image labels;
  ASSERT_EQ(DecodeImage(ReadFileBytes((folder_ / "masks/2.png").string()), {.colors = DecodeOptions::Colors::kNumbers},
                        &labels),
            "");
  ASSERT_EQ(labels.height, 4);
  ASSERT_EQ(labels.width, 4);
  for (int i = 0; i < 16; ++i) EXPECT_EQ(labels.pixels[i], i == 0 ? 0 : 2) << i;
  EXPECT_EQ(Run({"--blob=data", "--output=masks/", "images/red"}).exit_code, 2);
  const Finished views = Run({"--blob=data", "--output=no/", "--views=2", "images/red"});
  EXPECT_EQ(views.exit_code, 2);
  EXPECT_TRUE(views.Says("pixels of --views=2 are of other places in each view")) << views.err;
  // With --force beside what is there.
  folder_.Write("masks/notes.txt", "mine");
  ASSERT_EQ(Run({"--blob=data", "--output=masks/", "--force", "images/blue/1.png"}).exit_code, 0);
  EXPECT_EQ(ReadText(folder_ / "masks/notes.txt"), "mine");
  ASSERT_EQ(DecodeImage(ReadFileBytes((folder_ / "masks/1.png").string()), {.colors = DecodeOptions::Colors::kNumbers},
                        &labels),
            "");
  EXPECT_EQ(labels.pixels[5], 0);
  EXPECT_EQ(left(), std::vector<std::string>{"masks"});

  const std::string ends = ReadText(folder_ / "deploy.prototxt");
  folder_.Write(
      "ends.prototxt",
      ends +
          "layer { name: \"m\" type: \"ArgMax\" bottom: \"data\" top: \"classes\" argmax_param { axis: 1 } }\n"
          "layer { name: \"one\" type: \"Slice\" bottom: \"data\" top: \"b\" top: \"g\" top: \"r\" }\n"
          "layer { name: \"s\" type: \"Sigmoid\" bottom: \"r\" top: \"edges\" }\n");
  const auto image = [&](const std::string& blob, DecodeOptions::Colors colors) {
    const Finished written = Run({"--blob=" + blob, "--output=of_" + blob + "/", "images/red/1.png"}, "ends.prototxt");
    EXPECT_EQ(written.exit_code, 0) << written.err;
    EXPECT_EQ(DecodeImage(ReadFileBytes((folder_ / ("of_" + blob + "/1.png")).string()), {.colors = colors}, &labels),
              "");
    return labels.pixels[5];
  };
  EXPECT_EQ(image("classes", DecodeOptions::Colors::kNumbers), 2);
  EXPECT_EQ(image("edges", DecodeOptions::Colors::kGray), 186);  // 255 / (1 + exp(-1))
  const auto says = [&](const std::string& blob, const std::string& text) {
    const Finished refused = Run({"--blob=" + blob, "--output=no/", "images/red/2.png"}, "ends.prototxt");
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_TRUE(refused.Says(text)) << refused.err;
    EXPECT_FALSE(fs::exists(folder_ / "no"));
  };
  folder_.Write("taken", "");
  const Finished taken = Run({"--blob=data", "--output=taken/", "--force", "images/red"});
  EXPECT_EQ(taken.exit_code, 2);
  EXPECT_TRUE(taken.Says("taken/: error: exists already, and is no folder")) << taken.err;
  says("r", "\"r\" has 0.2 at a pixel, which is no class from 0 to 255");
  says("score", "\"score\" is 3 of each record; images are made of scores");
}

// Photographs have the names of their label images where both are PNG files.
TEST_F(LabelImages, ReplaceNothingThatIsRead) {
  const auto refuses = [&](const std::vector<std::string>& words, const std::string& file, const std::string& model) {
    const std::string bytes = ReadText(folder_ / file);
    const Finished run = Run(words, model);
    EXPECT_EQ(run.exit_code, 2) << run.out;
    EXPECT_TRUE(run.Says("would be written over " + file + ", which is read; write to another folder")) << run.err;
    EXPECT_TRUE(ReadText(folder_ / file) == bytes);
  };
  refuses({"--blob=data", "--output=images/red/", "--force", "images/red"}, "images/red/1.png", "deploy.prototxt");
  refuses({"--blob=data", "--output=./images/red/", "--force", "images/red/2.png"}, "./images/red/2.png",
          "deploy.prototxt");
  fs::create_directory(folder_ / "links");
  fs::create_symlink("../images/red/1.png", folder_ / "links/1.png");
  refuses({"--blob=data", "--output=images/red/", "--force", "links"}, "images/red/1.png", "deploy.prototxt");
  EXPECT_EQ(Run({"--blob=data", "--output=images/red/", "--force", "images/blue/1.png"}).exit_code, 0)
      << "what is not read is replaced";

  Image labels;
  labels.Resize(4, 4, 1);
  std::fill(labels.pixels.begin(), labels.pixels.end(), uint8_t{1});
  const std::vector<uint8_t> png = EncodeLabelPng(labels);
  fs::create_directory(folder_ / "masks");
  folder_.Write("masks/0.png", {png.begin(), png.end()});
  folder_.Write("pairs.txt", "images/red/2.png masks/0.png\n");
  folder_.Write(
      "train_val.prototxt",
      "layer { name: \"data\" type: \"DenseImageData\" top: \"data\" top: \"label\"\n"
      "  dense_image_data_param { source: \"pairs.txt\" batch_size: 1 } }\n"
      "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"data\" bottom: \"label\" top: \"loss\" }\n");
  refuses({"--blob=data", "--output=masks/", "--force"}, "masks/0.png", "train_val.prototxt");
}

// Keys of a database are whole, as they tell records apart.
TEST_F(LabelImages, OfADatabaseAreNamedByTheirKeys) {
  LmdbWriter writer((folder_ / "db").string(), LmdbWriter::Existing::kRefuse);
  for (const char* key : {"00000000_red/1.png", "00000001_blue/1.png", "v1.2"}) {
    Datum datum;
    const std::vector<uint8_t> bytes = EncodePng(Coloured(4, 4, 0, 0, 255));
    datum.set_data(bytes.data(), bytes.size());
    datum.set_encoded(true);
    writer.Put(key, datum.SerializeAsString());
  }
  writer.Commit();
  const Finished run = Run({"--blob=data", "--output=masks/", "db"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder_ / "masks")) names.insert(entry.path().filename().string());
  EXPECT_EQ(names, (std::set<std::string>{"00000000_red_1.png", "00000001_blue_1.png", "v1.2.png"}));
}

}  // namespace
}  // namespace crema::testing_tools
