// --views of crema predict, evaluate and extract.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "report/json_reader.h"
#include "tools/colour_net.h"
#include "tools/program.h"

namespace crema::testing_tools {
namespace {

using testing_json::ParseJson;

// Of 6x7 pixels that are all different.
Image Mixed(int seed) {
  Image image = Coloured(6, 7, 0, 0, 0);
  for (size_t i = 0; i < image.size(); ++i) image.pixels[i] = static_cast<uint8_t>((i * i * 7 + i * 31 + seed) % 256);
  return image;
}

Image Crop(const Image& image, int top, int left, bool mirrored) {
  Image crop = Coloured(4, 4, 0, 0, 0);
  for (int y = 0; y < 4; ++y) {
    for (int x = 0; x < 4; ++x) {
      const uint8_t* from = image.row(top + y) + (left + (mirrored ? 3 - x : x)) * 3;
      std::copy_n(from, 3, crop.row(y) + x * 3);
    }
  }
  return crop;
}

class Views : public ::testing::Test {
 protected:
  void SetUp() override {
    WriteColourNet(folder_);
    for (const int seed : {0, 100, 200}) {
      const std::string name = std::to_string(seed);
      WritePng(folder_, "images/" + name + ".png", Mixed(seed));
      int number = 0;
      for (const bool mirrored : {false, true}) {
        for (const auto& [top, left] : {std::pair(1, 1), {0, 0}, {0, 3}, {2, 0}, {2, 3}}) {
          WritePng(folder_, "crops/" + name + "-" + std::to_string(number++) + ".png",
                   Crop(Mixed(seed), top, left, mirrored));
        }
      }
    }
  }

  Finished Run(const std::string& command, std::vector<std::string> words) const {
    words.insert(words.begin(),
                 {"crema", command, "--model=deploy.prototxt", "--weights=net.caffemodel", "--threads=1"});
    return RunProgram(words, {.folder = folder_.path()});
  }

  // Of each image the scores of all classes.
  std::map<std::string, std::map<std::string, double>> Scores(std::vector<std::string> words) const {
    words.insert(words.begin(), "--format=csv");
    const Finished run = Run("predict", words);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    std::map<std::string, std::map<std::string, double>> scores;
    std::istringstream lines(run.out);
    std::string line, image, rank, number, label, score;
    std::getline(lines, line);
    while (std::getline(lines, line)) {
      std::istringstream fields(line);
      for (std::string* field : {&image, &rank, &number, &label, &score}) std::getline(fields, *field, ',');
      scores[image][label] = std::stod(score);
    }
    return scores;
  }

  ScratchFolder folder_;
};

TEST_F(Views, OfPredictAreTheMeansOfTheirProbabilities) {
  auto crops = Scores({"crops"});
  ASSERT_EQ(crops.size(), 30u);
  for (const int views : {2, 5, 10}) {
    auto means = Scores({"--views=" + std::to_string(views), "--resize=6x7", "images"});
    ASSERT_EQ(means.size(), 3u);
    for (auto& [path, classes] : means) {
      const std::string name = path.substr(7, path.size() - 11);
      ASSERT_EQ(classes.size(), 3u);
      for (const auto& [label, probability] : classes) {
        double sum = 0;
        for (int i = 0; i < views; ++i) {
          const int number = views == 2 ? 5 * i : i;
          sum += crops["crops/" + name + "-" + std::to_string(number) + ".png"][label];
        }
        EXPECT_NEAR(probability, sum / views, 1e-6) << path << " " << label << " " << views;
      }
    }
  }
}

TEST_F(Views, WorkWithLabelsBlobsAndBatches) {
  const std::vector<std::string> words = {"--views=10", "--resize=6x7", "--labels=labels.txt", "--top=1", "images"};
  const Finished run = Run("predict", words);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  for (const char* batch : {"--batch=1", "--batch=2"}) {
    std::vector<std::string> other = words;
    other.insert(other.begin(), batch);
    EXPECT_EQ(Run("predict", other).out, run.out) << batch;
  }
  // The mean of scores: that of each colour.
  auto crops = Scores({"--blob=score", "crops"}),
       means = Scores({"--blob=score", "--views=10", "--resize=6x7", "images"});
  double sum = 0;
  for (int i = 0; i < 10; ++i) sum += crops["crops/100-" + std::to_string(i) + ".png"]["1"];
  EXPECT_NEAR(means["images/100.png"]["1"], sum / 10, 1e-5);
}

TEST_F(Views, OfEvaluateAreJudgedAsOneImageEach) {
  for (const char* name : {"blue", "green", "red"}) {
    WritePng(folder_, std::string("classes/") + name + "/1.png",
             Coloured(6, 7, name[0] == 'b' ? 255 : 0, name[0] == 'g' ? 255 : 0, name[0] == 'r' ? 255 : 0));
  }
  const Finished run = Run("evaluate", {"--views=10", "--resize=6x7", "--output=out", "classes"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.out.find("accuracy 100.00% (3 of 3)"), std::string::npos) << run.out;
  EXPECT_EQ(ParseJson(ReadText(folder_ / "out/report.json"))["views"].number, 10);
  EXPECT_EQ(Count(ReadText(folder_ / "out/predictions.csv"), "\n"), 4);
}

TEST_F(Views, OfExtractAreMeansOfTheirNumbers) {
  // One pixel of each row is black; in the mean with the mirror image two are half so.
  WritePng(folder_, "black.png", Coloured(4, 4, 255, 255, 255));
  const Finished run = Run("extract", {"--blob=data", "--views=2", "--output=f.csv", "black.png"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const std::string text = ReadText(folder_ / "f.csv");
  const std::string row = text.substr(text.find("black.png"));
  EXPECT_TRUE(row.starts_with("black.png,,0.5,1,1,0.5,1,1,1,1,")) << row;
}

TEST_F(Views, SayWhatTheyNeed) {
  const Finished whole = Run("predict", {"--views=10", "images/0.png"});
  EXPECT_EQ(whole.exit_code, 2);
  EXPECT_TRUE(
      whole.Says("images/0.png: error: comes out as 4x4 (height x width) and the net's input is 4x4, so that "
                 "there are no corners to cut out of it"))
      << whole.err;
  EXPECT_TRUE(whole.Says("--shorter_side=5 (resize_shorter_side in transform_param), or take --views=2")) << whole.err;
  EXPECT_EQ(Run("predict", {"--views=10", "--shorter_side=5", "images/0.png"}).exit_code, 0);
  EXPECT_TRUE(Run("predict", {"--views=3", "images/0.png"}).Says("--views=3: expected 1, 2, 5 or 10"));
  EXPECT_TRUE(Run("detect", {"--views=2", "images/0.png"}).Says("there is no flag --views"));
}

}  // namespace
}  // namespace crema::testing_tools
