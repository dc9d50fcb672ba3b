// Every operator that is imported, against what ONNX Runtime makes of it.
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
using Pads = std::vector<int64_t>;

class OnnxOperators : public OperatorComparison {
 protected:
  void Conv(const std::string& name, const Model::Attributes& attributes, const Model::Dims& weights = {6, 3, 3, 3},
            Model model = Model()) {
    Compare(
        "Conv " + name,
        [&](Model& m) {
          m.Node("Conv", {"x", m.Weights("w", weights), m.Weights("b", {weights[0]})}, {"y"}, attributes);
        },
        std::move(model));
  }
  void ConvTranspose(const std::string& name, const Model::Attributes& attributes,
                     const Model::Dims& weights = {3, 4, 3, 3}) {
    Compare("ConvTranspose " + name, [&](Model& m) {
      m.Node("ConvTranspose", {"x", m.Weights("w", weights)}, {"y"}, attributes);
    });
  }
};

TEST_F(OnnxOperators, Convolutions) {
  Conv("plain", {});
  Conv("strided", {Ints("strides", {2, 1}), Ints("pads", {1, 2, 1, 2}), Ints("kernel_shape", {3, 3})});
  Conv("grouped", {Int("group", 3)}, {6, 1, 3, 2});
  Conv("dilated", {Ints("dilations", {2, 2}), Ints("pads", {2, 2, 2, 2})});
  Conv("padded on one side", {Ints("pads", {0, 1, 1, 0}), Ints("strides", {2, 2})});
  Conv("dilated and padded on one side", {Ints("pads", {0, 0, 2, 4}), Ints("dilations", {2, 2})});
  Conv("same upper", {String("auto_pad", "SAME_UPPER"), Ints("strides", {2, 2})});
  Conv("same lower", {String("auto_pad", "SAME_LOWER"), Ints("strides", {2, 3})}, {4, 3, 4, 4});
  Conv("valid", {String("auto_pad", "VALID")});
  Conv("of one axis", {Ints("pads", {1, 0}), Ints("strides", {2})}, {4, 3, 5}, Model({2, 3, 11}));
  Conv("of three axes", {Ints("pads", {1, 1, 1, 1, 1, 0})}, {4, 3, 2, 3, 2}, Model({2, 3, 4, 5, 4}));
  Conv("of operator set 7", {Ints("kernel_shape", {3, 3})}, {6, 3, 3, 3}, Model({2, 3, 9, 8}, 7));
}

TEST_F(OnnxOperators, Transposes) {
  ConvTranspose("plain", {});
  ConvTranspose("strided", {Ints("strides", {2, 3}), Ints("pads", {1, 1, 1, 1})});
  ConvTranspose("with output_padding",
                {Ints("strides", {2, 2}), Ints("pads", {1, 1, 1, 1}), Ints("output_padding", {1, 1})});
  ConvTranspose("cut on one side", {Ints("strides", {2, 2}), Ints("pads", {0, 1, 1, 2})});
  ConvTranspose("grouped and dilated", {Int("group", 3), Ints("dilations", {2, 2})}, {3, 2, 3, 3});
}

TEST_F(OnnxOperators, Padding) {
  const auto pad = [](Model& m, const Pads& pads) { m.Node("Pad", {"x", m.Integers("pads", pads)}, {"p"}); };
  Compare("Pad, Conv", [&](Model& m) {
    pad(m, {0, 0, 0, 1, 0, 0, 1, 2});
    m.Node("Conv", {"p", m.Weights("w", {4, 3, 3, 3})}, {"y"}, {Ints("pads", {1, 1, 1, 1}), Ints("strides", {2, 2})});
  });
  for (const char* op : {"MaxPool", "AveragePool"}) {
    Compare(std::string("Pad, ") + op, [&](Model& m) {
      pad(m, {0, 0, 0, 1, 0, 0, 1, 1});
      m.Node(op, {"p"}, {"y"}, {Ints("kernel_shape", {3, 3}), Ints("strides", {2, 2})});
    });
  }
  Compare("Pad, Relu", [&](Model& m) {
    pad(m, {0, 0, 2, 1, 0, 0, 0, 3});
    m.Node("Relu", {"p"});
  });
  Compare("Pad below 0", [&](Model& m) {
    pad(m, {0, 0, -1, 1, 0, 0, -2, 0});
    m.Node("Relu", {"p"});
  });
  Compare(
      "Pad as an attribute",
      [&](Model& m) {
        m.Node("Pad", {"x"}, {"p"}, {Ints("pads", {0, 0, 1, 1, 0, 0, 1, 1})});
        m.Node("Abs", {"p"});
      },
      Model({2, 3, 9, 8}, 9));
}

