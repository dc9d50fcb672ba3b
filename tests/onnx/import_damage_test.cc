// Files that are damaged, or made to do harm: each is an error that names the file and what is wrong in it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "errors.h"
#include "onnx/import.h"
#include "onnx/made_model.h"
#include "onnx/runtime_comparison.h"

namespace crema::testing {
namespace {

namespace fs = std::filesystem;

using onnx::Int;
using onnx::Ints;
using onnx::NodeProto;
using onnx::String;
using onnx::TensorProto;

class DamagedOnnx : public ::testing::Test {
 protected:
  std::string ErrorOfBytes(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary) << bytes;
    return ThrownBy<UserError>([&] { ImportOnnxModel(path_, {}); });
  }
  void Expect(const MadeModel& model, const std::string& part) const {
    const std::string error = ErrorOfBytes(model.Bytes());
    EXPECT_NE(error.find(part), std::string::npos) << part << "\n" << error;
    EXPECT_NE(error.find("model.onnx"), std::string::npos) << error;
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "model.onnx";
};

// y = Conv(x) with a bias.
MadeModel Convolution() {
  MadeModel m({1, 3, 6, 6});
  m.Node("Conv", {"x", m.Weights("w", {2, 3, 3, 3}), m.Weights("b", {2})});
  return m;
}

TensorProto* Weights(MadeModel* m) { return m->graph().mutable_initializer(0); }

TEST_F(DamagedOnnx, IsNoModel) {
  EXPECT_NE(ErrorOfBytes("").find("model.onnx: error: is no file of ONNX"), std::string::npos);
  EXPECT_NE(ErrorOfBytes("layer { name: \"x\" }").find("is no file of ONNX"), std::string::npos);
  MadeModel old = Convolution();
  old.model().set_ir_version(2);
  Expect(old, "is of version 2 of the format; those from 3 on are read");
  MadeModel set = Convolution();
  set.model().mutable_opset_import(0)->set_version(6);
  Expect(set, "is of operator set 6; those from 7 on are read");
  EXPECT_THROW(ImportOnnxModel(folder_ / "absent.onnx", {}), UserError);
  EXPECT_THROW(ImportOnnxModel(folder_.path(), {}), UserError);
}

// Every part of a file, and every file with one byte changed: an error or a net, nothing else.
TEST_F(DamagedOnnx, IsCutOrChanged) {
  const std::string bytes = Convolution().Bytes();
  size_t refused = 0;
  const auto look = [&](const std::string& damaged) {
    const std::string error = ErrorOfBytes(damaged);
    refused += !error.empty();
    EXPECT_TRUE(error.empty() || error.find("model.onnx") != std::string::npos) << error;
    return error;
  };
  for (size_t size = 0; size < bytes.size(); size += 3) EXPECT_NE(look(bytes.substr(0, size)), "") << size;
  refused = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const char value : {'\x00', '\x7f', '\xff', static_cast<char>(bytes[i] + 1)}) {
      std::string changed = bytes;
      changed[i] = value;
      look(changed);
    }
  }
  EXPECT_GT(refused, bytes.size());  // of four times as many: weights may be any numbers
}

TEST_F(DamagedOnnx, HasTensorsThatAreNone) {
  MadeModel more = Convolution();
  Weights(&more)->set_dims(0, 3);
  Expect(more, "node \"y\" (Conv): tensor \"w\": its extents 3x3x3x3 want 324 bytes, but the file has 216");
  MadeModel below = Convolution();
  Weights(&below)->set_dims(0, -2);
  Expect(below, "tensor \"w\": no tensor can have the extents -2x3x3x3");
  MadeModel huge = Convolution();
  Weights(&huge)->set_dims(0, int64_t{1} << 62);
  Expect(huge, "no tensor can have the extents");
  MadeModel text = Convolution();
  Weights(&text)->set_data_type(8);
  Expect(text, "tensor \"w\": its type (8 in ONNX's list) is none that crema computes with");
  MadeModel fields = Convolution();
  Weights(&fields)->clear_raw_data();
  Expect(fields, "want 54 elements, but the file has 0");
  MadeModel whole = Convolution();
  Weights(&whole)->set_data_type(TensorProto::INT32);
  Expect(whole, "the weights must be floats");
  MadeModel input = Convolution();
  input.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(2)->set_dim_value(
      -6);
  Expect(input, "input \"x\": nothing can have the shape 1x3x-6x6");
  MadeModel large = Convolution();
  large.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(2)->set_dim_value(
      int64_t{1} << 50);
  Expect(large, "input \"x\": nothing can have the shape");
}

