// Operators that combine and rearrange, against what ONNX Runtime makes of them.
#include "onnx/operator_comparison.h"

namespace crema::testing {
namespace {

using onnx::Float;
using onnx::Int;
using onnx::Ints;
using onnx::String;

using Model = MadeModel;
using Dims = Model::Dims;

class OnnxStructure : public OperatorComparison {};

TEST_F(OnnxStructure, CombinesWithConstants) {
  for (const char* op : {"Add", "Sub", "Mul", "Div"}) {
    for (const Dims& dims : {Dims{}, Dims{1}, Dims{8}, Dims{3, 1, 1}, Dims{1, 3, 9, 8}, Dims{3, 1, 8}, Dims{9, 1}}) {
      for (const bool first : {false, true}) {
        Compare(std::string(op) + (first ? " of " : " with ") + Shape(dims).ToString(), [&](Model& m) {
          m.Weights("c", dims);
          m.Node("Exp", {"x"}, {"e"});  // nothing is divided by 0
          first ? m.Node(op, {"c", "e"}) : m.Node(op, {"e", "c"});
        });
      }
    }
  }
  Compare("a product and a sum", [](Model& m) {
    m.Node("Mul", {"x", m.Weights("c", {3, 1, 1})}, {"p"});
    m.Node("Add", {"p", m.Weights("d", {3, 1, 1})});
  });
  Compare("a product and another sum", [](Model& m) {
    m.Node("Mul", {"x", m.Weights("c", {3, 1, 1})}, {"p"});
    m.Node("Add", {"p", m.Weights("d", {8})});
  });
  Compare(
      "a larger constant",
      [](Model& m) {
        m.Node("Add", {"x", m.Weights("c", {2, 3, 4, 5})});
      },
      Model({2, 3, 1, 5}));
  Compare("Greater", [](Model& m) {
    m.Node("Greater", {"x", m.Floats("c", {}, {0.25F})}, {"g"});
    m.Node("Cast", {"g"}, {"y"}, {Int("to", onnx::TensorProto::FLOAT)});
  });
  Compare("Pow", [](Model& m) { m.Node("Pow", {"x", m.Floats("c", {}, {2})}); });
  Compare("Pow of a constant", [](Model& m) { m.Node("Pow", {m.Floats("c", {}, {3}), "x"}); });
  for (const char* op : {"Max", "Min"}) {
    for (const float bound : {0.0F, 0.2F}) {
      Compare(op, [&](Model& m) { m.Node(op, {"x", m.Floats("c", {}, {bound})}); });
    }
    Compare(std::string(op) + " with many", [&](Model& m) { m.Node(op, {"x", m.Weights("c", {1, 3, 1, 8})}); });
  }
}

TEST_F(OnnxStructure, CombinesBlobs) {
  const auto other = [](Model& m, const Dims& dims) { m.AddInput("z", dims); };
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Max", "Min"}) {
    for (const Dims& dims :
         {Dims{2, 3, 9, 8}, Dims{2, 3, 1, 1}, Dims{1, 3, 1, 1}, Dims{2, 1, 9, 8}, Dims{8}, Dims{2, 1, 1, 1}}) {
      for (const bool first : {false, true}) {
        Compare(std::string(op) + (first ? " of " : " with ") + Shape(dims).ToString(), [&](Model& m) {
          other(m, dims);
          m.Node("Exp", {"z"}, {"e"});
          m.Node("Exp", {"x"}, {"f"});
          first ? m.Node(op, {"e", "f"}) : m.Node(op, {"f", "e"});
        });
      }
    }
  }
  for (const char* op : {"Sum", "Mean", "Max", "Min"}) {
    Compare(op, [&](Model& m) {
      other(m, {2, 3, 9, 8});
      m.Node("Tanh", {"x"}, {"t"});
      m.Node(op, {"x", "z", "t"});
    });
  }
  Compare(
      "both stretched",
      [&](Model& m) {
        other(m, {2, 1, 4});
        m.Node("Add", {"x", "z"});
      },
      Model({2, 3, 1}));
}

TEST_F(OnnxStructure, JoinsAndCuts) {
  Compare("Concat", [](Model& m) {
    m.Node("Tanh", {"x"}, {"t"});
    m.Node("Concat", {"x", "t", m.Weights("c", {2, 1, 9, 8})}, {"y"}, {Int("axis", 1)});
  });
  Compare("Split", [](Model& m) { m.Node("Split", {"x", m.Integers("parts", {2, 6})}, {"a", "y"}, {Int("axis", 3)}); });
  Compare(
      "Split of operator set 11",
      [](Model& m) {
        m.Node("Split", {"x"}, {"a", "b", "c"}, {Int("axis", 1), Ints("split", {1, 1, 1})});
        m.Node("Add", {"a", "c"});
      },
      Model({2, 3, 9, 8}, 11));
  Compare(
      "Split into parts that are not equal",
      [](Model& m) {
        m.Node("Split", {"x"}, {"a", "b", "y"}, {Int("axis", 2), Int("num_outputs", 3)});
      },
      Model({2, 3, 8, 8}, 18));
  const auto slice = [&](const std::string& name, const Dims& starts, const Dims& ends, const Dims& axes,
                         const Dims& steps) {
    Compare("Slice " + name, [&](Model& m) {
      m.Node("Slice",
             {"x", m.Integers("s", starts), m.Integers("e", ends), m.Integers("a", axes), m.Integers("t", steps)});
    });
  };
  slice("of channels", {1}, {3}, {1}, {1});
  slice("of two axes", {1, -5}, {-2, 1000}, {2, 3}, {1, 1});
  slice("in steps", {1, 0}, {INT64_MAX, -1}, {2, 3}, {2, 3});
  Compare(
      "Slice of operator set 9",
      [](Model& m) {
        m.Node("Slice", {"x"}, {"y"}, {Ints("starts", {0, 2}), Ints("ends", {1, 5}), Ints("axes", {1, 2})});
      },
      Model({2, 3, 9, 8}, 9));
  Compare("Tile", [](Model& m) { m.Node("Tile", {"x", m.Integers("r", {1, 2, 1, 3})}); });
  Compare(
      "Expand",
      [](Model& m) {
        m.Node("Expand", {"x", m.Integers("s", {2, 3, 4, 5})});
      },
      Model({3, 1, 5}));
}

TEST_F(OnnxStructure, Rearranges) {
  for (const int64_t axis : {0, 1, 2, -1, 4}) Single("Flatten", {Int("axis", axis)});
  Single("Transpose");
  Single("Transpose", {Ints("perm", {0, 2, 3, 1})});
  Single("SpaceToDepth", {Int("blocksize", 2)}, Model({2, 3, 4, 6}));
  Single("DepthToSpace", {Int("blocksize", 2)}, Model({2, 12, 2, 3}));
  Single("DepthToSpace", {Int("blocksize", 2), String("mode", "CRD")}, Model({2, 12, 2, 3}));
  for (const Dims& dims :
       {Dims{2, -1}, Dims{0, 3, 72}, Dims{-1, 8}, Dims{6, 0, 8, 3}, Dims{432}, Dims{1, 2, 3, 9, 8}}) {
    Compare("Reshape to " + Shape(dims).ToString(), [&](Model& m) { m.Node("Reshape", {"x", m.Integers("s", dims)}); });
  }
  Compare(
      "Squeeze",
      [](Model& m) {
        m.Node("Squeeze", {"x", m.Integers("a", {2})});
      },
      Model({2, 3, 1, 8}));
  Single("Squeeze", {Ints("axes", {-2})}, Model({2, 3, 1, 8}, 11));
  Compare("Unsqueeze", [](Model& m) { m.Node("Unsqueeze", {"x", m.Integers("a", {0, -1})}); });
  Compare("Cast, Identity", [](Model& m) {
    m.Node("Identity", {"x"}, {"i"});
    m.Node("Cast", {"i"}, {"c"}, {Int("to", onnx::TensorProto::FLOAT)});
    m.Node("Relu", {"c"});
  });
  Compare(
      "channels that are shuffled",
      [](Model& m) {
        m.Node("Reshape", {"x", m.Integers("s", {2, 2, 3, 4, 4})}, {"r"});
        m.Node("Transpose", {"r"}, {"t"}, {Ints("perm", {0, 2, 1, 3, 4})});
        m.Node("Reshape", {"t", m.Integers("u", {2, 6, 4, 4})});
      },
      Model({2, 6, 4, 4}));
}

// A Reshape for one item does not tell which of its extents is the batch.
TEST_F(OnnxStructure, KeepsTheBatchOpen) {
  CompareBatches(
      "parts of an axis that was brought to the front",
      [](Model& m) {
        m.Node("Reshape", {"x", m.Integers("s", {0, -1, 3, 2, 4})}, {"r"});
        m.Node("Transpose", {"r"}, {"t"}, {Ints("perm", {2, 0, 3, 1, 4})});
        m.Node("Split", {"t"}, {"a", "b", "c"}, {Int("axis", 0)});
        for (const char* part : {"a", "b", "c"}) {
          m.Node("Squeeze", {part, m.Integers(std::string(part) + "_axes", {0})}, {std::string(part) + "_part"});
        }
        m.Node("Mul", {"a_part", "b_part"}, {"ab"});
        m.Node("Add", {"ab", "c_part"});
      },
      {5, 24});
  CompareBatches("the batch on the second axis",
                 [](Model& m) {
                   m.Node("Transpose", {"x"}, {"t"}, {Ints("perm", {1, 0, 2})});
                   m.Node("Unsqueeze", {"t", m.Integers("front", {0})}, {"u"});
                   m.Node("Tanh", {"u"}, {"v"});
                   m.Node("Squeeze", {"v", m.Integers("front2", {0})}, {"w"});
                   m.Node("Reshape", {"w", m.Integers("heads", {5, -1, 4})}, {"h"});
                   m.Node("Transpose", {"h"}, {"p"}, {Ints("perm", {1, 0, 2})});
                   m.Node("Relu", {"p"});
                 },
                 {5, 8});
  CompareBatches("rows of all items",
                 [](Model& m) {
                   m.Node("Transpose", {"x"}, {"t"}, {Ints("perm", {1, 0, 2})});
                   m.Node("Reshape", {"t", m.Integers("rows", {-1, 8})}, {"r"});
                   m.Node("Gemm", {"r", m.Weights("w", {8, 6})});
                 },
                 {5, 8});
}

// What exporters write for x.view(x.size(0), -1), and other arithmetic with shapes.
TEST_F(OnnxStructure, ComputesWithShapes) {
  Compare("view", [](Model& m) {
    m.Node("Shape", {"x"}, {"shape"});
    m.Node("Constant", {}, {"zero"}, {[] {
             onnx::AttributeProto value;
             value.set_name("value");
             value.set_type(onnx::AttributeProto::TENSOR);
             value.mutable_t()->set_data_type(onnx::TensorProto::INT64);
             value.mutable_t()->add_int64_data(0);
             return value;
           }()});
    m.Node("Gather", {"shape", "zero"}, {"batch"});
    m.Node("Unsqueeze", {"batch", m.Integers("axes", {0})}, {"first"});
    m.Node("Concat", {"first", m.Integers("rest", {-1})}, {"target"}, {Int("axis", 0)});
    m.Node("Reshape", {"x", "target"});
  });
  Compare(
      "half of the channels",
      [](Model& m) {
        m.Node("Shape", {"x"}, {"shape"});
        m.Node("Slice", {"shape", m.Integers("s", {1}), m.Integers("e", {2})}, {"channels"});
        m.Node("Div", {"channels", m.Integers("two", {2})}, {"half"});
        m.Node("Cast", {"half"}, {"cast"}, {Int("to", onnx::TensorProto::INT64)});
        m.Node("Slice", {"x", "cast", "channels", m.Integers("a", {1})});
      },
      Model({2, 6, 4, 4}));
  Compare("a stretched constant", [](Model& m) {
    m.Node("ConstantOfShape", {m.Integers("s", {3, 1, 1})}, {"zeros"});
    m.Node("Add", {"zeros", m.Floats("one", {}, {1.5F})}, {"more"});
    m.Node("Sqrt", {"more"}, {"root"});
    m.Node("Mul", {"x", "root"});
  });
}

TEST_F(OnnxStructure, Resizes) {
  const auto resize = [&](const std::string& name, const std::vector<float>& scales, const Dims& sizes,
                          const Model::Attributes& attributes) {
    Compare("Resize " + name, [&](Model& m) {
      sizes.empty() ? m.Node("Resize", {"x", "", m.Floats("scales", {4}, scales)}, {"y"}, attributes)
                    : m.Node("Resize", {"x", "", "", m.Integers("sizes", sizes)}, {"y"}, attributes);
    });
  };
  const auto coordinates = [](const char* mode) { return String("coordinate_transformation_mode", mode); };
  const onnx::AttributeProto linear = String("mode", "linear");
  resize("by repeating", {1, 1, 2, 3}, {}, {});
  resize("by repeating, floor", {1, 1, 2, 2}, {}, {coordinates("asymmetric"), String("nearest_mode", "floor")});
  resize("to the nearest", {}, {2, 3, 13, 4}, {});
  resize("to the nearest, ceil", {}, {2, 3, 12, 16}, {coordinates("asymmetric"), String("nearest_mode", "ceil")});
  resize("linear", {1, 1, 2, 2}, {}, {linear});
  resize("linear to a size", {}, {2, 3, 5, 20}, {linear, coordinates("pytorch_half_pixel")});
  resize("linear, asymmetric", {1, 1, 1.5F, 2}, {}, {linear, coordinates("asymmetric")});
  resize("corners onto corners", {}, {2, 3, 17, 15}, {linear, coordinates("align_corners")});
  Compare(
      "Resize of axes in any order",
      [](Model& m) {
        m.Node("Resize", {"x", "", "", m.Integers("sizes", {9, 4})}, {"y"}, {Ints("axes", {3, -2})});
      },
      Model({2, 3, 2, 3}, 18));
  Compare(
      "Upsample",
      [](Model& m) {
        m.Node("Upsample", {"x", m.Floats("scales", {4}, {1, 1, 2, 2})});
      },
      Model({2, 3, 4, 5}, 9));
}

}  // namespace
}  // namespace crema::testing
