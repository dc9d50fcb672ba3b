// Which extents of an exported net are open, and which are fixed.
#include <gtest/gtest.h>

#include "onnx/exported_net.h"

namespace crema::testing {
namespace {

TEST(OnnxExport, LeavesTheBatchOpen) {
  const Exported net = Export(kSmall);
  ASSERT_EQ(net.file.inputs.size(), 1u);
  EXPECT_EQ(net.file.inputs[0].dims, (Names{"N", "3", "8", "8"}));
  ASSERT_EQ(net.file.outputs.size(), 1u);
  EXPECT_EQ(net.file.outputs[0].name, "prob");
  EXPECT_EQ(net.file.outputs[0].dims, (Names{"N", "5"}));
  EXPECT_TRUE(net.file.notes.empty());
}

TEST(OnnxExport, TakesTheBatchThatIsGiven) {
  const Exported net = Export(kSmall, {.batch = 7});
  EXPECT_EQ(net.file.inputs[0].dims, (Names{"7", "3", "8", "8"}));
  EXPECT_EQ(net.file.outputs[0].dims, (Names{"7", "5"}));
}

TEST(OnnxExport, TakesShapesThatAreGiven) {
  const Exported net = Export(R"(layer { name: "pool" type: "Pooling" bottom: "data" top: "pool"
                                 pooling_param { kernel_size: 2 stride: 2 } })",
                              {.shapes = {{"data", {1, 3, 20, 30}}}});
  EXPECT_EQ(net.file.outputs[0].dims, (Names{"N", "3", "10", "15"}));
}

constexpr char kOneBatch[] = R"(
layer { name: "rows" type: "Reshape" bottom: "data" top: "rows" reshape_param { shape { dim: 3 dim: 128 } } }
)";

TEST(OnnxExport, SaysWhyTheBatchIsNotOpen) {
  const Exported net = Export(kOneBatch);
  EXPECT_EQ(net.file.inputs[0].dims, (Names{"2", "3", "8", "8"}));
  ASSERT_EQ(net.file.notes.size(), 1u);
  const std::string note = net.file.notes[0].ToString();
  EXPECT_NE(note.find("the batch cannot be left open: layer \"rows\" (Reshape): the new shape 3x128"),
            std::string::npos)
      << note;
  EXPECT_NE(note.find("it is 2, which --batch=N changes as far as the net allows"), std::string::npos) << note;
}

// What follows each input's first extent, not that of all together.
TEST(OnnxExport, SaysHowTheBatchOfUnlikeInputsIsChanged) {
  const std::string caption = R"(
      layer { name: "in" type: "Input" top: "x" top: "go_on" top: "feat" input_param {
              shape { dim: 1 dim: 1 dim: 3 } shape { dim: 1 dim: 1 } shape { dim: 1 dim: 9 } } }
      layer { name: "lstm" type: "LSTM" bottom: "x" bottom: "go_on" bottom: "feat" top: "h"
              recurrent_param { num_output: 5 } })";
  const Exported net = Export(caption, {}, false);
  ASSERT_EQ(net.file.notes.size(), 2u);
  const std::string note = net.file.notes[1].ToString();
  EXPECT_NE(note.find("it is 1; give another with the --shape=NAME=N,... of each input"), std::string::npos) << note;
  const Exported longer = Export(caption, {.shapes = {{"x", {4, 1, 3}}, {"go_on", {4, 1}}}}, false);
  EXPECT_EQ(longer.file.notes.size(), 1u) << "now the steps are what is open";
  EXPECT_EQ(longer.file.inputs[2].dims[0], "1");
}

TEST(OnnxExport, FixesTheBatchWhereALayerMustKnowIt) {
  const Exported net =
      Export(R"(layer { name: "halves" type: "Slice" bottom: "data" top: "a" slice_param { axis: 0 } })");
  EXPECT_EQ(net.file.inputs[0].dims[0], "N");  // one top takes all
  const Exported cut = Export(R"(
      layer { name: "more" type: "Tile" bottom: "data" top: "more" tile_param { axis: 0 tiles: 2 } }
      layer { name: "halves" type: "Slice" bottom: "more" top: "a" top: "b" slice_param { axis: 0 } })");
  EXPECT_EQ(cut.file.inputs[0].dims[0], "2");
  ASSERT_EQ(cut.file.notes.size(), 1u);
  EXPECT_NE(cut.file.notes[0].message.find("it is 2, which --batch=N changes"), std::string::npos);
  EXPECT_EQ(cut.file.notes[0].message.find("as far as"), std::string::npos);
  EXPECT_NE(cut.file.notes[0].message.find("(Slice): needs to know the extent of axis 0 of \"more\""),
            std::string::npos)
      << cut.file.notes[0].message;
}

// Memory of many sizes, which is likely to be given out at the same place again.
TEST(OnnxExport, WritesPriorsAgainWhereTheBatchBecomesFixed) {
  for (int64_t side = 2; side < 40; ++side) {
    const Exported net = Export(R"(
        layer { name: "priors" type: "PriorBox" bottom: "data" bottom: "data" top: "priors"
                prior_box_param { min_size: 2 variance: 0.5 } }
        layer { name: "more" type: "Tile" bottom: "data" top: "more" tile_param { axis: 0 tiles: 2 } }
        layer { name: "halves" type: "Slice" bottom: "more" top: "a" top: "b" slice_param { axis: 0 } })",
                                {.shapes = {{"data", {1, 1, side, side}}}});
    EXPECT_EQ(net.file.notes.size(), 1u);
    const std::vector<float> boxes = net.Constant("priors.boxes");
    ASSERT_EQ(boxes.size(), static_cast<size_t>(2 * side * side * 4));
    EXPECT_EQ(boxes[2], 1.5f / static_cast<float>(side));
    EXPECT_EQ(boxes[boxes.size() / 2], 0.5f);
  }
}

TEST(OnnxExport, NamesAnExtentOnlyWhereItIsTheBatch) {
  const Exported net =
      Export(R"(layer { name: "twice" type: "Tile" bottom: "data" top: "twice" tile_param { axis: 0 tiles: 2 } })");
  EXPECT_EQ(net.file.outputs[0].dims, (Names{"?", "3", "8", "8"}));
}

}  // namespace
}  // namespace crema::testing
