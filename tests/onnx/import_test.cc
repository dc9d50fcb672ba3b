// What comes out of an import, and what is refused.
#include "onnx/import.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "base/float16.h"
#include "errors.h"
#include "onnx/made_model.h"
#include "onnx/runtime_comparison.h"
#include "report/probe.h"

namespace crema::testing {
namespace {

using onnx::Int;
using onnx::Ints;
using onnx::TensorProto;

class OnnxImport : public ::testing::Test {
 protected:
  ImportedNet Import(const MadeModel& model, const OnnxImportOptions& options = {}) const {
    model.Write(path_);
    return ImportOnnxModel(path_, options);
  }
  std::string ErrorOf(const MadeModel& model, const OnnxImportOptions& options = {}) const {
    return ThrownBy<UserError>([&] { Import(model, options); });
  }
  void ExpectError(const MadeModel& model, const std::string& part, const OnnxImportOptions& options = {}) const {
    const std::string error = ErrorOf(model, options);
    EXPECT_NE(error.find(part), std::string::npos) << error;
    EXPECT_NE(error.find("model.onnx"), std::string::npos) << error;
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "model.onnx";
};

std::vector<std::string> NamesOf(const ImportedNet& imported) {
  std::vector<std::string> names;
  for (const LayerParameter& layer : imported.net.layer()) names.push_back(layer.name() + " " + layer.type());
  return names;
}

// Conv, BatchNormalization, Relu, Dropout, Flatten, Gemm as PyTorch writes them.
MadeModel Classifier() {
  MadeModel m({1, 3, 8, 8});
  m.Node("Conv", {"x", m.Weights("body.conv.weight", {4, 3, 3, 3})}, {"c"},
         {Ints("pads", {1, 1, 1, 1}), Ints("strides", {2, 2})})
      .set_name("/body/conv/Conv");
  m.Node("BatchNormalization",
         {"c", m.Weights("body.bn.weight", {4}), m.Weights("body.bn.bias", {4}), m.Weights("mean", {4}),
          m.Floats("var", {4}, {1, 2, 1, 2})},
         {"b"})
      .set_name("/body/bn/BatchNormalization");
  m.Node("Relu", {"b"}, {"r"}).set_name("/body/relu \"1\"");
  m.Node("Dropout", {"r"}, {"d"}).set_name("");
  m.Node("Flatten", {"d"}, {"f"}).set_name("/body/relu \"1\"");
  m.Node("Gemm", {"f", m.Weights("fc.weight", {5, 64}), m.Weights("fc.bias", {5})}, {"y"}, {Int("transB", 1)})
      .set_name("last");
  return m;
}

TEST_F(OnnxImport, NamesLayersAsTheUserKnowsThem) {
  const ImportedNet imported = Import(Classifier());
  EXPECT_EQ(NamesOf(imported), (std::vector<std::string>{"x Input", "body.conv Convolution", "body.bn BatchNorm",
                                                         "body.bn/scale Scale", "body/relu__1_ ReLU", "d Dropout",
                                                         "body/relu__1__2 Flatten", "fc InnerProduct"}));
  EXPECT_EQ(imported.net.layer(7).top(0), "y");
  EXPECT_EQ(imported.outputs[0].name, "y");
  EXPECT_EQ(imported.outputs[0].shape, (Shape{1, 5}));
  EXPECT_EQ(imported.parameters, 4 * 27 + 2 * 4 + 1 + 8 + 5 * 64 + 5);
  const ConvolutionParameter& conv = imported.net.layer(1).convolution_param();
  EXPECT_EQ(conv.kernel_size_size(), 1);
  EXPECT_EQ(conv.pad(0), 1u);
  EXPECT_FALSE(conv.has_group());
  EXPECT_EQ(conv.dilation_size(), 0);
  EXPECT_FALSE(imported.net.layer(2).batch_norm_param().has_use_global_stats());
}

// In TRAIN the statistics of a batch are taken, and the weights move.
TEST_F(OnnxImport, CanBeTrained) {
  ImportedNet imported = Import(Classifier());
  LayerParameter* loss = imported.net.add_layer();
  loss->set_name("loss");
  loss->set_type("EuclideanLoss");
  loss->add_bottom("y");
  loss->add_bottom("wanted");
  loss->add_top("loss");
  LayerParameter* wanted = imported.net.add_layer();
  *wanted = imported.net.layer(0);
  wanted->set_name("wanted");
  wanted->set_top(0, "wanted");
  wanted->mutable_input_param()->mutable_shape(0)->clear_dim();
  wanted->mutable_input_param()->mutable_shape(0)->add_dim(1);
  wanted->mutable_input_param()->mutable_shape(0)->add_dim(5);
  imported.net.mutable_layer()->SwapElements(imported.net.layer_size() - 1, imported.net.layer_size() - 2);
  Net net(MakeNetFile(imported.net, {}), {.phase = TRAIN});
  int trained = 0;
  for (const Parameter& parameter : net.parameters()) trained += parameter.trained ? 1 : 0;
  EXPECT_EQ(trained, 5);  // conv, scale and shift, fc with its bias
}

TEST_F(OnnxImport, LeavesTheBatchOpenInTheNet) {
  MadeModel m = Classifier();
  m.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_param(
      "N");
  EXPECT_EQ(Import(m).inputs[0].shape, (Shape{1, 3, 8, 8}));
  const ImportedNet two = Import(m, {.batch = 2});
  EXPECT_EQ(two.outputs[0].shape, (Shape{2, 5}));
  // As the prototxt for one is edited, too.
  EXPECT_EQ(RunnableNet(Import(m), {{"x", {4, 3, 8, 8}}})->blob("y").shape(), (Shape{4, 5}));
  ExpectError(Classifier(), "--batch: the file fixes the batch", {.batch = 2});
}

TEST_F(OnnxImport, WantsExtentsThatAreOpen) {
  MadeModel m = Classifier();
  auto* shape = m.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  shape->mutable_dim(2)->set_dim_param("height");
  ExpectError(m, "input \"x\": axis 2 of 1x3xheightx8 has no fixed extent; give it: --shape=x=1,3,224,224");
  EXPECT_EQ(Import(m, {.shapes = {{"x", {1, 3, 8, 8}}}}).outputs[0].shape, (Shape{1, 5}));
  ExpectError(m, "--shape=z=...: has no input of this name", {.shapes = {{"z", {1}}}});
  m.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  ExpectError(m, "the file does not say its shape");
  ExpectError(Classifier(), "node \"last\" (Gemm): the extents of its weights", {.shapes = {{"x", {1, 3, 4, 4}}}});
}

TEST_F(OnnxImport, NamesEveryOperatorThatIsMissing) {
  MadeModel m;
  m.Node("Relu", {"x"}, {"r"});
  m.Node("RNN", {"r"}, {"l"});
  m.Node("Whirl", {"l"}, {"w"});
  m.Node("Whirl", {"w"}, {"w2"});
  m.Node("QLinearConv", {"w2"}, {"q"});
  m.Node("If", {"q"}, {"o"});
  m.Node("RandomUniformLike", {"o"}, {"i"});
  m.Node("FusedConv", {"i"}, {"y"}).set_domain("com.example");
  m.Node("Nothing", {"x"}, {"unused"});
  const std::string error = ErrorOf(m);
  for (const char* part :
       {"node \"l\" (RNN): crema's RNN has a layer of weights behind each step",
        "node \"w\" (Whirl) and 1 more: crema has no form", "node \"q\" (QLinearConv): the model is quantised",
        "node \"o\" (If): crema's nets have no branches",
        "node \"i\" (RandomUniformLike): makes random numbers, as a model does that is trained; call model.eval()",
        "node \"y\" (FusedConv): is of the domain \"com.example\""}) {
    EXPECT_NE(error.find(part), std::string::npos) << part << "\n" << error;
  }
  EXPECT_EQ(error.find("Nothing"), std::string::npos) << error;
}

TEST_F(OnnxImport, SaysWhatANodeDoesThatCremaCannot) {
  MadeModel m;
  m.Node("Conv", {"x", m.Weights("w", {4, 2, 3, 3})}, {"a"});
  m.Node("MaxPool", {"a"}, {"never reached"}, {Ints("kernel_shape", {2, 2})});
  m.Node("MaxPool", {"x"}, {"b"}, {Ints("kernel_shape", {2, 2}), Ints("dilations", {2, 2})});
  m.Node("Add", {"never reached", "b"});
  const std::string error = ErrorOf(m);
  EXPECT_NE(
      error.find("node \"a\" (Conv): the extents of its weights, 4x2x3x3, do not fit what it reads: 4x3x3x3 would"),
      std::string::npos)
      << error;
  EXPECT_NE(error.find("node \"b\" (MaxPool): dilates its windows"), std::string::npos) << error;
  EXPECT_EQ(error.find("never reached"), std::string::npos) << error;
}

TEST_F(OnnxImport, PoolsNeitherLinesNorMoreThanVolumes) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{1, 2, 8}, std::vector<int64_t>{1, 2, 4, 4, 4, 4}}) {
    MadeModel m(shape);
    m.Node("MaxPool", {"x"}, {"y"}, {Ints("kernel_shape", std::vector<int64_t>(shape.size() - 2, 2))});
    const std::string error = ErrorOf(m);
    EXPECT_NE(error.find("; crema pools over height and width, and depth of volumes"), std::string::npos) << error;
  }
}

