// crema generate with a net whose weights say which unit comes next.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "crema/files.h"
#include "crema/net.h"
#include "tools/program.h"

namespace crema::testing_tools {
namespace {

// Each unit is followed by the next of the vocabulary, the last one by the first, but for one time in some thousands.
constexpr char kGeneratedNet[] = R"(
layer { name: "in" type: "Input" top: "data" input_param { shape { dim: 1 dim: 2 } } }
layer { name: "next" type: "Embed" bottom: "data" top: "next" embed_param { input_dim: 4 num_output: 4 bias_term: false } }
layer { name: "prob" type: "Softmax" bottom: "next" top: "prob" softmax_param { axis: 2 } }
)";

class Generate : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_.Write("deploy.prototxt", kGeneratedNet);
    folder_.Write("chars.txt", "\\n\na\nb\n\\s\n");
    folder_.Write("words.txt", "<eos>\nto\nbe\n<unk>\n");
    Net net(ParseNet(kGeneratedNet, "deploy.prototxt"), {.phase = TEST, .backward = false});
    float scores[16] = {};
    for (int unit = 0; unit < 4; ++unit) scores[4 * unit + (unit + 1) % 4] = 10;
    net.parameters()[0].SetData(scores);
    std::ofstream(folder_ / "net.caffemodel", std::ios::binary) << net.ToProto().SerializeAsString();
  }
  Finished Run(std::vector<std::string> words) const {
    words.insert(words.begin(), {"crema", "generate", "--model=deploy.prototxt", "--weights=net.caffemodel"});
    return RunProgram(words, {.folder = folder_.path()});
  }
  const ScratchFolder folder_;
};

TEST_F(Generate, WritesCharacters) {
  EXPECT_EQ(Run({"--vocabulary=chars.txt", "--prompt=", "--length=1"}).exit_code, 0);
  const Finished run = Run({"--vocabulary=chars.txt", "--prompt=ba", "--length=6", "--temperature=0"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, "bab \nab \n");
  EXPECT_EQ(run.err, "");
  // Behind the end of a line, which is not written.
  EXPECT_EQ(Run({"--vocabulary=chars.txt", "--length=4", "--top=1"}).out, "ab \n");
}

TEST_F(Generate, WritesWords) {
  EXPECT_EQ(Run({"--vocabulary=words.txt", "--unit=word", "--prompt=be to", "--length=7", "--temperature=0"}).out,
            "be to be <unk>\nto be <unk>\n");
  // A word that is not known is read as <unk>.
  EXPECT_EQ(Run({"--vocabulary=words.txt", "--unit=word", "--prompt=or", "--length=2", "--temperature=0"}).out,
            "<unk>\nto\n");
}

TEST_F(Generate, DrawsAnewForEachSeed) {
  const auto text = [&](const std::string& seed) {
    return Run({"--vocabulary=chars.txt", "--length=200", "--temperature=8", "--seed=" + seed}).out;
  };
  EXPECT_EQ(text("7"), text("7"));
  EXPECT_NE(text("7"), text("8"));
}

TEST_F(Generate, SaysMistakes) {
  const auto expect = [&](const std::vector<std::string>& words, const std::string& part) {
    const Finished run = Run(words);
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_EQ(run.out, "");
    EXPECT_NE(run.err.find(part), std::string::npos) << run.err;
  };
  expect({"--vocabulary=chars.txt", "--prompt=bad"},
         "--prompt: \"d\" is not in chars.txt, so that the net does not know it");
  expect({"--vocabulary=chars.txt", "--temperature=-1"},
         "--temperature: 0, for the most probable text, or more was expected");
  expect({"--vocabulary=chars.txt", "--unit=line"}, "--unit=line: expected char or word");
  expect({"--vocabulary=absent.txt"}, "absent.txt");
  folder_.Write("five.txt", "a\nb\nc\nd\ne\n");
  expect({"--vocabulary=five.txt"}, "one that writes text with this vocabulary, of 5 units");
}

}  // namespace
}  // namespace crema::testing_tools
