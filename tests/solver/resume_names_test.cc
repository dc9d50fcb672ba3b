// What a snapshot names goes back to its place: of layers of one name, of shared parameters, in another order, and
// behind another policy or a test.
#include <gtest/gtest.h>

#include "crema/error.h"
#include "crema/files.h"
#include "errors.h"
#include "files.h"
#include "solver/resume_test.h"

namespace crema {
namespace {

TEST_F(Resume, IsExactWithAveragesOfLayersOfOneName) {
  std::string net = kSmallNet;
  net.insert(net.find("layer { name: \"ip2\""), R"(layer { name: "same" type: "InnerProduct" bottom: "ip1" top: "ip1"
        inner_product_param { num_output: 8 weight_filler { type: "xavier" } } }
layer { name: "same" type: "InnerProduct" bottom: "ip1" top: "ip1"
        inner_product_param { num_output: 8 weight_filler { type: "xavier" } } }
layer { name: "same" type: "InnerProduct" bottom: "ip1" top: "ip1"
        inner_product_param { num_output: 8 weight_filler { type: "xavier" } } }
)");
  folder_.Write("net.prototxt", net);
  ExpectSame("momentum: 0.9 ema { decay: 0.8 }\n");
}

TEST_F(Resume, IsExactWithRecurrentLayersOfOneName) {
  std::string net = kRecurrentNet;
  net.insert(net.find("layer { name: \"ip\""),
             R"(layer { name: "lstm" type: "LSTM" bottom: "lstm" bottom: "cont" top: "second"
        recurrent_param { num_output: 5 weight_filler { type: "uniform" min: -0.5 max: 0.5 } } }
)");
  net.replace(net.find("bottom: \"lstm\" top: \"ip\""), 14, "bottom: \"second\"");
  folder_.Write("net.prototxt", net);
  ExpectSame("momentum: 0.9\n");
}

TEST_F(Resume, IsExactWithDataLayersOfOneName) {
  std::string net = kSmallNet;
  net.insert(net.find("layer { name: \"ip1\""),
             R"(layer { name: "data" type: "Data" top: "more" include { phase: TRAIN }
        data_param { source: "test_lmdb" batch_size: 5 backend: LMDB } }
layer { name: "quiet" type: "Silence" bottom: "more" include { phase: TRAIN } }
)");
  folder_.Write("net.prototxt", net);
  ExpectSame("momentum: 0.9\n");
  EXPECT_EQ(recorder_.notices.find("a batch instead of"), std::string::npos) << recorder_.notices;
  const SolverState state = LoadState(folder_ / "snap_iter_20.solverstate").state;
  ASSERT_EQ(state.data_position_size(), 2);
  EXPECT_EQ(state.data_position(1).records(), 100u);
}

// Layers that share weights, in two orders, so that another one of them is the first and the weights' owner.
TEST_F(Resume, HistoriesGoWithParametersWhateverTheOrderOfLayers) {
  const std::string net = kSmallNet;
  const std::string start = net.substr(0, net.find("layer { name: \"ip2\"")),
                    end = net.substr(net.find("layer { name: \"ip2\""));
  const auto shared = [](const std::string& name, const std::string& top) {
    return "layer { name: \"" + name + "\" type: \"InnerProduct\" bottom: \"ip1\" top: \"" + top +
           "\" param { name: \"w\" } inner_product_param { num_output: 16 bias_term: false weight_filler { type: "
           "\"xavier\" } } }\n";
  };
  const std::string alone =
      "layer { name: \"c\" type: \"InnerProduct\" bottom: \"ip1\" top: \"c\" inner_product_param { num_output: 16 "
      "bias_term: false weight_filler { type: \"xavier\" } } }\n";
  std::string sum = end;
  sum.replace(sum.find("bottom: \"ip1\""), 13, "bottom: \"sum\"");
  const std::string joined =
      "layer { name: \"sum\" type: \"Eltwise\" bottom: \"a\" bottom: \"b\" bottom: \"c\" top: \"sum\" }\n" + sum;
  std::string first = start;
  first.erase(first.find("layer { name: \"drop1\""), first.size());  // draws by the layer's place
  folder_.Write("net.prototxt", first + shared("a", "a") + alone + shared("b", "b") + joined);
  Train("momentum: 0.9\n", 20);
  const Recorder straight = recorder_;
  Train("momentum: 0.9\n", 10);
  folder_.Write("net.prototxt", first + alone + shared("b", "b") + shared("a", "a") + joined);
  Train("momentum: 0.9\n", 20, {.snapshot = folder_ / "snap_iter_10.solverstate"});
  ASSERT_EQ(recorder_.iterations.size(), 10u);
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_NEAR(recorder_.iterations[i].loss, straight.iterations[i + 10].loss, 1e-5) << i;
  }
}