TEST_F(OnnxImport, KeepsOutputsThatOthersRead) {
  MadeModel m({1, 4});
  m.Node("Tanh", {"x"}, {"t"});
  m.Node("Relu", {"t"});
  m.Node("Identity", {"t"}, {"same"});
  m.AddOutput("t");
  m.AddOutput("same");
  m.AddOutput("x2");
  m.Node("Identity", {"x"}, {"x2"});
  const ImportedNet imported = Import(m);
  EXPECT_GT(imported.weights.layer_size(), 0) << "else nothing takes their file for one of weights";
  const std::unique_ptr<Net> net = RunnableNet(imported);
  std::vector<std::string> outputs;
  for (const NetOutput& output : net->outputs()) outputs.push_back(output.name);
  EXPECT_EQ(outputs, (std::vector<std::string>{"same", "t", "x2", "y"}));
}

TEST_F(OnnxImport, KeepsEveryNameOfAnOutput) {
  for (const bool read : {false, true}) {
    MadeModel m({1, 4});
    m.Node("Tanh", {"x"}, {"t"});
    m.Node("Identity", {"t"}, {"same"});
    m.Node("Identity", {"same"}, {"again"});
    m.Node("Relu", {read ? "same" : "x"});
    for (const char* name : {"again", "t", "same"}) m.AddOutput(name);
    const ImportedNet imported = Import(m);
    const std::unique_ptr<Net> net = RunnableNet(imported);
    for (int i = 0; i < 4; ++i) net->inputs()[0].value.f32()[i] = static_cast<float>(i);
    net->Forward();
    std::set<std::string> names;
    for (const NetOutput& output : net->outputs()) {
      names.insert(output.name);
      const bool positive = output.name == "y" && !read;
      EXPECT_FLOAT_EQ(output.value.f32()[2], positive ? 2.0f : std::tanh(2.0f)) << output.name;
    }
    EXPECT_EQ(names, (std::set<std::string>{"again", "same", "t", "y"}));
  }
}

