// Every operator that is imported, against what ONNX Runtime makes of it.
#include <gtest/gtest.h>

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

// Offsets and factors are convolutions of x.
TEST_F(OnnxOperators, DeformableConvolutions) {
  const auto offsets = [](Model& m, int64_t channels, const Model::Attributes& attributes) {
    m.Node("Conv", {"x", m.Weights("wo", {channels, 3, 3, 3})}, {"o"}, attributes);
  };
  const auto factors = [](Model& m, int64_t channels, const Model::Attributes& attributes) {
    m.Node("Conv", {"x", m.Weights("wm", {channels, 3, 3, 3})}, {"f"}, attributes);
    m.Node("Sigmoid", {"f"}, {"m"});
  };
  const Model images({2, 3, 9, 8}, 19);
  const Model::Attributes same = {Ints("pads", {1, 1, 1, 1})};
  Compare(
      "DeformConv",
      [&](Model& m) {
        offsets(m, 18, same);
        m.Node("DeformConv", {"x", m.Weights("w", {4, 3, 3, 3}), "o"}, {"y"}, same);
      },
      images);
  Compare(
      "DeformConv with a bias and factors",
      [&](Model& m) {
        offsets(m, 18, same);
        factors(m, 9, same);
        m.Node("DeformConv", {"x", m.Weights("w", {4, 3, 3, 3}), "o", m.Weights("b", {4}), "m"}, {"y"}, same);
      },
      images);
  Compare(
      "DeformConv with groups and factors",
      [&](Model& m) {
        const Model::Attributes strided = {Ints("pads", {1, 1, 1, 1}), Ints("strides", {2, 1})};
        offsets(m, 36, strided);
        factors(m, 18, strided);
        m.Node("DeformConv", {"x", m.Weights("w", {6, 1, 3, 2}), "o", "", "m"}, {"y"},
               {Int("group", 3), Int("offset_group", 3), Ints("strides", {2, 1}), Ints("dilations", {1, 2}),
                Ints("pads", {1, 1, 1, 1}), Ints("kernel_shape", {3, 2})});
      },
      images);
  Compare(
      "Pad, DeformConv",
      [&](Model& m) {
        offsets(m, 18, {Ints("pads", {1, 1, 0, 1})});
        m.Node("Pad", {"x", m.Integers("pads", {0, 0, 1, 0, 0, 0, 0, 2})}, {"p"});
        m.Node("DeformConv", {"p", m.Weights("w", {4, 3, 3, 3}), "o"}, {"y"}, {Ints("strides", {1, 1})});
      },
      images);
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
  // Nothing reads it that could add the zeros.
  Compare("Pad alone", [&](Model& m) { m.Node("Pad", {"x", m.Integers("pads", {0, 0, 2, 1, 0, 0, 0, 3})}, {"y"}); });
  Compare("Pad, Identity", [&](Model& m) {
    pad(m, {0, 0, 0, 0, 0, 0, 1, 1});
    m.Node("Identity", {"p"}, {"y"});
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
    // Only since operator set 22 the format's own rules leave out a window that starts behind the image.
    Single(op, {kernel, Ints("strides", {3, 3}), Ints("pads", {1, 1, 1, 1}), Int("ceil_mode", 1)},
           Model({2, 3, 9, 8}, 22));
    Single(op, {Ints("kernel_shape", {2, 3}), Ints("strides", {1, 2}), String("auto_pad", "SAME_UPPER")});
    Single(op, {kernel, stride, String("auto_pad", "SAME_LOWER")});
  }
  for (const Pads& pads : {Pads{1, 1, 1, 1}, Pads{1, 0, 0, 1}, Pads{2, 2, 1, 1}}) {
    Single("AveragePool", {kernel, stride, Ints("pads", pads), Int("count_include_pad", 1)});
  }
  for (const char* op : {"GlobalAveragePool", "GlobalMaxPool"}) Single(op);
  Single("GlobalAveragePool", {}, Model({2, 3, 7}));
}

TEST_F(OnnxOperators, PoolingsOfVolumes) {
  const Model volume({2, 3, 5, 9, 8});
  const onnx::AttributeProto kernel = Ints("kernel_shape", {2, 3, 3}), stride = Ints("strides", {1, 2, 2});
  for (const char* op : {"MaxPool", "AveragePool"}) {
    Single(op, {kernel}, volume);
    Single(op, {kernel, stride, Ints("pads", {1, 1, 1, 1, 1, 1})}, volume);
    Single(op, {kernel, stride, Ints("pads", {0, 0, 0, 1, 1, 1})}, volume);
    Single(op, {Ints("kernel_shape", {2, 2, 2}), Ints("strides", {2, 2, 2}), Int("ceil_mode", 1)}, volume);
    Single(op, {kernel, stride, String("auto_pad", "SAME_UPPER")}, volume);
  }
  Single("AveragePool", {kernel, stride, Ints("pads", {1, 0, 1, 0, 1, 1}), Int("count_include_pad", 1)}, volume);
  for (const char* op : {"GlobalAveragePool", "GlobalMaxPool"}) Single(op, {}, volume);
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
  Compare("HardSwish of two nodes", [](Model& m) {
    m.Node("HardSigmoid", {"x"}, {"s"}, {Float("alpha", 1 / 6.0F), Float("beta", 0.5F)});
    m.Node("Mul", {"x", "s"});
  });
  Compare("Mish of three nodes", [](Model& m) {
    m.Node("Softplus", {"x"}, {"p"});
    m.Node("Tanh", {"p"}, {"t"});
    m.Node("Mul", {"t", "x"});
  });
  Compare("a tanh of a Softplus", [](Model& m) {
    m.Node("Softplus", {"x"}, {"p"});
    m.Node("Tanh", {"p"});
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

}  // namespace
}  // namespace crema::testing
