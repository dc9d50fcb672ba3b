// Nets that say several things of an image: from lists and databases with several labels to a loss that falls.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "base/random.h"
#include "image/codec.h"
#include "tools/colour_net.h"
#include "tools/patterns.h"
#include "tools/program.h"

namespace crema::testing_tools {
namespace {

class SeveralLabels : public ::testing::Test {
 protected:
  Finished Run(const std::vector<std::string>& words) const { return RunProgram(words, {.folder = folder_.path()}); }

  // The first and the last loss of the tests while `net` was trained.
  std::pair<double, double> Train(const std::string& net) const {
    folder_.Write("net.prototxt", net);
    folder_.Write("solver.prototxt",
                  "net: \"net.prototxt\" base_lr: 0.1 momentum: 0.9 lr_policy: \"fixed\" max_iter: 150 test_iter: 4\n"
                  "test_interval: 150 display: 50 random_seed: 7 snapshot_prefix: \"own\"\n");
    const Finished run = Run({"train", "--solver=solver.prototxt"});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    const auto losses = FindAll(run.err, R"(Test net output #0: loss = ([\.\deE+-]+))");
    EXPECT_EQ(losses.size(), 2u) << run.err;
    return losses.empty() ? std::pair(0.0, 0.0) : std::pair(std::stod(losses.front()), std::stod(losses.back()));
  }

  static std::string Scores(int count) {
    return "layer { name: \"scores\" type: \"InnerProduct\" bottom: \"data\" top: \"scores\"\n"
           "  inner_product_param { num_output: " +
           std::to_string(count) + " weight_filler { type: \"xavier\" } } }\n";
  }

  const ScratchFolder folder_;
};

// How bright each quarter of an image is.
TEST_F(SeveralLabels, ImagesAndNumbersTrainARegression) {
  std::string list;
  for (int i = 0; i < 64; ++i) {
    const RandomStream random(31, static_cast<uint64_t>(i));
    Image image;
    image.Resize(8, 8, 1);
    const std::string name = "image " + std::to_string(i) + ".png";
    list += name;
    for (uint64_t quarter = 0; quarter < 4; ++quarter) {
      const auto bright = static_cast<int>(random.Below(quarter, 200));
      list += " " + std::to_string((bright - 100) / 100.0);
      for (uint64_t k = 0; k < 16; ++k) {
        image.row(static_cast<int>(quarter / 2 * 4 + k / 4))[quarter % 2 * 4 + k % 4] =
            static_cast<uint8_t>(bright + static_cast<int>(random.Below(100 + 16 * quarter + k, 20)));
      }
    }
    list += "\n";
    WritePng(folder_, "images/" + name, image);
  }
  folder_.Write("list.txt", list);
  const auto data = [](const std::string& label_count) {
    return "layer { name: \"data\" type: \"ImageData\" top: \"data\" top: \"label\"\n"
           "  transform_param { scale: 0.01 mean_value: 110 }\n"
           "  image_data_param { source: \"list.txt\" root_folder: \"images/\" batch_size: 16 shuffle: true\n"
           "    is_color: false label_count: " +
           label_count + " } }\n";
  };
  const auto loss = [](const std::string& type) {
    return "layer { name: \"loss\" type: \"" + type + "\" bottom: \"scores\" bottom: \"label\" top: \"loss\" }\n";
  };
  const auto [before, after] = Train(data("4") + Scores(4) + loss("EuclideanLoss"));
  EXPECT_GT(before, 0.5);
  EXPECT_LT(after, 0.05 * before);
  // What the net says of the list, its own or one that is named, beside the numbers.
  folder_.Write("first.txt", list.substr(0, list.find('\n') + 1));
  const std::string heading = "record,label_0,label_1,label_2,label_3,0,1,2,3\nimages/image 0.png,";
  std::istringstream numbers(list.substr(list.find(".png ") + 5));
  std::vector<float> expected(4);
  for (float& number : expected) numbers >> number;
  for (const std::vector<std::string>& source :
       std::vector<std::vector<std::string>>{{}, {"--root=images", "first.txt"}}) {
    std::vector<std::string> words = {"crema",
                                      "extract",
                                      "--model=net.prototxt",
                                      "--blob=scores",
                                      "--weights=own_iter_150.caffemodel",
                                      "--output=said.csv",
                                      "--force"};
    words.insert(words.end(), source.begin(), source.end());
    const Finished extracted = Run(words);
    EXPECT_EQ(extracted.exit_code, 0) << extracted.err;
    const std::string said = ReadText(folder_ / "said.csv");
    ASSERT_TRUE(said.starts_with(heading)) << said;
    std::istringstream fields(said.substr(heading.size()));
    for (const float number : expected) {
      float label = -9;
      char comma = 0;
      fields >> label >> comma;
      EXPECT_EQ(label, number) << said;
    }
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), source.empty() ? 65 : 2);
  }
  // Nothing takes these numbers for classes.
  folder_.Write("classes.prototxt", data("1") + Scores(4) + loss("SoftmaxWithLoss"));
  const Finished evaluate = Run({"crema", "evaluate", "--model=classes.prototxt", "--weights=own_iter_150.caffemodel"});
  EXPECT_EQ(evaluate.exit_code, 2);
  EXPECT_TRUE(evaluate.Says("list.txt: error: gives numbers (label_count: 1) instead of classes")) << evaluate.err;
}

