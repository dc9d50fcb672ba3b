// Exported nets in ONNX Runtime, where a Python has it: every case of every layer type, the model zoo, real nets.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>

#include "compiler/compiler.h"
#include "corpus_files.h"
#include "device/device.h"
#include "graph/program.h"
#include "layers/case_files.h"
#include "layers/layer_harness.h"
#include "onnx/import.h"
#include "onnx/layer_table.h"
#include "onnx/runtime_comparison.h"
#include "onnx/value_names.h"
#include "report/assumed_inputs.h"
#include "report/probe.h"

namespace crema::testing {
namespace {

namespace fs = std::filesystem;

class OnnxRuntime : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string why_not = RuntimeComparison::Unavailable();
    if (!why_not.empty()) GTEST_SKIP() << why_not;
  }

  void ExpectAgreement() {
    for (const std::string& problem : comparison_.Problems()) ADD_FAILURE() << problem;
    std::cout << comparison_.nets() << " nets, of " << comparison_.open() << " the batch is open\n";
  }

  RuntimeComparison comparison_;
};

// The layer behind an Input layer with its bottoms.
NetFile NetOf(const LayerCase& test) {
  NetParameter net;
  LayerParameter* input = test.bottom_size() > 0 ? net.add_layer() : nullptr;
  if (input) {
    input->set_name("inputs of the case");
    input->set_type("Input");
  }
  LayerParameter layer = test.layer();
  for (int i = layer.bottom_size(); i < test.bottom_size(); ++i) layer.add_bottom("bottom" + std::to_string(i));
  if (layer.top_size() == 0) layer.add_top("top0");
  if (layer.name().empty()) layer.set_name("tested");
  for (int i = 0; i < test.bottom_size(); ++i) {
    input->add_top(layer.bottom(i));
    BlobShape* shape = input->mutable_input_param()->add_shape();
    for (const int64_t extent : test.bottom(i).dim()) shape->add_dim(extent);
  }
  *net.add_layer() = layer;
  return MakeNetFile(net, {});
}

// Bottoms as the case says; for a larger batch they begin anew.
void FillBottoms(const LayerCase& test, Net& net) {
  const std::vector<NetInput> inputs = net.inputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const CaseTensor& tensor = test.bottom(static_cast<int>(i));
    const std::vector<float> values = Values(tensor, ShapeOf(tensor), 1000 + static_cast<uint32_t>(i));
    for (int64_t k = 0; k < inputs[i].value.count(); ++k) {
      inputs[i].value.f32()[k] = values[static_cast<size_t>(k) % values.size()];
    }
  }
}

std::vector<LayerWeights> CaseWeights(const LayerCase& test, Net& net) {
  FillParameters(net);
  for (size_t i = 0; i < net.parameters().size(); ++i) {
    const Parameter& parameter = net.parameters()[i];
    if (static_cast<int>(i) >= test.param_size()) continue;
    parameter.SetData(Values(test.param(static_cast<int>(i)), parameter.shape, 2000 + static_cast<uint32_t>(i)).data());
  }
  return WeightsOf(net);
}

// What operators make of NaNs is not laid down.
bool HoldsNan(const LayerCase& test) {
  const auto is_nan = [](float value) { return std::isnan(value); };
  return std::any_of(test.bottom().begin(), test.bottom().end(), [&](const CaseTensor& tensor) {
    return std::any_of(tensor.value().begin(), tensor.value().end(), is_nan);
  });
}

// ONNX Runtime wants something to compute.
bool IsEmpty(const LayerCase& test) {
  return std::any_of(test.bottom().begin(), test.bottom().end(),
                     [](const CaseTensor& t) { return ShapeOf(t).count() == 0 || t.dim_size() == 0; });
}

// ONNX's MaxRoiPool refuses rows that are no region.
bool HasRowsOfNone(const LayerCase& test) { return test.name() == "rows_that_are_no_region"; }