TEST_F(OnnxOperators, Poolings) {
  const onnx::AttributeProto kernel = Ints("kernel_shape", {3, 3}), stride = Ints("strides", {2, 2});
  for (const char* op : {"MaxPool", "AveragePool"}) {
    Single(op, {kernel});
    Single(op, {kernel, stride, Ints("pads", {1, 1, 1, 1})});
    Single(op, {kernel, stride, Ints("pads", {0, 0, 1, 1})});
    Single(op, {kernel, stride, Ints("pads", {1, 0, 0, 1})});
    Single(op, {kernel, Ints("pads", {0, 0, 2, 2})});
    Single(op, {kernel, stride, Int("ceil_mode", 1)});
    Single(op, {kernel, Ints("strides", {3, 3}), Ints("pads", {1, 1, 1, 1}), Int("ceil_mode", 1)});
    Single(op, {Ints("kernel_shape", {2, 3}), Ints("strides", {1, 2}), String("auto_pad", "SAME_UPPER")});
    Single(op, {kernel, stride, String("auto_pad", "SAME_LOWER")});
  }
  for (const Pads& pads : {Pads{1, 1, 1, 1}, Pads{1, 0, 0, 1}, Pads{2, 2, 1, 1}}) {
    Single("AveragePool", {kernel, stride, Ints("pads", pads), Int("count_include_pad", 1)});
  }
  for (const char* op : {"GlobalAveragePool", "GlobalMaxPool"}) Single(op);
  Single("GlobalAveragePool", {}, Model({2, 3, 7}));
}

TEST_F(OnnxOperators, Reductions) {
  for (const char* op : {"ReduceMean", "ReduceL1", "ReduceL2", "ReduceSumSquare"}) {
    Single(op, {Ints("axes", {2, 3})});
    Single(op, {Ints("axes", {-1, 1}), Int("keepdims", 0)});
    Single(op);
  }
  Single("ReduceMax", {Ints("axes", {2, 3}), Int("keepdims", 0)});
  Compare("ReduceSum", [](Model& m) { m.Node("ReduceSum", {"x", m.Integers("axes", {1})}); });
  Compare(
      "ReduceMean of operator set 18",
      [](Model& m) {
        m.Node("ReduceMean", {"x", m.Integers("axes", {2, 3})});
      },
      Model({2, 3, 9, 8}, 18));
}

TEST_F(OnnxOperators, Activations) {
  for (const char* op : {"Relu", "LeakyRelu", "Elu", "Selu", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish", "Softplus",
                         "Softsign", "Abs", "Exp", "Neg"}) {
    Single(op);
  }
  Single("LeakyRelu", {Float("alpha", 0.3F)});
  Single("Elu", {Float("alpha", 0.3F)});
  Single("HardSigmoid", {Float("alpha", 0.7F), Float("beta", 0.4F)});
  Single("Mish", {}, Model({2, 3, 9, 8}, 18));
  for (const char* op : {"Sqrt", "Log", "Reciprocal"}) OfPositive(op);
  Compare("PRelu by channel", [](Model& m) { m.Node("PRelu", {"x", m.Weights("slope", {3, 1, 1})}); });
  Compare("PRelu", [](Model& m) { m.Node("PRelu", {"x", m.Weights("slope", {1})}); });
  Compare("Clip", [](Model& m) { m.Node("Clip", {"x", m.Floats("min", {}, {-0.2F}), m.Floats("max", {}, {0.3F})}); });
  Compare("Clip to 6", [](Model& m) {
    m.Node("Mul", {"x", m.Floats("ten", {}, {10})}, {"t"});
    m.Node("Clip", {"t", m.Floats("min", {}, {0}), m.Floats("max", {}, {6})});
  });
  Compare("Clip above", [](Model& m) { m.Node("Clip", {"x", "", m.Floats("max", {}, {0.3F})}); });
  Single("Clip", {Float("min", -0.1F), Float("max", 0.5F)}, Model({2, 3, 9, 8}, 10));
  Compare("Swish", [](Model& m) {
    m.Node("Sigmoid", {"x"}, {"s"});
    m.Node("Mul", {"x", "s"});
  });
  Compare("a sigmoid that others read", [](Model& m) {
    m.Node("Sigmoid", {"x"}, {"s"});
    m.Node("Mul", {"x", "s"}, {"p"});
    m.Node("Add", {"p", "s"});
  });
  Single("Gelu", {}, Model({2, 3, 9, 8}, 20));
  Single("Gelu", {String("approximate", "tanh")}, Model({2, 3, 9, 8}, 20));
  for (const bool halves_first : {false, true}) {
    Compare("Gelu of an Erf", [&](Model& m) {
      const std::string half = m.Floats("half", {}, {0.5F});
      m.Node("Div", {"x", m.Floats("root", {}, {1.41421356F})}, {"d"});
      m.Node("Erf", {"d"}, {"e"});
      m.Node("Add", {m.Floats("one", {}, {1}), "e"}, {"a"});
      m.Node("Mul", {"a", halves_first ? half : "x"}, {"m"});
      m.Node("Mul", {halves_first ? "x" : half, "m"});
    });
  }
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    Single(op);
    Single(op, {Int("axis", 1)});
    Single(op, {Int("axis", 2)}, Model({2, 3, 4, 5}, 11));
    Single(op, {}, Model({2, 3, 4, 1}, 11));
  }
  Compare("Dropout", [](Model& m) { m.Node("Dropout", {"x", m.Floats("ratio", {}, {0.3F})}); });
  Single("Dropout", {Float("ratio", 0.2F)}, Model({2, 3, 9, 8}, 10));
}