// Which of three colours are in an image.
TEST_F(SeveralLabels, ADatabaseTrainsANetThatTellsSeveralThings) {
  std::string list;
  for (int i = 0; i < 80; ++i) {
    const RandomStream random(32, static_cast<uint64_t>(i));
    int value[3];
    std::string labels;
    for (uint64_t c = 0; c < 3; ++c) {
      const bool present = random.Below(c, 2) == 1;
      labels += present ? " 1" : " 0";
      value[c] = static_cast<int>(random.Below(3 + c, 100)) + (present ? 150 : 0);
    }
    const std::string name = std::to_string(i) + ".png";
    WritePng(folder_, "images/" + name, Coloured(9, 12, value[0], value[1], value[2]));
    list += name + labels + "\n";
  }
  folder_.Write("list.txt", list);
  const Finished converted = Run({"convert_imageset", "--label_count=3", "--shuffle", "--encoded", "--shorter_side=6",
                                  "--split=train:0.8,val:0.2", "images", "list.txt", "own"});
  ASSERT_EQ(converted.exit_code, 0) << converted.err;
  EXPECT_TRUE(converted.Says("own_train_lmdb: 64 records")) << converted.err;
  const Finished forgotten = Run({"convert_imageset", "images", "list.txt", "none"});
  EXPECT_EQ(forgotten.exit_code, 2);
  EXPECT_TRUE(forgotten.Says("images can be read; label_count says how many numbers follow the path")) << forgotten.err;
  EXPECT_EQ(Run({"db_tool", "verify", "own_train_lmdb"}).exit_code, 0);
  const Finished info = Run({"db_tool", "info", "own_train_lmdb"});
  EXPECT_NE(info.out.find("labels of a record: 3\n"), std::string::npos) << info.out;
  EXPECT_NE(info.out.find("0 to 1, mean 0."), std::string::npos) << info.out;
  EXPECT_EQ(Run({"compute_image_mean", "own_train_lmdb", "mean.binaryproto"}).exit_code, 0);

  const auto data = [](const std::string& phase, const std::string& database) {
    return "layer { name: \"data\" type: \"Data\" top: \"data\" top: \"label\" include { phase: " + phase +
           " }\n  transform_param { scale: 0.01 mean_value: 120 }\n  data_param { source: \"" + database +
           "\" batch_size: 4 backend: LMDB } }\n";
  };
  const auto [before, after] = Train(data("TRAIN", "own_train_lmdb") + data("TEST", "own_val_lmdb") + Scores(3) +
                                     "layer { name: \"loss\" type: \"SigmoidCrossEntropyLoss\" bottom: \"scores\"\n"
                                     "  bottom: \"label\" top: \"loss\" }\n");
  EXPECT_GT(before, 1);
  EXPECT_LT(after, 0.2 * before);

  folder_.Write("classes.prototxt", data("TRAIN", "own_train_lmdb") + Scores(3) +
                                        "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"scores\"\n"
                                        "  bottom: \"label\" top: \"loss\" }\n");
  folder_.Write("deploy.prototxt",
                "layer { name: \"data\" type: \"Input\" top: \"data\"\n"
                "  input_param { shape { dim: 1 dim: 3 dim: 6 dim: 8 } } transform_param { scale: 0.01 } }\n" +
                    Scores(3));
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"crema", "evaluate", "--model=deploy.prototxt", "--weights=own_iter_150.caffemodel", "own_val_lmdb"},
           {"crema", "finetune", "--model=classes.prototxt", "--data=own", "--output=tuned", "--from_scratch"}}) {
    const Finished refused = Run(words);
    EXPECT_EQ(refused.exit_code, 2) << words[1];
    EXPECT_TRUE(refused.Says("has 3 labels instead of a class")) << refused.err;
  }

  // What the net says of each, beside its labels; of the deploy net, and of the one for training.
  const std::string heading = "record,label_0,label_1,label_2,0,1,2\n";
  const std::string label = R"(\n\d+_\d+\.png,[01],[01],[01],)";
  for (const std::vector<std::string>& source : std::vector<std::vector<std::string>>{
           {"--model=deploy.prototxt", "own_val_lmdb"}, {"--model=net.prototxt", "--blob=scores"}}) {
    std::vector<std::string> words = {"crema", "extract", "--weights=own_iter_150.caffemodel", "--output=said.csv",
                                      "--force"};
    words.insert(words.end(), source.begin(), source.end());
    const Finished extracted = Run(words);
    EXPECT_EQ(extracted.exit_code, 0) << extracted.err;
    const std::string said = ReadText(folder_ / "said.csv");
    EXPECT_TRUE(said.starts_with(heading)) << said;
    EXPECT_EQ(FindAll(said, "(" + label + ")").size(), 16u) << said;
  }

  // As files, and back.
  const Finished exported = Run({"db_tool", "export", "own_train_lmdb", "seen"});
  ASSERT_EQ(exported.exit_code, 0) << exported.err;
  const Finished back = Run({"convert_imageset", "--label_count=3", "--encoded", "seen", "seen/list.txt", "again"});
  ASSERT_EQ(back.exit_code, 0) << back.err;
  for (const char* index : {"--index=0", "--index=63"}) {
    const std::string first = Run({"db_tool", "peek", "own_train_lmdb", index}).out;
    const std::string second = Run({"db_tool", "peek", "again", index}).out;
    const size_t labels = first.find("  labels: ");
    ASSERT_NE(labels, std::string::npos) << first;
    EXPECT_EQ(first.substr(labels), second.substr(second.find("  labels: ")));
  }
}

}  // namespace
}  // namespace crema::testing_tools