TEST_F(OnnxRuntime, ComputesEveryLayerCase) {
  std::set<std::string> types;
  for (const CaseFile& file : ReadCaseFiles()) {
    // Nothing comes out of a Silence.
    if (onnx::FindLayerFunction(file.type) == nullptr || file.type == "Silence") continue;
    for (const LayerCase& test : file.cases) {
      if (test.has_expect_error() || test.shapes_only() || IsEmpty(test) || HoldsNan(test)) continue;
      if (HasRowsOfNone(test)) continue;
      const std::string name = file.type + "/" + test.name();
      SCOPED_TRACE(name);
      const NetFile net_file = NetOf(test);
      std::vector<LayerWeights> weights;
      try {
        Net net(net_file, {.phase = TEST, .keep_all = true, .backward = false});
        weights = CaseWeights(test, net);
      } catch (const UserError& error) {
        ADD_FAILURE() << error.what();
        continue;
      }
      try {
        comparison_.Add(name, net_file, weights, [&](Net& net) { FillBottoms(test, net); });
        types.insert(file.type);
      } catch (const UserError& error) {
        std::cout << name << " is refused: " << error.what() << "\n";
      }
    }
  }
  ExpectAgreement();
  for (const CaseFile& file : ReadCaseFiles()) {
    if (file.type == "Silence") continue;
    EXPECT_EQ(types.count(file.type) > 0, onnx::FindLayerFunction(file.type) != nullptr) << file.type;
  }
}

// DeformConv is of a later operator set than the rest, in which reductions and parts of one size are written otherwise.
TEST_F(OnnxRuntime, ComputesWhatStandsBesideDeformableConvolutions) {
  const NetFile file = ParseNet(R"(
      layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 2 dim: 4 dim: 8 dim: 8 } } }
      layer { name: "offset" type: "Convolution" bottom: "data" top: "offset"
              convolution_param { num_output: 18 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
      layer { name: "deformable" type: "DeformableConvolution" bottom: "data" bottom: "offset" top: "deformable"
              deformable_convolution_param { num_output: 6 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
      layer { name: "mvn" type: "MVN" bottom: "deformable" top: "mvn" }
      layer { name: "parts" type: "Slice" bottom: "mvn" top: "one" top: "two" }
      layer { name: "norm" type: "Reduction" bottom: "one" top: "norm" reduction_param { operation: ASUM axis: 1 } }
      layer { name: "resize" type: "Interp" bottom: "two" top: "resize" interp_param { height: 15 width: 11 } })",
                                "n");
  Net net(file, {.phase = TEST, .backward = false});
  FillParameters(net);
  comparison_.Add("beside", file, WeightsOf(net), [](Net& filled) { FillInputs(filled); });
  ExpectAgreement();
}

// --- And back: what was exported computes the same when it is imported ---

class OnnxRoundTrip : public ::testing::Test {
 protected:
  // What is different after it; empty where nothing is. Throws where export or import refuse.
  std::string Difference(const NetFile& file, const std::vector<LayerWeights>& weights,
                         const RuntimeComparison::Fill& fill) {
    const OnnxModel model = MakeOnnxModel(file, weights, {});
    const std::string path = folder_ / "model.onnx";
    std::ofstream(path, std::ios::binary) << model.bytes;
    Net net(file, {.phase = TEST, .keep_all = true, .backward = false});
    net.LoadWeights(weights);
    fill(net);
    net.Forward();
    OnnxImportOptions options;
    for (const NetInput& input : net.inputs()) options.shapes.emplace_back(input.name, input.value.shape());
    const ImportedNet imported = ImportOnnxModel(path, options);
    const std::unique_ptr<Net> other = RunnableNet(imported);
    for (const NetInput& input : net.inputs()) {
      for (const NetInput& same : other->inputs()) {
        if (same.name == input.name) std::copy_n(input.value.f32(), input.value.count(), same.value.f32());
      }
    }
    other->Forward();
    size_t index = 0;
    for (const int v : net.compiled().graph.outputs) {
      const Value& value = net.compiled().graph.values[v];
      if (onnx::IsInput(net.compiled().graph.nodes[value.producer])) continue;
      const Tensor expected = net.blob(value.name), got = other->blob(imported.outputs[index++].name);
      if (got.shape() != expected.shape()) return value.name + " is " + got.shape().ToString();
      double largest = 1e-6, difference = 0;
      for (int64_t i = 0; i < got.count(); ++i) {
        if (std::isinf(expected.f32()[i]) && expected.f32()[i] == got.f32()[i]) continue;
        largest = std::max(largest, std::abs(expected.value(i)));
        const double distance = std::abs(expected.value(i) - got.value(i));
        if (!(distance <= difference)) difference = distance;
      }
      if (!(difference <= 1e-4 * largest)) {
        return value.name + " differs by " + std::to_string(difference) + " of " + std::to_string(largest);
      }
    }
    return "";
  }

 private:
  const TemporaryFolder folder_;
};

// Types that are written with operators which are not read, and those that are constants of the file.
const std::set<std::string> kNotBack = {"ArgMax",
                                        "BatchReindex",
                                        "ContinuationIndicator",
                                        "DeformableConvolution",
                                        "DetectionOutput",
                                        "GRU",
                                        "LSTM",
                                        "Parameter",
                                        "PriorBox",
                                        "RNN",
                                        "ROIAlign",
                                        "ROIPooling",
                                        "SpatialTransformer",
                                        "YoloDetectionOutput",
                                        "Yolov3DetectionOutput"};

TEST_F(OnnxRoundTrip, KeepsEveryLayerCase) {
  std::map<std::string, int> back;
  std::map<std::string, std::string> refused;
  for (const CaseFile& file : ReadCaseFiles()) {
    if (onnx::FindLayerFunction(file.type) == nullptr || file.type == "Silence") continue;
    back[file.type];
    for (const LayerCase& test : file.cases) {
      if (test.has_expect_error() || test.shapes_only() || IsEmpty(test) || HoldsNan(test)) continue;
      const NetFile net_file = NetOf(test);
      Net net(net_file, {.phase = TEST, .keep_all = true, .backward = false});
      const std::vector<LayerWeights> weights = CaseWeights(test, net);
      try {
        EXPECT_EQ(Difference(net_file, weights, [&](Net& filled) { FillBottoms(test, filled); }), "")
            << file.type << "/" << test.name();
        ++back[file.type];
      } catch (const UserError& error) {
        refused[file.type] = error.what();
      }
    }
  }
  for (const auto& [type, why] : refused) std::cout << type << " is refused: " << why << "\n";
  for (const auto& [type, cases] : back) EXPECT_EQ(cases == 0, kNotBack.count(type) > 0) << type;
}

// Two layers whose sequences begin with the pass, for which ONNX has operators.
NetFile NetOfWholeSequences(const std::string& type) {
  const std::string steps = R"(
      layer { name: "data" type: "Input" top: "x" input_param { shape { dim: 5 dim: 3 dim: 2 dim: 2 } } }
      layer { name: "go_on" type: "ContinuationIndicator" bottom: "x" top: "go_on" }
      layer { name: "steps" bottom: "x" bottom: "go_on" top: "h" type: ")";
  const std::string back = R"("
              recurrent_param { num_output: 6 weight_filler { type: "xavier" } } }
      layer { name: "back" type: "Reverse" bottom: "h" top: "back" }
      layer { name: "more" bottom: "back" bottom: "go_on" top: "y" type: ")";
  const std::string end = R"("
              recurrent_param { num_output: 4 weight_filler { type: "xavier" } } })";
  return ParseNet(steps + type + back + type + end, "n");
}

