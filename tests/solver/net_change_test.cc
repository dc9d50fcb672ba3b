// Going on with another net than the one that a snapshot was written of.
#include <gtest/gtest.h>

#include "solver/training_test.h"

namespace crema {
namespace {

class ChangedNet : public SmallTraining {
 protected:
  // What is said where `now` stands in the place of `before`, and training goes on.
  std::string Said(const std::string& before, const std::string& now) {
    constexpr char kSaid[] = "another one than when the snapshot was written: ";
    std::string net = kSmallNet;
    const size_t at = net.find(before);
    EXPECT_NE(at, std::string::npos) << before;
    folder_.Write("net.prototxt", net.replace(at, before.size(), now));
    Train("", 3, {.snapshot = folder_ / "snap_iter_3.solverstate"});
    const size_t found = recorder_.notices.find(kSaid);
    EXPECT_EQ(found, recorder_.notices.rfind(kSaid)) << "said once";
    return found == std::string::npos ? "" : recorder_.notices.substr(found + sizeof kSaid - 1);
  }
  void ExpectSaid(const std::string& before, const std::string& now, const std::string& start) {
    EXPECT_EQ(Said(before, now).substr(0, start.size()), start);
  }
};

TEST_F(ChangedNet, IsSaid) {
  Train("", 3);
  ExpectSaid("\"ReLU\"", "\"TanH\"", "layer \"relu1\" is of type TanH, and was ReLU; training goes on");
  EXPECT_NE(recorder_.notices.find("net.prototxt:9:"), std::string::npos) << recorder_.notices;
  ExpectSaid("ratio: 0.4", "ratio: 0.5", "layer \"drop1\" (Dropout): dropout_param.dropout_ratio is 0.5, and was 0.4;");
  ExpectSaid("\"ReLU\"", "\"ReLU\" relu_param { negative_slope: 0.125 }",
             "layer \"relu1\" (ReLU): relu_param.negative_slope is 0.125, and was 0;");
  ExpectSaid("layer { name: \"relu1\" type: \"ReLU\" bottom: \"ip1\" top: \"ip1\" }", "",
             "layer \"relu1\" (ReLU) is gone;");
  ExpectSaid("layer { name: \"ip2\"",
             "layer { name: \"a\" type: \"AbsVal\" bottom: \"ip1\" top: \"ip1\" }\n"
             "layer { name: \"ip2\"",
             "layer \"a\" (AbsVal) is new;");
  ExpectSaid("\"drop1\" type: \"Dropout\" bottom: \"ip1\" top: \"ip1\"",
             "\"drop1\" type: \"Dropout\" bottom: \"ip1\" top: \"unused\"", "layer \"drop1\" (Dropout) is gone;");
  ExpectSaid("top: \"loss\"", "top: \"loss\" loss_weight: 2",
             "layer \"loss\" (SoftmaxWithLoss): loss_weight is 2, and was 1;");
  ExpectSaid("scale: 0.00390625", "scale: 0.5", "layer \"data\": transform_param.scale is 0.5, and was 0.00390625;");
}

TEST_F(ChangedNet, IsNoneWhereTheSameIsComputed) {
  Train("", 3);
  EXPECT_EQ(Said("", ""), "");
  EXPECT_EQ(Said("batch_size: 7", "batch_size: 8"), "");
  EXPECT_EQ(Said("lr_mult: 1", "lr_mult: 0.5"), "");
  EXPECT_EQ(Said("\"xavier\"", "\"msra\""), "");
  EXPECT_EQ(Said("\"ReLU\"", "\"ReLU\" relu_param { negative_slope: 0 engine: CUDNN }"), "");
  EXPECT_EQ(Said("\"loss\" }", "\"loss\" loss_weight: 1 }"), "");
  EXPECT_EQ(Said("top: \"accuracy\" include { phase: TEST }", "top: \"accuracy\""), "");
  EXPECT_EQ(Said("layer { name: \"data\" type: \"Data\"",
                 "layer { name: \"other\" type: \"DummyData\" top: \"other\" dummy_data_param { shape { dim: 1 } } }\n"
                 "layer { name: \"data\" type: \"Data\""),
            "");
}

}  // namespace
}  // namespace crema
