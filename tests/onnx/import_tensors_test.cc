// What models of transformers and of other programs' paddings are made of, against what ONNX Runtime makes of it.
#include <gtest/gtest.h>

#include <cmath>

#include "onnx/operator_comparison.h"

namespace crema::testing {
namespace {

using onnx::Float;
using onnx::Int;
using onnx::Ints;
using onnx::String;

using Model = MadeModel;
using Dims = Model::Dims;

class OnnxTensors : public OperatorComparison {
 protected:
  static std::string Table(Model& m, const std::string& name, const Dims& dims, const std::vector<int64_t>& values) {
    m.Integers(name, values);
    onnx::TensorProto& tensor = *m.graph().mutable_initializer()->rbegin();
    tensor.clear_dims();
    for (const int64_t extent : dims) tensor.add_dims(extent);
    return name;
  }
  void Einsum(const std::string& equation, const Dims& first, const Dims& second) {
    Compare(
        "Einsum " + equation,
        [&](Model& m) {
          m.AddInput("z", second);
          m.Node("Einsum", {"x", "z"}, {"y"}, {String("equation", equation)});
        },
        Model(first));
  }
};

TEST_F(OnnxTensors, PadsOfEveryKind) {
  for (const char* mode : {"reflect", "edge", "constant", "wrap"}) {
    CompareBatches(std::string("Pad ") + mode,
                   [&](Model& m) {
                     m.model().mutable_opset_import(0)->set_version(19);
                     m.Node("Pad", {"x", m.Integers("pads", {0, 0, 2, 1, 0, 2, 0, 3})}, {"p"}, {String("mode", mode)});
                     m.Node("Conv", {"p", m.Weights("w", {4, 5, 3, 3})});
                   },
                   {3, 9, 8});
  }
  for (const float fill : {2.5F, -INFINITY}) {
    Compare("Pad by " + std::to_string(fill), [&](Model& m) {
      m.Node("Pad", {"x", m.Integers("pads", {0, 1, 1, 0, 0, 0, 2, 1}), m.Floats("fill", {}, {fill})}, {"p"});
      m.Node("MaxPool", {"p"}, {"y"}, {Ints("kernel_shape", {3, 3}), Ints("strides", {3, 3})});
    });
  }
  CompareBatches("Pad tokens",
                 [](Model& m) {
                   m.Node("Pad", {"x", m.Integers("pads", {0, 0, 0, 0, 2, 1})}, {"p"});
                   m.Node("Abs", {"p"});
                 },
                 {5, 4});
  // Zeros wait for what reads them, the mirror does not.
  Compare("Pad, Pad", [](Model& m) {
    m.Node("Pad", {"x", m.Integers("pads", {0, 0, 1, 0, 0, 0, 0, 1})}, {"p"});
    m.Node("Pad", {"p", m.Integers("more", {0, 0, 1, 2, 0, 0, 1, 0})}, {"y"}, {String("mode", "reflect")});
  });
}

TEST_F(OnnxTensors, StepsAlongEveryAxis) {
  for (const int64_t step : {2, 3, -2, 4}) {
    for (const int64_t start : {0, 1}) {
      CompareBatches("Slice by " + std::to_string(step) + " from " + std::to_string(start),
                     [&](Model& m) {
                       const int64_t first = step > 0 ? start : -1 - start, end = step > 0 ? INT64_MAX : INT64_MIN;
                       m.Node("Slice", {"x", m.Integers("s", {first, first}), m.Integers("e", {end, end}),
                                        m.Integers("a", {1, 2}), m.Integers("t", {step, step})});
                     },
                     {9, 8, 4});
    }
  }
}

TEST_F(OnnxTensors, ProductsByLetters) {
  Einsum("bhid,bhjd->bhij", {2, 3, 4, 5}, {2, 3, 6, 5});
  Einsum("b i d, b j d -> b j i", {2, 4, 5}, {2, 3, 5});
  Einsum("bhij,bjhd->bihd", {2, 3, 4, 5}, {2, 5, 3, 6});
  Einsum("bythwc,hkc->bythwk", {2, 1, 2, 3, 4, 5}, {3, 6, 5});
  Einsum("bc,dc->bd", {2, 5}, {4, 5});
  Einsum("bc,bc->b", {2, 5}, {2, 5});
  Einsum("bi,bj->bij", {2, 5}, {2, 3});
  Compare(
      "Einsum with weights",
      [](Model& m) {
        m.Node("Einsum", {"x", m.Weights("w", {4, 5})}, {"y"}, {String("equation", "bic,dc->bid")});
      },
      Model({2, 3, 5}));
}

TEST_F(OnnxTensors, ElementsInAnyOrder) {
  for (const std::vector<int64_t>& indices : {std::vector<int64_t>{2, 0, 1, -1}, {1, 1}, {2, 1, 0}, {0, 1, 0, 1}}) {
    Compare("Gather", [&](Model& m) { m.Node("Gather", {"x", m.Integers("i", indices)}, {"y"}, {Int("axis", 2)}); });
  }
  Compare("Gather a table", [](Model& m) {
    m.Node("Gather", {"x", Table(m, "i", {2, 2}, {0, 2, 1, 2})}, {"y"}, {Int("axis", 1)});
  });
}

TEST_F(OnnxTensors, TokensOfEveryItem) {
  CompareBatches("a token that Expand repeats",
                 [](Model& m) {
                   m.Node("Shape", {"x"}, {"shape"});
                   m.Node("Gather", {"shape", m.Integers("first", {0})}, {"items"});
                   m.Node("Concat", {"items", m.Integers("rest", {-1, -1})}, {"wanted"}, {Int("axis", 0)});
                   m.Node("Max", {"wanted", m.Integers("least", {1, 1, 1})}, {"extents"});
                   m.Node("Expand", {m.Weights("token", {1, 2, 4}), "extents"}, {"tokens"});
                   m.Node("Concat", {"tokens", "x"}, {"y"}, {Int("axis", 1)});
                 },
                 {5, 4});
}

TEST_F(OnnxTensors, ExtremesOfAnyAxes) {
  for (const char* op : {"ReduceMax", "ReduceMin"}) {
    for (const Dims& axes : {Dims{1}, Dims{-1}, Dims{1, 3}, Dims{2, 3}, Dims{0, 1, 2, 3}}) {
      for (const int64_t keep : {0, 1}) Single(op, {Ints("axes", axes), Int("keepdims", keep)});
    }
    Single(op, {Ints("axes", {1})}, Model({2, 7, 3}));
  }
}

TEST_F(OnnxTensors, CubicResizing) {
  for (const char* coordinates : {"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"}) {
    for (const Dims& to : {Dims{2, 3, 13, 12}, Dims{2, 3, 5, 8}}) {
      Compare(std::string("Resize cubic ") + coordinates, [&](Model& m) {
        m.Node("Resize", {"x", "", "", m.Integers("sizes", to)}, {"y"},
               {String("mode", "cubic"), String("coordinate_transformation_mode", coordinates),
                Float("cubic_coeff_a", -0.6F)});
      });
    }
  }
}

TEST_F(OnnxTensors, WeightsThatAreNormalised) {
  Compare("weights of mean 0 and deviation 1", [](Model& m) {
    m.Node("Reshape", {m.Weights("w", {4, 3, 3, 3}), m.Integers("flat", {1, 4, 27})}, {"f"});
    const std::string zeros = m.Floats("zeros", {4}, {0, 0, 0, 0}), ones = m.Floats("ones", {4}, {1, 2, 1, 0.5F});
    m.Node("BatchNormalization", {"f", ones, zeros, zeros, ones}, {"n", "mean", "variance"},
           {Int("training_mode", 1), Float("epsilon", 1e-4F)});
    m.Node("Reshape", {"n", m.Integers("filters", {4, 3, 3, 3})}, {"r"});
    m.Node("Conv", {"x", "r"});
  });
  for (const char* op : {"ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare"}) {
    Compare(std::string("weights by their ") + op, [&](Model& m) {
      m.Node(op, {m.Weights("w", {4, 3, 3, 3})}, {"r"}, {Ints("axes", {1, 3}), Int("keepdims", 1)});
      m.Node("Sub", {"w", "r"}, {"s"});
      m.Node("Conv", {"x", "s"});
    });
  }
  Compare("weights of running statistics", [](Model& m) {
    m.Node("BatchNormalization",
           {m.Weights("w", {4, 3, 3, 3}), m.Weights("s", {3}), m.Weights("b", {3}), m.Weights("m", {3}),
            m.Floats("v", {3}, {0.5F, 1, 2})},
           {"n"});
    m.Node("Conv", {"x", "n"});
  });
}

TEST_F(OnnxTensors, ConstantsOfPositions) {
  Compare(
      "a mask written in pieces",
      [](Model& m) {
        const std::string mask = m.Floats("mask", {3, 4}, std::vector<float>(12, 0));
        m.Node("ScatterND", {mask, Table(m, "i", {2, 1}, {0, -1}), m.Weights("rows", {2, 4})}, {"one"});
        m.Node("ScatterND", {"one", Table(m, "k", {1, 2, 2}, {1, 2, 2, 3}), m.Weights("values", {1, 2})}, {"two"});
        m.Node("Add", {"x", "two"});
      },
      Model({2, 3, 4}));
  Compare(
      "sines of positions",
      [](Model& m) {
        m.Node("CumSum", {m.Floats("ones", {3, 4}, std::vector<float>(12, 1)), m.Integers("axis", {0})}, {"c"});
        m.Node("Tile", {m.Weights("small", {1, 2}), m.Integers("times", {3, 2})}, {"t"});
        m.Node("Add", {"c", "t"}, {"a"});
        m.Node("Sin", {"a"}, {"s"});
        m.Node("Cos", {"c"}, {"k"});
        m.Node("Clip", {"k", m.Floats("least", {}, {-0.5F}), m.Floats("most", {}, {0.5F})}, {"l"});
        m.Node("Mul", {"s", "l"}, {"p"});
        m.Node("Add", {"x", "p"});
      },
      Model({2, 3, 4}));
  // As TensorFlow's "SAME" is written in PyTorch.
  Compare("pads that a formula gives", [](Model& m) {
    const std::string zero = m.Floats("zero", {1}, {0});
    m.Node("Sub", {m.Floats("needed", {1}, {10}), m.Floats("extent", {1}, {8})}, {"d"});
    m.Node("Clip", {"d", m.Floats("least", {}, {0})}, {"c"});
    m.Node("Cast", {"c"}, {"whole"}, {Int("to", onnx::TensorProto::INT64)});
    m.Node("GreaterOrEqual", {"whole", m.Integers("two", {2})}, {"more"});
    m.Node("Cast", {"more"}, {"one"}, {Int("to", onnx::TensorProto::INT64)});
    const std::string none = m.Integers("none", {0});
    m.Node("Concat", {none, none, "one", "whole", none, none, none, "one"}, {"pads"}, {Int("axis", 0)});
    m.Node("Pad", {"x", "pads"}, {"p"});
    m.Node("Conv", {"p", m.Weights("w", {4, 3, 3, 3})});
  });
}

}  // namespace
}  // namespace crema::testing
