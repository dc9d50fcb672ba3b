// Products of blobs and what attention is made of, against what ONNX Runtime makes of them.
#include <cmath>

#include "onnx/operator_comparison.h"

namespace crema::testing {
namespace {

using onnx::Int;
using onnx::Ints;

using Model = MadeModel;

class OnnxProducts : public OperatorComparison {};

TEST_F(OnnxProducts, ProductsOfBlobs) {
  const auto product = [&](const std::string& name, const Model::Dims& x, const Model::Dims& z) {
    Compare(
        "MatMul " + name,
        [&](Model& m) {
          m.AddInput("z", z);
          m.Node("MatMul", {"x", "z"});
        },
        Model(x));
  };
  product("of matrices", {4, 5}, {5, 3});
  product("of a batch", {2, 3, 4, 5}, {2, 3, 5, 7});
  product("with one matrix for all", {2, 3, 4, 5}, {5, 7});
  product("of one matrix with all", {4, 5}, {2, 3, 5, 7});
  product("of which both are stretched", {2, 1, 4, 5}, {3, 5, 7});
  product("with a vector", {2, 4, 5}, {5});
  product("of a vector", {5}, {2, 5, 4});
  product("of vectors", {5}, {5});
  Compare(
      "MatMul with constants for each item",
      [](Model& m) {
        m.Node("MatMul", {"x", m.Weights("w", {2, 5, 7})});
      },
      Model({2, 4, 5}));
  Compare(
      "MatMul of a constant",
      [](Model& m) {
        m.Node("MatMul", {m.Weights("w", {3, 4}), "x"});
      },
      Model({2, 4, 5}));
  Compare(
      "MatMul of one blob with itself",
      [](Model& m) {
        m.Node("MatMul", {"x", "x"});
      },
      Model({2, 4, 4}));
}

// Transposes of the factors, and numbers behind, become settings of the layer where nothing else reads them.
TEST_F(OnnxProducts, ProductsTakeTransposesAndFactors) {
  const Model square({2, 3, 4, 4});
  const auto turn = [](Model& m, const char* from, const char* to) {
    m.Node("Transpose", {from}, {to}, {Ints("perm", {0, 1, 3, 2})});
  };
  for (const bool first : {false, true}) {
    Compare(
        "a transposed factor",
        [&](Model& m) {
          m.Node("Tanh", {"x"}, {"z"});
          turn(m, "z", "t");
          first ? m.Node("MatMul", {"t", "x"}) : m.Node("MatMul", {"x", "t"});
        },
        square);
    Compare(
        "both transposed",
        [&](Model& m) {
          m.Node("Tanh", {"x"}, {"z"});
          turn(m, first ? "x" : "z", "s");
          turn(m, first ? "z" : "x", "t");
          first ? m.Node("MatMul", {"s", "t"}) : m.Node("MatMul", {"t", "s"});
        },
        square);
  }
  Compare(
      "one transposed factor twice",
      [&](Model& m) {
        turn(m, "x", "t");
        m.Node("MatMul", {"t", "t"});
      },
      square);
  Compare(
      "a transposed factor of two names",
      [&](Model& m) {
        turn(m, "x", "t");
        m.Node("Identity", {"t"}, {"u"});
        m.Node("MatMul", {"x", "u"}, {"p"});
        m.Node("Add", {"p", "t"});
      },
      square);
  Compare(
      "other axes changed",
      [&](Model& m) {
        m.Node("Transpose", {"x"}, {"t"}, {Ints("perm", {0, 3, 1, 2})});
        m.Node("MatMul", {"t", "x"});
      },
      Model({2, 3, 3, 3}));
  for (const char* op : {"Mul", "Div"}) {
    for (const bool first : {false, true}) {
      Compare(
          std::string(op) + " behind",
          [&](Model& m) {
            m.Node("MatMul", {"x", "x"}, {"p"});
            m.Node("Exp", {"p"}, {"e"});
            m.Node("MatMul", {"e", "x"}, {"q"});
            m.Node("Mul", {"q", m.Floats("c", {1}, {0.25F})}, {"r"});
            m.Node("MatMul", {"e", "e"}, {"s"});
            m.Floats("d", {}, {5});
            first ? m.Node(op, {"d", "s"}, {"t"}) : m.Node(op, {"s", "d"}, {"t"});
            m.Node("Add", {"r", "t"});
          },
          square);
    }
  }
  Compare(
      "Mul by a number of more axes",
      [&](Model& m) {
        m.Node("MatMul", {"x", "x"}, {"p"});
        m.Node("Mul", {"p", m.Floats("c", {1, 1, 1, 1, 1}, {0.25F})});
      },
      square);
}

// scaled_dot_product_attention as PyTorch exports it, of queries, keys and values that one product makes.
TEST_F(OnnxProducts, Attention) {
  for (const bool causal : {false, true}) {
    Compare(
        causal ? "causal" : "of all",
        [&](Model& m) {
          m.Node("MatMul", {"x", m.Weights("w", {8, 24})}, {"p"});
          m.Node("Add", {m.Weights("b", {24}), "p"}, {"qkv"});
          m.Node("Reshape", {"qkv", m.Integers("heads", {0, -1, 3, 2, 4})}, {"r"});
          m.Node("Transpose", {"r"}, {"t"}, {Ints("perm", {2, 0, 3, 1, 4})});
          m.Node("Split", {"t"}, {"q1", "k1", "v1"}, {Int("axis", 0)});
          for (const char* part : {"q", "k", "v"}) {
            m.Node("Squeeze", {std::string(part) + "1", m.Integers(std::string(part) + "_axes", {0})}, {part});
          }
          m.Node("Shape", {"q"}, {"shape"});
          m.Node("Slice", {"shape", m.Integers("from", {-1}), m.Integers("to", {INT64_MAX})}, {"width"});
          m.Node("Cast", {"width"}, {"width_float"}, {Int("to", onnx::TensorProto::FLOAT)});
          m.Node("Sqrt", {"width_float"}, {"root"});
          m.Node("Div", {m.Floats("one", {}, {1}), "root"}, {"scale"});
          m.Node("Transpose", {"k"}, {"kt"}, {Ints("perm", {0, 1, 3, 2})});
          m.Node("Sqrt", {"scale"}, {"s"});
          m.Node("Mul", {"q", "s"}, {"qs"});
          m.Node("Mul", {"kt", "s"}, {"ks"});
          m.Node("MatMul", {"qs", "ks"}, {"scores"});
          if (causal) {
            m.Node("Expand", {m.Floats("unit", {}, {1}), m.Integers("tt", {5, 5})}, {"ones"});
            m.Node("Trilu", {"ones"}, {"lower"}, {Int("upper", 0)});
            m.Node("Equal", {"lower", m.Floats("zero", {}, {0})}, {"hidden"});
            m.Node("Where", {"hidden", m.Floats("never", {}, {-INFINITY}), m.Floats("zero2", {}, {0})}, {"mask"});
            m.Node("Add", {"scores", "mask"}, {"masked"});
          }
          m.Node("Softmax", {causal ? "masked" : "scores"}, {"a"}, {Int("axis", -1)});
          m.Node("MatMul", {"a", "v"}, {"o"});
          m.Node("Transpose", {"o"}, {"joined"}, {Ints("perm", {0, 2, 1, 3})});
          m.Node("Reshape", {"joined", m.Integers("flat", {0, -1, 8})}, {"f"});
          m.Node("MatMul", {"f", m.Weights("w2", {8, 8})});
        },
        Model({2, 5, 8}));
  }
  Compare("Trilu", [](Model& m) {
    for (const bool upper : {false, true}) {
      const std::string name = upper ? "upper" : "lower";
      m.Weights(name, {3, 9, 8});
      m.Integers(name + "_k", {upper ? 2 : -1});
      m.Node("Trilu", {name, name + "_k"}, {name + "_part"}, {Int("upper", upper ? 1 : 0)});
    }
    m.Node("Mul", {"x", "lower_part"}, {"p"});
    m.Node("Add", {"p", "upper_part"});
  });
}

}  // namespace
}  // namespace crema::testing
