#include "onnx/export.h"

#include <algorithm>
#include <climits>
#include <memory>

#include "base/byte_size.h"
#include "compiler/compiler.h"
#include "device/device.h"
#include "graph/program.h"
#include "onnx/graph_writer.h"
#include "onnx/layer_table.h"
#include "onnx/value_names.h"
#include "report/assumed_inputs.h"
#include "runtime/missing_weights.h"
#include "schema/wire_bytes.h"

namespace crema {

namespace {

using namespace onnx;

// Of the format and its operators.
struct Versions {
  int64_t format, operators;
};
constexpr Versions kVersions = {7, 13};

// Operators that came with later ones.
struct LaterOperator {
  const char* op;
  Versions versions;
};
constexpr LaterOperator kLaterOperators[] = {{"GridSample", {8, 16}}, {"DeformConv", {9, 19}}};

NetOptions OptionsFor(const OnnxOptions& options, const BlobShapes& shapes) {
  NetOptions net;
  net.phase = TEST;
  net.level = options.level;
  net.stages = options.stages;
  net.shapes = shapes;
  net.outputs = options.outputs;
  net.backward = false;
  net.context.device = &CpuDevice();
  net.skip_passes = {"fuse_layers", "choose_layouts", "lay_out_weights"};
  return net;
}

// The first extent of the first input; 0 where there is none.
int64_t BatchOf(const Graph& graph) {
  const auto input = std::find_if(graph.nodes.begin(), graph.nodes.end(), IsInput);
  if (input == graph.nodes.end()) return 0;
  const Shape& shape = graph.values[input->tops[0]].spec.shape;
  return shape.axes() == 0 ? 0 : shape[0];
}

void RefuseData(const CompiledNet& net) {
  Diagnostics problems;
  for (const Node& node : net.graph.nodes) {
    if (!ReadsData(*node.param) || IsInput(node)) continue;
    problems.Error(net.file.source ? net.file.source->Layer(node.index_in_file) : Location{},
                   "layer \"" + node.name() + "\" (" + node.type->name +
                       "): reads data, which a file of ONNX cannot; export the deploy net, whose Input layer takes its "
                       "place");
  }
  problems.ThrowIfErrors();
}

// The net for one more item in the batch: what differs depends on the batch. Null, with the reason, where the net
// cannot be had for any.
std::unique_ptr<CompiledNet> ForLargerBatch(const CompiledNet& net, const OnnxOptions& options, std::string* why_not) {
  const Graph& graph = net.graph;
  if (BatchOf(graph) == 0) {
    *why_not = "the net has no input with a first axis";
    return nullptr;
  }
  try {
    auto larger = CompileForOneMore(net, OptionsFor(options, {}), BatchOf(graph));
    for (size_t i = 0; i < graph.params.size(); ++i) {
      if (larger->graph.params[i].spec == graph.params[i].spec) continue;
      *why_not = "the weights of layer \"" + graph.nodes[graph.params[i].owner].name() + "\" depend on it";
      return nullptr;
    }
    return larger;
  } catch (const UserError& error) {
    *why_not = error.diagnostics()[0].message;
    return nullptr;
  }
}

std::vector<OnnxModel::Tensor> Tensors(const google::protobuf::RepeatedPtrField<ValueInfoProto>& values) {
  std::vector<OnnxModel::Tensor> tensors;
  for (const ValueInfoProto& value : values) {
    OnnxModel::Tensor& tensor = tensors.emplace_back();
    tensor.name = value.name();
    for (const auto& dim : value.type().tensor_type().shape().dim()) {
      tensor.dims.push_back(dim.has_dim_value()   ? std::to_string(dim.dim_value())
                            : dim.has_dim_param() ? dim.dim_param()
                                                  : "?");
    }
  }
  return tensors;
}

// With the batch open where that is asked for and possible.
GraphProto WriteGraph(const Net& net, const OnnxOptions& options, std::vector<Diagnostic>* notes) {
  const OnnxTransform* transform = options.transform ? &*options.transform : nullptr;
  if (options.batch) return GraphWriter(net, nullptr, transform).Write();
  std::string why_not;
  const auto larger = ForLargerBatch(net.compiled(), options, &why_not);
  if (larger) {
    try {
      return GraphWriter(net, &larger->graph, transform).Write();
    } catch (const OpenBatchError& error) {
      why_not = error.diagnostics()[0].message;
    }
  }
  GraphProto fixed = GraphWriter(net, nullptr, transform).Write();
  Diagnostic note;
  note.severity = Diagnostic::Severity::kNote;
  note.message = "the batch cannot be left open: " + why_not;
  if (const int64_t batch = BatchOf(net.compiled().graph); batch > 0) {
    note.message += "; it is " + std::to_string(batch) +
                    (larger                    ? ", which --batch=N changes"
                     : net.inputs().size() > 1 ? "; give another with the --shape=NAME=N,... of each input"
                                               : ", which --batch=N changes as far as the net allows");
  }
  notes->push_back(std::move(note));
  return fixed;
}

// Layers that go on here where the pass before ended, which a file of ONNX does not.
void NoteStates(const CompiledNet& net, std::vector<Diagnostic>* notes) {
  for (const Node& node : net.graph.nodes) {
    if (!node.param->has_recurrent_param() || node.param->recurrent_param().expose_hidden()) continue;
    if (onnx::BeginsInEachPass(net.graph, node)) continue;
    Diagnostic note;
    note.severity = Diagnostic::Severity::kNote;
    if (net.file.source) note.where = net.file.source->Layer(node.index_in_file);
    note.message = "layer \"" + node.name() + "\" (" + node.type->name +
                   "): begins with zeros in every run of the file; to go on from run to run set expose_hidden: true, "
                   "which makes the state bottoms and tops";
    notes->push_back(std::move(note));
  }
}

// From operator set 18 on axes of a reduction are an input.
void MakeAxesInput(NodeProto* node, GraphProto* graph) {
  auto* const attributes = node->mutable_attribute();
  const auto axes = std::find_if(attributes->begin(), attributes->end(),
                                 [](const AttributeProto& attribute) { return attribute.name() == "axes"; });
  if (axes == attributes->end()) return;
  TensorProto* tensor = graph->add_initializer();
  tensor->set_name(node->output(0) + "/axes");
  tensor->set_data_type(TensorProto::INT64);
  tensor->add_dims(axes->ints_size());
  *tensor->mutable_int64_data() = axes->ints();
  node->add_input(tensor->name());
  attributes->erase(axes);
}

void SetVersions(ModelProto* model) {
  GraphProto& graph = *model->mutable_graph();
  Versions versions = kVersions;
  for (const NodeProto& node : graph.node()) {
    for (const LaterOperator& later : kLaterOperators) {
      if (node.op_type() == later.op && later.versions.operators > versions.operators) versions = later.versions;
    }
  }
  model->set_ir_version(versions.format);
  model->add_opset_import()->set_version(versions.operators);
  for (NodeProto& node : *graph.mutable_node()) {
    // From operator set 16 on points lie half a pixel elsewhere where this is not said.
    if (versions.operators >= 16 && node.op_type() == "RoiAlign") {
      *node.add_attribute() = String("coordinate_transformation_mode", "output_half_pixel");
    }
    if (versions.operators < 18) continue;
    if (node.op_type().starts_with("Reduce")) MakeAxesInput(&node, &graph);
    // And parts of one size are to be counted.
    if (node.op_type() == "Split" && node.input_size() == 1) {
      *node.add_attribute() = Int("num_outputs", node.output_size());
    }
  }
}

bool Reads(const GraphProto& graph, const std::string& name) {
  const auto reads = [&](const NodeProto& node) {
    return std::count(node.input().begin(), node.input().end(), name) > 0 ||
           std::any_of(node.attribute().begin(), node.attribute().end(), [&](const AttributeProto& attribute) {
             return attribute.has_g() && Reads(attribute.g(), name);
           });
  };
  return std::any_of(graph.node().begin(), graph.node().end(), reads);
}

// A net keeps all its inputs, and who runs a file would have to give each a value.
void LeaveOutUnreadInputs(GraphProto* graph) {
  auto* const inputs = graph->mutable_input();
  inputs->erase(std::remove_if(inputs->begin(), inputs->end(),
                               [&](const ValueInfoProto& input) { return !Reads(*graph, input.name()); }),
                inputs->end());
}

void CheckSize(size_t bytes) {
  if (bytes <= INT_MAX) return;
  throw UserError("the file would have " + FormatBytes(bytes) +
                  ", but protobuf, which ONNX is written in, ends at 2 GB; export the net in parts");
}

}  // namespace

OnnxModel MakeOnnxModel(const NetFile& file, const std::vector<LayerWeights>& weights, const OnnxOptions& options) {
  const NetFile inputs = WithoutWriters(file);
  BlobShapes shapes = options.shapes;
  {
    const auto compiled = Compile(inputs, OptionsFor(options, shapes));
    RefuseData(*compiled);
    size_t bytes = 0;
    for (const GraphParam& param : compiled->graph.params) bytes += param.spec.bytes();
    CheckSize(bytes);  // before they are allocated
    if (options.batch) shapes = ShapesForBatch(compiled->graph, BatchOf(compiled->graph), *options.batch);
  }
  Net net(inputs, OptionsFor(options, shapes));
  OnnxModel result;
  result.weights = net.LoadWeights(weights);
  result.needed = NeededWeights(net, result.weights.fresh);
  result.notes = net.warnings();
  NoteStates(net.compiled(), &result.notes);

  ModelProto model;
  model.set_producer_name("crema");
  model.set_producer_version(CREMA_VERSION);
  *model.mutable_graph() = WriteGraph(net, options, &result.notes);
  if (!options.outputs.empty()) LeaveOutUnreadInputs(model.mutable_graph());
  SetVersions(&model);
  if (model.graph().output_size() == 0) throw UserError("nothing comes out of the net, so there is nothing to export");
  CheckSize(model.ByteSizeLong());
  result.bytes = WireBytes(model);
  result.layers = static_cast<int>(net.compiled().graph.nodes.size());
  result.nodes = model.graph().node_size();
  for (const GraphParam& param : net.compiled().graph.params) result.parameters += param.spec.shape.count();
  result.inputs = Tensors(model.graph().input());
  result.outputs = Tensors(model.graph().output());
  return result;
}

}  // namespace crema