TEST_F(OnnxImport, AddsASoftmax) {
  const ImportedNet imported = Import(Classifier(), {.softmax = true});
  EXPECT_EQ(NamesOf(imported).back(), "prob Softmax");
  EXPECT_EQ(imported.outputs[0].name, "prob");
  MadeModel probabilities({1, 4});
  probabilities.Node("Softmax", {"x"});
  ExpectError(probabilities, "--softmax: the output \"y\" is of a Softmax already", {.softmax = true});
}

TEST_F(OnnxImport, SwapsChannels) {
  MadeModel m({1, 3, 1, 2});
  m.Node("Relu", {"x"});
  const std::unique_ptr<Net> net = RunnableNet(Import(m, {.swap_channels = true}));
  for (int i = 0; i < 6; ++i) net->inputs()[0].value.f32()[i] = static_cast<float>(i);
  net->Forward();
  const float* y = net->blob("y").f32();
  EXPECT_EQ(std::vector<float>(y, y + 6), (std::vector<float>{4, 5, 2, 3, 0, 1}));
  MadeModel rows({1, 3});
  rows.Node("Relu", {"x"});
  ExpectError(rows, "--swap_channels: no input is N x 3 x height x width", {.swap_channels = true});
}

// --- Constants in every form ---

TEST_F(OnnxImport, ReadsAllFormsOfNumbers) {
  const std::vector<float> values = {0.5F, -1.25F, 3};
  std::vector<std::function<void(TensorProto*)>> forms;
  forms.emplace_back([&](TensorProto* t) {
    t->set_data_type(TensorProto::FLOAT);
    for (const float value : values) t->add_float_data(value);
  });
  forms.emplace_back([&](TensorProto* t) {
    t->set_data_type(TensorProto::DOUBLE);
    for (const float value : values) t->add_double_data(value);
  });
  for (const bool raw : {false, true}) {
    forms.emplace_back([&, raw](TensorProto* t) {
      t->set_data_type(TensorProto::FLOAT16);
      for (const float value : values) {
        const Float16 half(value);
        if (raw) t->mutable_raw_data()->append(reinterpret_cast<const char*>(&half), 2);
        if (!raw) t->add_int32_data(half.bits);
      }
    });
  }
  forms.emplace_back([&](TensorProto* t) {
    t->set_data_type(TensorProto::FLOAT);
    t->set_data_location(TensorProto::EXTERNAL);
    std::ofstream(folder_ / "weights.bin", std::ios::binary)
        .write("skip", 4)
        .write(reinterpret_cast<const char*>(values.data()), 12);
    for (const auto& [key, value] : {std::pair{"location", "weights.bin"}, {"offset", "4"}, {"length", "12"}}) {
      onnx::StringStringEntryProto* entry = t->add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
  });
  for (const auto& form : forms) {
    MadeModel m({2, 3});
    m.Node("Add", {"x", "c"});
    TensorProto* tensor = m.graph().add_initializer();
    tensor->set_name("c");
    tensor->add_dims(3);
    form(tensor);
    const ImportedNet imported = Import(m);
    const auto& data = imported.weights.layer(0).blobs(0).data();
    EXPECT_EQ(std::vector<float>(data.begin(), data.end()), values);
  }
}

TEST_F(OnnxImport, SaysWhatOfNormalizationsHasNoForm) {
  const auto refuses = [&](const std::string& part, int64_t set, const std::function<void(MadeModel&)>& make) {
    MadeModel m({2, 6, 4}, set);
    make(m);
    ExpectError(m, part);
  };
  refuses("erf in x * (1 + erf(x / sqrt(2))) / 2 alone", 17, [](MadeModel& m) { m.Node("Erf", {"x"}); });
  refuses("erf in x * (1 + erf(x / sqrt(2))) / 2 alone", 17, [](MadeModel& m) {
    m.Node("Div", {"x", m.Floats("root", {}, {1.41421356F})}, {"d"});
    m.Node("Erf", {"d"}, {"e"});
    m.Node("Add", {"e", m.Floats("one", {}, {1})}, {"a"});
    m.Node("Mul", {"a", "d"});
  });
  refuses("its approximation is \"none at all\"", 20,
          [](MadeModel& m) { m.Node("Gelu", {"x"}, {"y"}, {onnx::String("approximate", "none at all")}); });
  refuses("its means or deviations are read", 17, [](MadeModel& m) {
    m.Node("LayerNormalization", {"x", m.Weights("s", {4})}, {"n", "mean"});
    m.Node("Add", {"n", "mean"});
  });
  refuses("its scale or bias is 6; 4 is possible", 17, [](MadeModel& m) {
    m.Node("LayerNormalization", {"x", m.Weights("s", {6})});
  });
  refuses("up to operator set 20 its scale is one for each group", 18, [](MadeModel& m) {
    m.Node("GroupNormalization", {"x", m.Weights("s", {2}), m.Weights("b", {2})}, {"y"}, {Int("num_groups", 2)});
  });
  refuses("its num_groups is 4, of 2x6x4", 21, [](MadeModel& m) {
    m.Node("GroupNormalization", {"x", m.Weights("s", {6}), m.Weights("b", {6})}, {"y"}, {Int("num_groups", 4)});
  });
}

TEST_F(OnnxImport, RefusesDeformableConvolutionsOfOtherForms) {
  const auto refuses = [&](const std::string& part, const MadeModel::Dims& input, const MadeModel::Dims& weights,
                           const MadeModel::Attributes& attributes) {
    MadeModel m(input, 19);
    m.Node("Conv", {"x", m.Weights("wo", weights)}, {"o"}, {});
    m.Node("DeformConv", {"x", m.Weights("w", weights), "o"}, {"y"}, attributes);
    ExpectError(m, part);
  };
  refuses("pads one side by more than the other", {2, 3, 9, 8}, {18, 3, 3, 3}, {onnx::Ints("pads", {0, 0, 1, 1})});
  refuses("only images have that form here", {2, 3, 5, 9, 8}, {18, 3, 3, 3, 3}, {});
  refuses("its offset_group is 0", {2, 3, 9, 8}, {18, 3, 3, 3}, {Int("offset_group", 0)});
  refuses("takes offsets of 2x36x7x6", {2, 4, 9, 8}, {18, 4, 3, 3}, {Int("offset_group", 2)});
}

TEST_F(OnnxImport, TellsWhereTheBatchIsNotOpen) {
  MadeModel open({onnx::kOpen, 4, 10});
  open.Node("Flatten", {"x"});
  EXPECT_TRUE(Import(open).notes.empty());
  // The batch of the export was 1.
  MadeModel fixed({onnx::kOpen, 4, 10});
  fixed.Node("Reshape", {"x", fixed.Integers("shape", {1, 40})});
  const ImportedNet imported = Import(fixed);
  ASSERT_EQ(imported.notes.size(), 1u);
  EXPECT_NE(imported.notes[0].ToString().find("model.onnx: note: holds for batches of 1 only"), std::string::npos)
      << imported.notes[0].ToString();
  EXPECT_EQ(Import(fixed, {.shapes = {{"x", {1, 4, 10}}}}).notes.size(), 1u);
  EXPECT_TRUE(Import(open, {.shapes = {{"x", {1, 4, 10}}}}).notes.empty());
  // Of one item the batch is squeezed away.
  MadeModel squeezed({onnx::kOpen, 1, 10});
  squeezed.Node("Squeeze", {"x"}, {"s"});
  squeezed.Node("Unsqueeze", {"s", squeezed.Integers("axes", {0})});
  EXPECT_EQ(Import(squeezed).notes.size(), 1u);
  // What is repeated for each item, and not joined to it, has the number of items.
  MadeModel repeated({onnx::kOpen, 4, 10});
  repeated.Node("Shape", {"x"}, {"s"});
  repeated.Node("Slice", {"s", repeated.Integers("from", {0}), repeated.Integers("to", {1})}, {"n"});
  repeated.Node("Concat", {"n", repeated.Integers("rest", {1, 10})}, {"target"}, {Int("axis", 0)});
  repeated.Node("ConstantOfShape", {"target"}, {"token"});
  MadeModel joined = repeated;
  joined.Node("Concat", {"x", "token"}, {"y"}, {Int("axis", 1)});
  EXPECT_TRUE(Import(joined, {.batch = 2}).notes.empty());
  repeated.Node("Add", {"x", "token"});
  const ImportedNet two = Import(repeated, {.batch = 2});
  ASSERT_EQ(two.notes.size(), 1u);
  EXPECT_NE(two.notes[0].message.find("holds for batches of 2 only; import it with --batch=N for another"),
            std::string::npos)
      << two.notes[0].message;
}

// PyTorch writes the nodes of constants right before those that read them.
TEST_F(OnnxImport, KnowsConstantsThatStandFurtherBack) {
  const auto constant = [](MadeModel& m, const std::string& name, float value) {
    onnx::AttributeProto attribute = Int("value", 0);
    attribute.set_type(onnx::AttributeProto::TENSOR);
    attribute.mutable_t()->set_data_type(TensorProto::FLOAT);
    attribute.mutable_t()->add_float_data(value);
    m.Node("Constant", {}, {name}, {attribute});
  };
  MadeModel m({2, 4, 4});
  m.Node("MatMul", {"x", "x"}, {"p"});
  constant(m, "root", 4);
  m.Node("Div", {"p", "root"}, {"d"});
  constant(m, "two", 1.4142135F);
  m.Node("Div", {"d", "two"}, {"e"});
  m.Node("Erf", {"e"}, {"f"});
  constant(m, "one", 1);
  m.Node("Add", {"f", "one"}, {"g"});
  m.Node("Mul", {"d", "g"}, {"h"});
  constant(m, "half", 0.5F);
  m.Node("Mul", {"h", "half"});
  const ImportedNet imported = Import(m);
  ASSERT_EQ(imported.net.layer_size(), 3) << imported.net.DebugString();
  EXPECT_EQ(imported.net.layer(1).type(), "MatMul");
  EXPECT_EQ(imported.net.layer(1).matmul_param().scale(), 0.25F);
  EXPECT_EQ(imported.net.layer(2).type(), "GELU");
}

}  // namespace
}  // namespace crema::testing