TEST_F(Resume, ParametersThatTheNetSharesOtherwiseAreRefused) {
  std::string net = kSmallNet;
  const std::string own =
      "layer { name: \"a\" type: \"InnerProduct\" bottom: \"ip1\" top: \"ip1\" "
      "inner_product_param { num_output: 16 bias_term: false weight_filler { type: \"xavier\" } } }\n";
  std::string shared = own;
  shared.replace(shared.find("inner_product_param"), 0, "param { name: \"w\" } ");
  std::string other = own;
  other.replace(other.find("\"a\""), 3, "\"b\"");
  std::string other_shared = shared;
  other_shared.replace(other_shared.find("\"a\""), 3, "\"b\"");
  const size_t at = net.find("layer { name: \"ip2\"");
  folder_.Write("net.prototxt", std::string(net).insert(at, own + other));
  Train("momentum: 0.9\n", 3);
  folder_.Write("net.prototxt", std::string(net).insert(at, shared + other_shared));
  const std::string message =
      ThrownBy<UserError>([&] { Train("momentum: 0.9\n", 5, {.snapshot = folder_ / "snap_iter_3.solverstate"}); });
  EXPECT_NE(message.find("is of a net with parameter b[0], which this one does not have, or shares otherwise"),
            std::string::npos)
      << message;
}

TEST_F(Resume, APlateauBeginsAnewBehindAnotherPolicy) {
  Train("lr_policy: \"step\" gamma: 0.5 stepsize: 2 momentum: 0.9\n", 8);
  const std::string plateau = "lr_policy: \"plateau\" gamma: 0.1 plateau_winsize: 1000 display: 1 momentum: 0.9\n";
  Train(plateau, 10, {.snapshot = folder_ / "snap_iter_8.solverstate"});
  ASSERT_FALSE(recorder_.displays.empty());
  EXPECT_FLOAT_EQ(recorder_.displays.front().learning_rate, 0.05f);
}

// Where tests move running statistics, as Caffe's do.
TEST_F(Resume, StatisticsAreThoseBeforeATestThatIsBrokenOff) {
  std::string net = kSmallNet;
  net.insert(net.find("layer { name: \"relu1\""), R"(layer { name: "norm" type: "BatchNorm" bottom: "ip1" top: "ip1"
        batch_norm_param { use_global_stats: false } }
)");
  folder_.Write("net.prototxt", net);
  const std::string settings = "test_iter: 3 test_interval: 5 test_initialization: false\n";
  Train(settings, 12);
  const std::string straight = ReadFile(folder_ / "snap_iter_12.caffemodel");
  int asked_while_testing = 0;
  SolverOptions stop;
  stop.requested_action = [&] {
    const bool second_test = recorder_.iterations.size() == 10 && recorder_.tests.size() == 1;
    return second_test && ++asked_while_testing == 3 ? SolverAction::kStop : SolverAction::kNone;
  };
  EXPECT_TRUE(Train(settings, 12, std::move(stop)).stopped_early);
  Train(settings, 12, {.snapshot = folder_ / "snap_iter_10.solverstate"});
  EXPECT_TRUE(ReadFile(folder_ / "snap_iter_12.caffemodel") == straight);
}

}  // namespace
}  // namespace crema
