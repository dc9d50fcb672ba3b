// What a training tells, and the errors that end it.
#include <gtest/gtest.h>

#include "errors.h"
#include "solver/training_test.h"

namespace crema {
namespace {

namespace fs = std::filesystem;

TEST_F(SmallTraining, NamesTheRecordOfALabelThatIsToBeMixed) {
  folder_.Write("net.prototxt", MixUpNet(""));
  fs::remove_all(folder_ / "train_lmdb");
  WriteClassesWithABadLabel(folder_ / "train_lmdb", 60, 20);
  const std::string error = ThrownBy<UserError>([&] { Train("", 9); });
  EXPECT_NE(error.find("layer \"mix\" (MixUp): label 9 is outside the 3 classes"), std::string::npos) << error;
  EXPECT_NE(error.find("record \"00000020\""), std::string::npos) << error;
}

TEST_F(SmallTraining, TellsOfWeightsThatStayZero) {
  const auto train = [this](const std::string& param, const std::string& more, int outputs = 3) {
    recorder_.notices.clear();
    std::string net = kSmallNet;
    const size_t at = net.find("layer {", net.find("InnerProduct") - 40);
    net.insert(at,
               "layer { name: 'three' type: 'DummyData' top: 'three' include { phase: TRAIN }"
               "  dummy_data_param { shape { dim: [7, 3, 4, 4] } } }\n"
               "layer { name: 'up' type: 'Deconvolution' bottom: 'three' top: 'up' param { " +
                   param + " } convolution_param { num_output: " + std::to_string(outputs) +
                   " kernel_size: 2 bias_term: false " + more +
                   " } include { phase: TRAIN } }\n"
                   "layer { name: 'hush' type: 'Silence' bottom: 'up' include { phase: TRAIN } }\n");
    folder_.Write("net.prototxt", net);
    Train("", 1);
    return recorder_.notices;
  };
  const std::string found = train("lr_mult: 0", "");
  EXPECT_NE(found.find("layer \"up\" (Deconvolution) has weights of 0 and keeps them"), std::string::npos) << found;
  EXPECT_NE(found.find("write weight_filler { type: \"bilinear\" } and group: 3, which"), std::string::npos) << found;
  const std::string other = train("lr_mult: 0", "", 5);
  EXPECT_NE(other.find("(--weights), a weight_filler such as \"xavier\", or an lr_mult above 0"), std::string::npos)
      << other;
  EXPECT_EQ(train("lr_mult: 0", "weight_filler { type: 'bilinear' }").find("has weights of 0"), std::string::npos);
  EXPECT_EQ(train("lr_mult: 1", "").find("has weights of 0"), std::string::npos);
}

TEST_F(SmallTraining, TellsOfGpusThatASolverLists) {
  Train("device_id: [0, 1, 3]", 1);
  EXPECT_NE(
      recorder_.notices.find("device_id lists 3 GPUs but this run computes on the CPU; `train --gpu=0,1,3` computes "
                             "on them"),
      std::string::npos)
      << recorder_.notices;
}

TEST_F(SmallTraining, TellsWhereNothingIsLearnt) {
  Train("", 1);
  EXPECT_EQ(recorder_.notices.find("nothing will be learnt"), std::string::npos) << recorder_.notices;
  std::string net = kSmallNet;
  net.insert(net.rfind(" }"), " loss_weight: 0");
  folder_.Write("net.prototxt", net);
  Train("", 1);
  EXPECT_NE(recorder_.notices.find("nothing will be learnt: no loss"), std::string::npos) << recorder_.notices;
}

TEST_F(SmallTraining, TellsWhereTheLossStaysZero) {
  WriteDarkThenBright(folder_ / "of_class_0", 8);
  std::string net = kSmallNet;
  net.replace(net.find("train_lmdb"), 10, "of_class_0");
  folder_.Write("net.prototxt", net);
  Train("", 20);
  EXPECT_EQ(recorder_.notices.find("exactly 0"), std::string::npos) << recorder_.notices;
  net.insert(net.rfind(" }"), " loss_param { ignore_label: 0 }");
  folder_.Write("net.prototxt", net);
  Train("", 40);
  const size_t told = recorder_.notices.find("the loss was exactly 0 in each of the first 20 iterations");
  ASSERT_NE(told, std::string::npos) << recorder_.notices;
  EXPECT_EQ(recorder_.notices.find("exactly 0", told + 40), std::string::npos) << recorder_.notices;
  Train("", 3);
  EXPECT_NE(recorder_.notices.find("exactly 0 in each of the first 3 iterations"), std::string::npos)
      << recorder_.notices;
  // One of two.
  folder_.Write("net.prototxt", net +
                                    "layer { name: \"all\" type: \"SoftmaxWithLoss\" bottom: \"ip2\" "
                                    "bottom: \"label\" top: \"all\" }\n");
  Train("", 25);
  EXPECT_NE(recorder_.notices.find("the loss \"loss\" was exactly 0 in each of the first 20"), std::string::npos)
      << recorder_.notices;
}

// Class 2 is no answer of yes or no.
TEST_F(SmallTraining, TellsWhereALossIsBelowItsLowest) {
  const auto train = [&](const std::string& target) {
    folder_.Write("net.prototxt",
                  std::string(kSmallNet).substr(0, std::string(kSmallNet).find("layer { name: \"accuracy\"")) +
                      "layer { name: \"answer\" type: \"InnerProduct\" bottom: \"ip2\" top: \"answer\" "
                      "inner_product_param { num_output: 1 weight_filler { type: \"xavier\" } } }\n"
                      "layer { name: \"target\" type: \"Power\" bottom: \"label\" top: \"target\" " +
                      target +
                      " }\nlayer { name: \"loss\" type: \"SigmoidCrossEntropyLoss\" bottom: \"answer\" bottom: "
                      "\"target\" top: \"loss\" }\n");
    Train("base_lr: 0.02 clip_gradients: 1", 150);
  };
  train("power_param { scale: 2 }");
  const std::string told = "the loss of layer \"loss\" (SigmoidCrossEntropyLoss) is below 0";
  const size_t at = recorder_.notices.find(told);
  ASSERT_NE(at, std::string::npos) << recorder_.notices;
  EXPECT_EQ(recorder_.notices.find(told, at + 1), std::string::npos) << recorder_.notices;
  train("power_param { scale: 0.5 }");
  EXPECT_EQ(recorder_.notices.find(told), std::string::npos) << recorder_.notices;
}

TEST_F(SmallTraining, TellsOfClippingAndSteps) {
  std::string text = SolverText("clip_gradients: 0.001", 4);
  text.replace(text.find("\"fixed\""), 7, "\"multistep\" gamma: 0.5 stepvalue: 1 stepvalue: 3");
  Make(text)->Train();
  ASSERT_EQ(recorder_.clipped.size(), 4u);
  EXPECT_GT(recorder_.clipped[0].norm, 0.001f);
  ASSERT_EQ(recorder_.steps.size(), 2u);
  EXPECT_EQ(recorder_.steps[1].iteration, 3);
  EXPECT_EQ(recorder_.steps[1].step, 2);
}

TEST_F(SmallTraining, NonFiniteLossNamesIterationAndCause) {
  std::string text = SolverText("base_lr: 1e30", 20);
  const auto solver = Make(text);
  const std::string message = ThrownBy<EnvironmentError>([&] { solver->Train(); });
  EXPECT_NE(message.find("iteration "), std::string::npos) << message;
  EXPECT_NE(message.find("The first values that are not finite: "), std::string::npos) << message;
  EXPECT_NE(message.find("Lower base_lr (now 1e+30)"), std::string::npos) << message;
  EXPECT_EQ(recorder_.ends.size(), 0u);
}

TEST_F(SmallTraining, UnwritablePrefixFailsBeforeTraining) {
  const std::string message =
      ThrownBy<EnvironmentError>([&] { Train("snapshot_prefix: \"" + (folder_ / "absent/snap") + "\"", 1); });
  EXPECT_NE(message.find("absent/snap"), std::string::npos) << message;
  EXPECT_NE(message.find("does its folder exist?"), std::string::npos) << message;
  EXPECT_TRUE(recorder_.starts.empty());
}

TEST_F(SmallTraining, SaysWhatItDoesNotDo) {
  Train("solver_mode: GPU", 1);
  EXPECT_NE(recorder_.notices.find("computes on the CPU"), std::string::npos) << recorder_.notices;
  Train("", 1);
  EXPECT_EQ(recorder_.notices, "");
}

TEST_F(SmallTraining, MissingNetNamesTheFoldersSearched) {
  std::string text = SolverText("", 1);
  text.replace(text.find("net.prototxt"), 12, "nets.prototxt");
  const std::string message = ThrownBy<UserError>([&] { Make(text); });
  EXPECT_NE(message.find("solver.prototxt:1:"), std::string::npos) << message;
  EXPECT_NE(message.find("\"nets.prototxt\" does not exist; looked in the working directory " +
                         std::filesystem::current_path().string() + ", " + folder_.path()),
            std::string::npos)
      << message;
}

TEST_F(SmallTraining, MissingNetNamesThePlaceholderInItsPath) {
  std::string text = SolverText("", 1);
  text.replace(text.find("net.prototxt"), 12, "${NET}.prototxt");
  const std::string message = ThrownBy<UserError>([&] { Make(text); });
  EXPECT_NE(message.find("; a script was to fill in ${NET}, as DeepLab's run_pascal.sh does"), std::string::npos)
      << message;
}

}  // namespace
}  // namespace crema