TEST_F(OnnxOperators, Normalizations) {
  for (const Model::Dims& dims : {Model::Dims{2, 3, 9, 8}, Model::Dims{4, 3}}) {
    Compare(
        "BatchNormalization",
        [](Model& m) {
          m.Node("BatchNormalization",
                 {"x", m.Weights("s", {3}), m.Weights("b", {3}), m.Weights("m", {3}), m.Floats("v", {3}, {0.5F, 1, 2})},
                 {"y"}, {Float("epsilon", 0.01F), Float("momentum", 0.99F)});
        },
        Model(dims));
  }
  Compare("LayerNormalization", [](Model& m) {
    m.Node("LayerNormalization", {"x", m.Weights("s", {8}), m.Weights("b", {8})}, {"y"}, {Float("epsilon", 0.01F)});
  });
  Compare("LayerNormalization of two axes", [](Model& m) {
    m.Node("LayerNormalization", {"x", m.Weights("s", {9, 8})}, {"y"}, {Int("axis", 2)});
  });
  Compare("LayerNormalization that does not scale", [](Model& m) {
    m.Node("LayerNormalization", {"x", m.Floats("s", {8}, std::vector<float>(8, 1))}, {"y"}, {Int("axis", -1)});
  });
  Compare("InstanceNormalization", [](Model& m) {
    m.Node("InstanceNormalization", {"x", m.Weights("s", {3}), m.Weights("b", {3})}, {"y"}, {Float("epsilon", 0.1F)});
  });
  Compare(
      "GroupNormalization",
      [](Model& m) {
        m.Node("GroupNormalization", {"x", m.Weights("s", {6}), m.Weights("b", {6})}, {"y"}, {Int("num_groups", 2)});
      },
      Model({2, 6, 4, 3}, 21));
  Single("LRN", {Int("size", 3), Float("alpha", 0.2F), Float("beta", 0.6F), Float("bias", 1.5F)}, Model({2, 7, 4, 3}));
}

TEST_F(OnnxOperators, Dense) {
  const Model rows({4, 5});
  Compare(
      "Gemm",
      [](Model& m) {
        m.Node("Gemm", {"x", m.Weights("w", {5, 3}), m.Weights("b", {3})});
      },
      rows);
  Compare(
      "Gemm, turned",
      [](Model& m) {
        m.Node("Gemm", {"x", m.Weights("w", {3, 5}), m.Weights("b", {1, 3})}, {"y"},
               {Int("transB", 1), Float("alpha", 0.5F), Float("beta", 2)});
      },
      rows);
  Compare(
      "Gemm without bias",
      [](Model& m) {
        m.Node("Gemm", {"x", m.Weights("w", {5, 3})});
      },
      rows);
  Compare(
      "Gemm with one number",
      [](Model& m) {
        m.Node("Gemm", {"x", m.Weights("w", {5, 3}), m.Weights("b", {})});
      },
      rows);
  Compare(
      "MatMul, Add",
      [](Model& m) {
        m.Node("MatMul", {"x", m.Weights("w", {5, 3})}, {"p"});
        m.Node("Add", {m.Weights("b", {3}), "p"});
      },
      Model({4, 2, 5}));
  Compare(
      "MatMul with turned weights",
      [](Model& m) {
        m.Node("Transpose", {m.Weights("w", {3, 5})}, {"t"}, {Ints("perm", {1, 0})});
        m.Node("MatMul", {"x", "t"});
      },
      rows);
  for (const auto& [indices, dims] : {std::pair{Pads{1}, Pads{}}, {Pads{1, 2}, Pads{2}}, {Pads{-1}, Pads{1}}}) {
    Compare("Gather", [&](Model& m) {
      m.Integers("i", indices);
      onnx::TensorProto* tensor = m.graph().mutable_initializer(0);
      tensor->clear_dims();
      for (const int64_t extent : dims) tensor->add_dims(extent);
      m.Node("Gather", {"x", "i"}, {"y"}, {Int("axis", 1)});
    });
  }
}

TEST_F(OnnxOperators, ProductsOfBlobs) {
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
TEST_F(OnnxOperators, ProductsTakeTransposesAndFactors) {
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
TEST_F(OnnxOperators, Attention) {
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
