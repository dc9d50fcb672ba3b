// crema predict on small images whose colour is their class.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "crema/files.h"
#include "crema/net.h"
#include "report/json_reader.h"
#include "tools/colour_net.h"
#include "tools/program.h"

namespace crema::testing_tools {
namespace {

namespace fs = std::filesystem;
using testing_json::Json;
using testing_json::ParseJson;

class Predict : public ::testing::Test {
 protected:
  void SetUp() override {
    WriteColourNet(folder_);
    WritePng(folder_, "red.png", Coloured(4, 4, 0, 0, 255));
    WriteJpeg(folder_, "photos/green.JPG", Coloured(60, 45, 20, 250, 20));
    WritePng(folder_, "photos/more/blue.png", Coloured(9, 31, 255, 0, 0));
    WritePng(folder_, "photos/.hidden.png", Coloured(4, 4, 0, 0, 0));
    folder_.Write("photos/notes.txt", "no image");
  }

  Finished Run(std::vector<std::string> words) const {
    words.insert(words.begin(),
                 {"crema", "predict", "--model=deploy.prototxt", "--weights=net.caffemodel", "--threads=1"});
    return RunProgram(words, {.folder = folder_.path()});
  }

  const ScratchFolder folder_;
};

TEST_F(Predict, WritesTheBestClassesAsText) {
  const Finished run = Run({"--labels=labels.txt", "--top=2", "red.png", "photos"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  // Scores of the red one, whose first pixel is black: 0, 0, 4 * 15 / 16.
  const double red = std::exp(3.75) / (std::exp(3.75) + 2);
  char line[64];
  std::snprintf(line, sizeof line, "red.png\n  %7.2f%%  red\n  %7.2f%%  blue\n", 100 * red, 100 * (1 - red) / 2);
  EXPECT_TRUE(run.out.starts_with(line)) << run.out;
  EXPECT_NE(run.out.find("photos/green.JPG\n    94."), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("photos/more/blue.png\n"), std::string::npos) << run.out;
  EXPECT_EQ(run.out.find("hidden"), std::string::npos);
  EXPECT_EQ(run.err, "");
}

TEST_F(Predict, WritesJsonLines) {
  folder_.Write("bad.png", "not an image");
  const Finished run = Run({"--format=json", "--labels=labels.txt", "red.png", "bad.png"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  std::istringstream lines(run.out);
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  const Json first = ParseJson(line);
  EXPECT_EQ(first["image"].string, "red.png");
  ASSERT_EQ(first["predictions"].items.size(), 3u);
  EXPECT_EQ(first["predictions"].items[0]["class"].number, 2);
  EXPECT_EQ(first["predictions"].items[0]["label"].string, "red");
  EXPECT_NEAR(first["predictions"].items[0]["probability"].number, std::exp(3.75) / (std::exp(3.75) + 2), 1e-5);
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_FALSE(ParseJson(line)["error"].string.empty());
  EXPECT_TRUE(run.Says("bad.png: warning: ")) << run.err;
}

TEST_F(Predict, WritesCsv) {
  fs::copy(folder_ / "red.png", folder_ / "a,b.png");
  const Finished run = Run({"--format=csv", "--top=1", "a,b.png"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.out.starts_with("image,rank,class,label,probability\n\"a,b.png\",1,2,2,0.95")) << run.out;
}

TEST_F(Predict, RefusesWeightsWithoutTheClassifier) {
  NetParameter net;
  ASSERT_TRUE(net.ParseFromString(ReadText(folder_ / "net.caffemodel")));
  LayerParameter head = *std::find_if(net.layer().begin(), net.layer().end(),
                                      [](const LayerParameter& layer) { return layer.name() == "score"; });
  head.set_name("head_new");
  *net.add_layer() = head;
  folder_.Write("other.caffemodel", net.SerializeAsString());
  folder_.Write("headed.prototxt", ReadText(folder_ / "deploy.prototxt") +
                                       "layer { name: \"head\" type: \"InnerProduct\" bottom: \"prob\" top: \"head\"\n"
                                       "  inner_product_param { num_output: 3 } }\n");
  folder_.Write("list.txt", "red.png 2\n");
  const std::vector<std::vector<std::string>> commands = {
      {"predict", "red.png"}, {"evaluate", "list.txt"}, {"extract", "--output=f.csv", "--force", "red.png"}};
  for (const std::vector<std::string>& command : commands) {
    const auto run = [&](const std::string& flag) {
      std::vector<std::string> words = {"crema", command[0], "--model=headed.prototxt", "--weights=other.caffemodel"};
      words.insert(words.end(), command.begin() + 1, command.end());
      words.push_back(flag);
      return RunProgram(words, {.folder = folder_.path()});
    };
    const Finished refused = run("--missing=fail");
    EXPECT_EQ(refused.exit_code, 2) << command[0] << refused.out;
    EXPECT_TRUE(refused.Says("other.caffemodel: error: has nothing for layer \"head\", and ")) << refused.err;
    EXPECT_TRUE(refused.Says("it has layer \"head_new\", which no layer of the net takes")) << refused.err;
    const Finished filled = run("--missing=fill");
    EXPECT_EQ(filled.exit_code, 0) << command[0] << filled.err;
    EXPECT_TRUE(filled.Says("other.caffemodel: warning: has nothing for layer \"head\"")) << filled.err;
    const Finished not_needed = run("--blob=score");
    EXPECT_EQ(not_needed.exit_code, 0) << command[0] << not_needed.err;
    EXPECT_FALSE(not_needed.Says("\"head\"")) << not_needed.err;
  }
}

// Columns of pixels are the steps of a sequence, and their colours its labels; green is the blank.
class PredictSequences : public Predict {
 protected:
  void SetUp() override {
    Predict::SetUp();
    folder_.Write("reading.prototxt",
                  "layer { name: \"data\" type: \"Input\" top: \"data\" transform_param { scale: 0.00392156863 }\n"
                  "  input_param { shape { dim: 1 dim: 3 dim: 4 dim: 6 } } }\n"
                  "layer { name: \"steps\" type: \"Permute\" bottom: \"data\" top: \"steps\"\n"
                  "  permute_param { order: 3 order: 0 order: 1 order: 2 } }\n"
                  "layer { name: \"colours\" type: \"Reduction\" bottom: \"steps\" top: \"colours\"\n"
                  "  reduction_param { operation: MEAN axis: 3 } }\n"
                  "layer { name: \"scores\" type: \"Scale\" bottom: \"colours\" top: \"scores\"\n"
                  "  scale_param { axis: 2 } }\n"
                  "layer { name: \"labels\" type: \"CtcDecoder\" bottom: \"scores\" top: \"labels\"\n"
                  "  ctc_decoder_param { blank_label: 1 } }\n");
    const Net net(ReadNetFile((folder_ / "reading.prototxt").string()), {.phase = TEST, .backward = false});
    std::ofstream(folder_ / "reading.caffemodel", std::ios::binary) << net.ToProto().SerializeAsString();
    WriteStrip("rrb.png", {2, 2, 1, 2, 0, 0});
    WriteStrip("none.png", {1, 1, 1, 1, 1, 1});
  }

  void WriteStrip(const std::string& name, const std::vector<int>& colours) const {
    Image image = Coloured(4, 6, 0, 0, 0);
    for (int y = 0; y < 4; ++y) {
      for (int x = 0; x < 6; ++x) image.pixels[static_cast<size_t>((y * 6 + x) * 3 + colours[x])] = 255;
    }
    WritePng(folder_, name, image);
  }

  Finished Read(std::vector<std::string> words) const {
    words.insert(words.begin(), {"crema", "predict", "--model=reading.prototxt", "--weights=reading.caffemodel"});
    return RunProgram(words, {.folder = folder_.path()});
  }
};

TEST_F(PredictSequences, WritesTheirText) {
  EXPECT_EQ(Read({"rrb.png", "none.png"}).out, "rrb.png\n  2 2 0\nnone.png\n  \n");
  EXPECT_EQ(Read({"--labels=labels.txt", "rrb.png"}).out, "rrb.png\n  red red blue\n");
  folder_.Write("characters.txt", "ä\n-\nr\n");
  EXPECT_EQ(Read({"--labels=characters.txt", "rrb.png"}).out, "rrb.png\n  rrä\n");
  EXPECT_EQ(Read({"--labels=characters.txt", "--format=csv", "rrb.png"}).out, "image,text\nrrb.png,rrä\n");
  folder_.Write("spaced.txt", "b\n<blank>\n \n\n");
  EXPECT_EQ(Read({"--labels=spaced.txt", "--format=csv", "rrb.png"}).out, "image,text\nrrb.png,  b\n");
  const Finished json = Read({"--labels=labels.txt", "--format=json", "rrb.png", "none.png"});
  EXPECT_EQ(json.out,
            "{\"image\": \"rrb.png\", \"labels\": [2, 2, 0], \"text\": \"red red blue\"}\n"
            "{\"image\": \"none.png\", \"labels\": [], \"text\": \"\"}\n");
  const Finished top = Read({"--top=3", "rrb.png"});
  EXPECT_EQ(top.exit_code, 2);
  EXPECT_TRUE(top.Says("--top: the net reads texts")) << top.err;
}

TEST_F(PredictSequences, TakeANameForEachClass) {
  folder_.Write("few.txt", "b\nr\n");
  const Finished run = Read({"--labels=few.txt", "rrb.png"});
  EXPECT_NE(run.exit_code, 0);
  EXPECT_TRUE(run.Says("few.txt: error: names 2 classes, but \"labels\" of reading.prototxt")) << run.err;
}

TEST_F(PredictSequences, AreNotJudgedAsClasses) {
  WritePng(folder_, "classes/blue/1.png", Coloured(4, 6, 255, 0, 0));
  const Finished run =
      RunProgram({"crema", "evaluate", "--model=reading.prototxt", "--weights=reading.caffemodel", "classes"},
                 {.folder = folder_.path()});
  EXPECT_NE(run.exit_code, 0);
  EXPECT_TRUE(run.Says("\"labels\" holds sequences of labels, and evaluate judges classes")) << run.err;
}

TEST_F(Predict, ReadsPathsFromStdin) {
  const std::string crema = std::string(CREMA_BIN_DIR) + "/crema";
  const Finished run =
      RunProgram({"/bin/sh", "-c",
                  "printf 'red.png\\n\\nphotos/more/blue.png' | " + crema +
                      " predict --model=deploy.prototxt --weights=net.caffemodel --format=csv --top=1 -"},
                 {.folder = folder_.path()});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.out.find("red.png,1,2,"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("photos/more/blue.png,1,0,"), std::string::npos) << run.out;
  EXPECT_TRUE(Run({"-"}).Says("stdin names no image"));
}

// Lines of CSV that end in a score, whose last digits depend on how many images are multiplied at once.
void ExpectSameScores(const std::string& actual, const std::string& expected) {
  std::istringstream lines(actual), expected_lines(expected);
  std::string line, expected_line;
  while (std::getline(expected_lines, expected_line)) {
    ASSERT_TRUE(std::getline(lines, line)) << actual;
    const size_t comma = expected_line.rfind(',');
    EXPECT_EQ(line.substr(0, comma), expected_line.substr(0, comma));
    if (line == expected_line) continue;  // as the head is
    EXPECT_NEAR(std::stod(line.substr(comma + 1)), std::stod(expected_line.substr(comma + 1)), 1e-5) << line;
  }
  EXPECT_FALSE(std::getline(lines, line)) << actual;
}

TEST_F(Predict, DoesNotDependOnTheBatch) {
  for (int i = 0; i < 7; ++i) {
    WritePng(folder_, "many/" + std::to_string(i) + ".png", Coloured(4, 4, i * 30, 100, 255 - i * 30));
  }
  const Finished one = Run({"--batch=1", "--format=csv", "many"}), three = Run({"--batch=3", "--format=csv", "many"}),
                 all = Run({"--format=csv", "--data_threads=3", "many"});
  ASSERT_EQ(one.exit_code, 0) << one.err;
  EXPECT_EQ(std::count(one.out.begin(), one.out.end(), '\n'), 1 + 7 * 3);
  ExpectSameScores(one.out, three.out);
  ExpectSameScores(one.out, all.out);
}

TEST_F(Predict, TakesPreprocessingFromFlags) {
  // Without the net's scale and with means of all but red, the third class gets nothing.
  const Finished run =
      Run({"--format=csv", "--blob=score", "--scale=1", "--mean_value=1e-50, 0,+255", "--std_value=1,1,2", "red.png"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.Says("are no probabilities")) << run.err;
  // Red: 15 pixels of (255 - 255) / 2 and one of (0 - 255) / 2, times 1/4.
  EXPECT_NE(run.out.find("image,rank,class,label,score\nred.png,1,0,0,0\nred.png,2,1,1,0\nred.png,3,2,2,-31.875"),
            std::string::npos)
      << run.out;
  const Finished rgb = Run({"--format=csv", "--rgb", "--top=1", "red.png"});
  EXPECT_NE(rgb.out.find("red.png,1,0,0,0.95"), std::string::npos) << rgb.out << rgb.err;
  // Stretched to the input, the black pixel of 8x8 is a quarter of one of 4x4; cut from the centre it is left out.
  WritePng(folder_, "large.png", Coloured(8, 8, 0, 0, 255));
  const Finished stretched = Run({"--format=csv", "--blob=score", "--top=1", "large.png"});
  EXPECT_NE(stretched.out.find("large.png,1,2,2,3.93"), std::string::npos) << stretched.out;
}

TEST_F(Predict, FailsWhereItsOutputIsLost) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
  for (const char* words : {"predict --model=deploy.prototxt --weights=net.caffemodel red.png",
                            "compile --model=deploy.prototxt", "compile --help"}) {
    const Finished run =
        RunProgram({"/bin/sh", "-c", std::string(CREMA_BIN_DIR "/crema ") + words + " >/dev/full"}, {folder_.path()});
    EXPECT_EQ(run.exit_code, 1) << words;
    EXPECT_TRUE(run.Says("written to stdout")) << run.err;
  }
}

TEST_F(Predict, SkipsOrFailsAtBrokenImages) {
  std::string bytes = ReadText(folder_ / "photos/green.JPG");
  folder_.Write("photos/cut.jpg", bytes.substr(0, bytes.size() / 2));
  const Finished skip = Run({"--format=csv", "photos"});
  EXPECT_EQ(skip.exit_code, 0) << skip.err;
  EXPECT_TRUE(skip.Says("photos/cut.jpg: warning: ")) << skip.err;
  EXPECT_EQ(skip.out.find("cut.jpg"), std::string::npos);
  EXPECT_NE(skip.out.find("green.JPG"), std::string::npos);
  const Finished fail = Run({"--broken=fail", "photos"});
  EXPECT_EQ(fail.exit_code, 2);
  EXPECT_TRUE(fail.Says("photos/cut.jpg: error: ")) << fail.err;
  const Finished none = Run({"photos/cut.jpg"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_TRUE(none.Says("none of the images can be read")) << none.err;
}

TEST_F(Predict, NamesTwentyOfManyImagesWithTheSameProblem) {
  for (int i = 0; i < 25; ++i) folder_.Write("photos/empty" + std::to_string(i) + ".jpg", "");
  folder_.Write("photos/text.jpg", "not an image");
  const Finished run = Run({"--format=csv", "photos"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(Count(run.err, ".jpg: warning: is empty"), 20) << run.err;
  EXPECT_TRUE(run.Says("warning: skipped 5 more: is empty")) << run.err;
  EXPECT_TRUE(run.Says("photos/text.jpg: warning: ")) << run.err;
  for (int i = 0; i < 25; ++i) folder_.Write("classes/red/empty" + std::to_string(i) + ".jpg", "");
  fs::copy(folder_ / "red.png", folder_ / "classes/red/red.png");
  for (const std::string colour : {"blue", "green"}) {
    fs::create_directories(folder_ / "classes" / colour);
    fs::copy(folder_ / "red.png", folder_ / "classes" / colour / "red.png");
  }
  const Finished scored = RunProgram(
      {"crema", "evaluate", "--model=deploy.prototxt", "--weights=net.caffemodel", "--labels=labels.txt", "classes"},
      {.folder = folder_.path()});
  EXPECT_EQ(Count(scored.err, ".jpg: warning: is empty"), 20) << scored.err;
  EXPECT_TRUE(scored.Says("warning: skipped 5 more: is empty")) << scored.err;
}

TEST_F(Predict, SaysMistakes) {
  fs::create_directories(folder_ / "empty");
  const Finished absent = Run({"rde.png", "empty", "red.png"});
  EXPECT_EQ(absent.exit_code, 2);
  EXPECT_TRUE(absent.Says("rde.png: error: there is no such image or folder; relative paths start at")) << absent.err;
  EXPECT_TRUE(absent.Says("empty: error: holds no image")) << absent.err;
  folder_.Write("two.txt", "a\nb\n");
  EXPECT_TRUE(Run({"--labels=two.txt", "red.png"}).Says("two.txt: error: names 2 classes")) << "labels";
  EXPECT_TRUE(Run({"--format=xml", "red.png"}).Says("text, json or csv"));
  EXPECT_TRUE(Run({"--blob=nothing", "red.png"}).Says("the net has no blob \"nothing\""));
  EXPECT_TRUE(Run({"--resize=4", "red.png"}).Says("--resize=4: expected height x width"));
  EXPECT_TRUE(Run({"--mean_value=1,x", "red.png"}).Says("\"x\" is no number"));
  EXPECT_TRUE(Run({"--mean_value=1,2", "red.png"}).Says("mean_value"));
  EXPECT_TRUE(Run({"--resize=5x5", "red.png"}).Says("comes out as 3x5x5, but the net's input is 3x4x4"));
  EXPECT_TRUE(Run({}).Says("IMAGE"));
  EXPECT_TRUE(Run({"--labels=red.png", "red.png"}).Says("red.png: error: is no text"));
  EXPECT_TRUE(Run({"two.txt"}).Says("paths, one a line and without labels, are read from stdin: - <two.txt"));
  EXPECT_TRUE(Run({"http://images/cat.jpg"}).Says("http://images/cat.jpg: error: is an address"));
}

TEST_F(Predict, KnowsTheNamesOfTheZoo) {
  folder_.Write("zoo/colours/README.md",
                "---\nname: colours\nsummary: s\nparameters: 1\nflops: 1\ninput: 3x4x4\nlicense: BSD-2-Clause\n---\n");
  fs::copy(folder_ / "deploy.prototxt", folder_ / "zoo/colours/deploy.prototxt");
  const std::string zoo = "CREMA_ZOO=" + (folder_ / "zoo").string() + " ";
  const Finished run =
      RunProgram({"/bin/sh", "-c", zoo + CREMA_BIN_DIR "/crema compile --model=colours"}, {.folder = folder_.path()});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_TRUE(run.Says("--model=colours: there is no such file; the net of that name in the zoo is --model=" +
                       (folder_ / "zoo/colours/deploy.prototxt").string()))
      << run.err;
}

TEST_F(Predict, WarnsWhereNothingSaysHowValuesAreMadeReady) {
  std::string text = ReadText(folder_ / "deploy.prototxt");
  const size_t at = text.find("transform_param");
  text.erase(at, text.find('}', at) + 1 - at);
  folder_.Write("deploy.prototxt", text);
  EXPECT_TRUE(Run({"red.png"}).Says("gets bytes from 0 to 255"));
  EXPECT_EQ(Run({"--scale=0.5", "red.png"}).err, "");
}

}  // namespace
}  // namespace crema::testing_tools