std::vector<LayerWeights> FilledWeights(const NetFile& file) {
  Net net(file, {.phase = TEST, .backward = false});
  FillParameters(net);
  return WeightsOf(net);
}

TEST_F(OnnxRoundTrip, KeepsRecurrentLayersWhoseSequencesBeginWithThePass) {
  for (const std::string type : {"GRU", "LSTM"}) {
    const NetFile file = NetOfWholeSequences(type);
    EXPECT_EQ(Difference(file, FilledWeights(file), [](Net& filled) { FillInputs(filled); }), "") << type;
  }
}

TEST_F(OnnxRuntime, ComputesRecurrentLayersWhoseSequencesBeginWithThePass) {
  for (const std::string type : {"GRU", "LSTM", "RNN"}) {
    const NetFile file = NetOfWholeSequences(type);
    comparison_.Add(type, file, FilledWeights(file), [](Net& filled) { FillInputs(filled); });
  }
  ExpectAgreement();
}

// Those of a file where there is one, else filled ones.
std::vector<LayerWeights> NetWeights(const NetFile& file, const fs::path& weights_path) {
  return fs::exists(weights_path) ? ReadWeights(weights_path.string()) : FilledWeights(file);
}

void AddNet(const fs::path& net_path, const fs::path& weights_path, const std::string& name,
            RuntimeComparison* comparison) {
  const NetFile file = ReadNetFile(net_path.string());
  comparison->Add(
      name, file, NetWeights(file, weights_path), [](Net& net) { FillInputs(net); }, {}, true);
}