TEST_F(DamagedOnnx, ReadsOtherFiles) {
  std::ofstream(folder_ / "w.bin", std::ios::binary) << std::string(100, '\0');
  fs::create_symlink("/etc/hostname", folder_ / "link");
  const auto external = [&](const std::string& location, const std::string& offset, const std::string& length) {
    MadeModel m = Convolution();
    Weights(&m)->clear_raw_data();
    Weights(&m)->set_data_location(TensorProto::EXTERNAL);
    for (const auto& [key, value] : {std::pair{"location", location}, {"offset", offset}, {"length", length}}) {
      if (value.empty()) continue;
      onnx::StringStringEntryProto* entry = Weights(&m)->add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
    return m;
  };
  for (const char* outside : {"/etc/hostname", "../w.bin", "a/../../w.bin", "link", ""}) {
    Expect(external(outside, "", ""), "is outside the model's folder, which is not read");
  }
  Expect(external("absent.bin", "", ""), "is missing; put the file beside the model");
  Expect(external("w.bin", "", ""), "takes 216 bytes from byte 0 of");
  Expect(external("w.bin", "9223372036854775807", ""), "takes 216 bytes from byte 9223372036854775807 of");
  Expect(external("w.bin", "-1", ""), "offset \"-1\" of its external data is no number of bytes");
  Expect(external("w.bin", "0", "100"), "want 216 bytes, but its external data has 100");
}

TEST_F(DamagedOnnx, HasAGraphThatIsNone) {
  MadeModel circle({1, 4});
  circle.Node("Relu", {"b"}, {"a"});
  circle.Node("Relu", {"a"}, {"b"});
  circle.Node("Add", {"x", "b"});
  Expect(circle, "node \"a\" (Relu): reads \"b\", which is made by itself or behind it");
  MadeModel absent({1, 4});
  absent.Node("Add", {"x", "nobody's"});
  Expect(absent, "node \"y\" (Add): reads \"nobody's\", which nothing in the file makes");
  MadeModel twice({1, 4});
  twice.Node("Relu", {"x"});
  twice.Node("Tanh", {"x"});
  Expect(twice, "node \"y\" (Tanh): makes \"y\", which the file has already");
  MadeModel none({1, 4});
  none.Node("Relu", {"x"}, {"a"});
  Expect(none, "output \"y\": nothing in the file makes it");
  MadeModel constant({1, 4});
  constant.Node("Neg", {constant.Weights("c", {3})});
  Expect(constant, "nothing in it depends on an input");
}

TEST_F(DamagedOnnx, HasNodesThatAreNone) {
  const auto node = [&](const std::string& op, const MadeModel::Names& inputs, const MadeModel::Attributes& attributes,
                        const std::string& part) {
    MadeModel m({1, 3, 6, 6});
    m.Integers("one", {1});
    m.Integers("many", {int64_t{1} << 40, int64_t{1} << 40});
    m.Weights("w", {2, 3, 3, 3});
    m.Node(op, inputs, {"y"}, attributes);
    Expect(m, "node \"y\" (" + op + "): " + part);
  };
  const onnx::AttributeProto kernel = Ints("kernel_shape", {2, 2});
  node("Conv", {"x"}, {}, "has no input 1");
  node("Conv", {"x", "x"}, {}, "the weights must be constant, but \"x\" is computed");
  node("Conv", {"x", "w"}, {Ints("pads", {1, 1})}, "attribute pads has 2 numbers, 4 are needed");
  node("Conv", {"x", "w"}, {Ints("pads", {0, 0, int64_t{1} << 40, 0})}, "attribute pads holds 1099511627776");
  node("Conv", {"x", "w"}, {Ints("pads", {0, 0, 1 << 20, 1 << 20})}, "pads one side by too much more");
  node("Conv", {"x", "w"}, {Ints("strides", {0, 1})}, "attribute strides holds 0");
  node("Conv", {"x", "w"}, {Int("pads", 1)}, "attribute pads must be whole numbers");
  node("Conv", {"x", "w"}, {Int("group", -1)}, "its group is -1");
  node("Conv", {"x", "w"}, {kernel}, "kernel_shape is 2x2, but its weights are for 3x3");
  node("MaxPool", {"x"}, {}, "has no kernel_shape");
  node("MaxPool", {"x"}, {Ints("kernel_shape", {9, 9})}, "its window of 9 is larger than what it reads");
  node("MaxPool", {"x"}, {kernel, Ints("pads", {2, 2, 2, 2})}, "pads by its whole window");
  node("Concat", {"x", "x"}, {Int("axis", 9)}, "axis 9 is none of the 4 axes");
  node("Reshape", {"x", "many"}, {}, "cannot give 1x3x6x6 the shape");
  node("Expand", {"x", "many"}, {}, "1x3x6x6 and 1099511627776x1099511627776 do not fit together");
  node("Transpose", {"x"}, {Ints("perm", {0, 0, 1, 2})}, "names an axis twice");
  node("Squeeze", {"x", "one"}, {}, "takes away axis 1 of 1x3x6x6");
  node("Split", {"x"}, {Int("axis", -7)}, "axis -7 is none");
  node("Softmax", {"x"}, {Int("axis", 4)}, "axis 4 is none");
  node("Gather", {"x", "many"}, {}, "an index is outside of 1x3x6x6");
  node("Einsum", {"x", "x"}, {String("equation", "abcd,abcd->abce")}, "\"abcd,abcd->abce\" has a form");
  node("Einsum", {"x", "w"}, {String("equation", "abcd,ebcd->ae")}, "its inputs do not fit together");
  node("Einsum", {"x", "w"}, {String("equation", "...a")}, "\"...a\" is no product of two inputs");
  node("Tile", {"x", "many"}, {}, "its repeats do not fit");
  node("LRN", {"x"}, {Int("size", -3)}, "its size is -3");
  MadeModel large({1, 4});
  large.Node("ConstantOfShape", {large.Integers("many", {1 << 30, 1 << 30})}, {"c"});
  large.Node("Add", {"x", "c"});
  Expect(large, "node \"c\" (ConstantOfShape): makes a constant of 1073741824x1073741824, which is too large");
}

}  // namespace
}  // namespace crema::testing