TEST_F(OnnxRuntime, ComputesTheModelZoo) {
  for (const auto& entry : fs::directory_iterator(fs::path(SourceFolder()) / "model_zoo")) {
    if (!entry.is_directory()) continue;
    const std::string name = entry.path().filename().string();
    try {
      AddNet(entry.path() / "deploy.prototxt", entry.path() / (name + ".caffemodel"), name, &comparison_);
    } catch (const UserError& error) {
      std::cout << name << " is refused: " << error.what() << "\n";
    }
  }
  EXPECT_GE(comparison_.nets(), 9);
  ExpectAgreement();
}

TEST_F(OnnxRoundTrip, KeepsTheModelZoo) {
  // LSTM is written as a loop, DetectionOutput with what chooses boxes. Of one image each.
  const std::set<std::string> refused = {"faster_rcnn_raccoon", "lstm", "rfcn_raccoon", "ssd_raccoon", "yolo_raccoon"};
  for (const auto& entry : fs::directory_iterator(fs::path(SourceFolder()) / "model_zoo")) {
    if (!entry.is_directory()) continue;
    const std::string name = entry.path().filename().string();
    NetFile file = ReadNetFile((entry.path() / "deploy.prototxt").string());
    for (LayerParameter& layer : *file.net.mutable_layer()) {
      for (BlobShape& shape : *layer.mutable_input_param()->mutable_shape()) shape.set_dim(0, 1);
    }
    try {
      const std::string difference =
          Difference(file, NetWeights(file, entry.path() / (name + ".caffemodel")), [](Net& net) { FillInputs(net); });
      EXPECT_EQ(difference, "") << name;
      EXPECT_EQ(refused.count(name), 0u) << name;
    } catch (const UserError& error) {
      EXPECT_EQ(refused.count(name), 1u) << name << ": " << error.what();
    }
  }
}

TEST_F(OnnxRuntime, ComputesTrainedModels) {
  const fs::path root = fs::path(CorpusFolder()) / "models";
  if (!fs::exists(root)) GTEST_SKIP() << "no corpus at " << root;
  for (const auto& entry : fs::directory_iterator(root)) {
    if (!entry.is_directory()) continue;
    fs::path weights = entry.path() / "weights.caffemodel";
    if (!fs::exists(weights)) weights += ".h5";
    AddNet(entry.path() / "deploy.prototxt", weights, entry.path().filename().string(), &comparison_);
  }
  ExpectAgreement();
}

// Deploy nets that somebody published, with filled weights. Those that compute more take too long here.
TEST_F(OnnxRuntime, ComputesRealNets) {
  const double most_operations = 2e9;
  const int64_t most_parameters = 20'000'000;
  if (!fs::exists(CorpusFolder())) GTEST_SKIP() << "no corpus at " << CorpusFolder();
  int too_large = 0, refused = 0;
  std::vector<std::string> paths = CorpusFiles("nets");
  for (std::string& path : CorpusFiles("forks")) paths.push_back(std::move(path));
  for (const std::string& file : paths) {
    const fs::path path = file;
    const std::string name = fs::relative(path, CorpusFolder()).string();
    NetOptions options{.phase = TEST, .backward = false};
    options.context.device = &CpuDevice();
    double operations = 0;
    int64_t batch = 1, parameters = 0;
    try {
      const auto compiled = Compile(ReadNetFile(path.string()), options);
      bool deploy = false, reads = false;
      for (const Node& node : compiled->graph.nodes) {
        operations += node.setup->flops();
        deploy |= node.type->name == "Input";
        reads |= ReadsData(*node.param);
        if (node.type->name == "Input") batch = compiled->graph.values[node.tops[0]].spec.shape[0];
      }
      for (const GraphParam& param : compiled->graph.params) parameters += param.spec.shape.count();
      if (!deploy || reads) continue;
    } catch (const UserError&) {
      continue;  // a layer that crema does not have, or data that is not here
    }
    if (operations / static_cast<double>(batch) > most_operations || parameters > most_parameters) {
      ++too_large;
      continue;
    }
    try {
      AddNet(path, {}, name, &comparison_);
    } catch (const UserError& error) {
      ++refused;
      std::cout << name << " is refused: " << error.what() << "\n";
    }
  }
  std::cout << refused << " refused, " << too_large << " too large\n";
  ExpectAgreement();
  EXPECT_GE(comparison_.nets(), 50);
}

}  // namespace
}  // namespace crema::testing
