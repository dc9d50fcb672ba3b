#include "onnx/graph_reader.h"

#include <algorithm>

#include "base/check.h"
#include "base/paths.h"
#include "base/printable.h"
#include "onnx/folding.h"
#include "onnx/model_reader.h"
#include "onnx/operator_table.h"

namespace crema::onnx {

namespace {

// An operand that depends on what failed.
class Unknown : public std::exception {};

// A name as files of crema have them.
std::string Clean(const std::string& name) {
  std::string clean;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    clean += byte > ' ' && byte < 127 && c != '"' && c != '\\' && c != '\'' ? c : '_';
  }
  const size_t begin = clean.find_first_not_of('/');
  clean = begin == std::string::npos ? "" : clean.substr(begin);
  return clean.empty() ? "value" : clean;
}

bool IsNumber(int32_t type) {
  return type != TensorProto::UNDEFINED && type != TensorProto::BOOL && TensorProto::DataType_IsValid(type);
}

std::string DimsText(const TensorShapeProto& shape) {
  std::string text;
  for (const TensorShapeProto::Dimension& dim : shape.dim()) {
    text += (text.empty() ? "" : "x") + (dim.has_dim_value()        ? std::to_string(dim.dim_value())
                                         : !dim.dim_param().empty() ? Printable(dim.dim_param())
                                                                    : std::string("?"));
  }
  return text;
}

}  // namespace

GraphReader::GraphReader(const ModelProto& model, std::string path, const OnnxImportOptions& options)
    : model_(model), graph_(model.graph()), path_(std::move(path)), options_(options), needed_(NeededNodes(graph_)) {
  for (const TensorProto& tensor : graph_.initializer()) initializers_[tensor.name()] = &tensor;
  for (int i = 0; i < graph_.node_size(); ++i) {
    if (!needed_[i]) continue;
    for (const std::string& input : graph_.node(i).input()) {
      ++reads_[input];
      readers_[input] = &graph_.node(i);
    }
  }
  for (const ValueInfoProto& output : graph_.output()) {
    reads_[output.name()] += 2;  // no reader is its only one
    if (!names_.insert(Clean(output.name())).second) {
      throw UserError(where(), "two outputs have the name \"" + Clean(output.name()) + "\"");
    }
  }
}

void GraphReader::Note(const std::string& message) { AddNote(where(), message, &result_); }

std::string GraphReader::Unique(const std::string& name) {
  std::string unique = Clean(name);
  for (int i = 2; !names_.insert(unique).second; ++i) unique = Clean(name) + "_" + std::to_string(i);
  return unique;
}

const Operand* GraphReader::Find(const std::string& name) {
  const auto known = operands_.find(name);
  if (known != operands_.end()) return &known->second;
  const auto initializer = initializers_.find(name);
  if (initializer == initializers_.end()) return nullptr;
  auto constant = std::make_shared<Constant>(ReadTensor(*initializer->second, DirectoryOf(path_)));
  constant->name = name;
  return &(operands_[name] = {.constant = std::move(constant)});
}

void GraphReader::CheckOperators() {
  std::map<std::string, std::pair<int, const NodeProto*>> unknown;
  for (int i = 0; i < graph_.node_size(); ++i) {
    const NodeProto& node = graph_.node(i);
    const bool standard = node.domain().empty() || node.domain() == "ai.onnx";
    if (!needed_[i] || (standard && (FindOperator(node.op_type()) || FindFolding(node.op_type())))) continue;
    auto& [count, first] = unknown[(standard ? "" : node.domain() + "::") + node.op_type()];
    if (count++ == 0) first = &node;
  }
  Diagnostics problems;
  for (const auto& [op, where_used] : unknown) {
    const auto& [count, first] = where_used;
    problems.Error(where(), Describe(*first) + (count > 1 ? " and " + std::to_string(count - 1) + " more" : "") + ": " +
                                RemedyForOperator(*first));
  }
  problems.ThrowIfErrors();
}

Shape GraphReader::ShapeOfInput(const ValueInfoProto& input) {
  for (const auto& [name, shape] : options_.shapes) {
    if (name == input.name() || name == Clean(input.name())) return shape;
  }
  const std::string about = "input \"" + Printable(input.name()) + "\": ";
  const std::string remedy = "; give it: --shape=" + Clean(input.name()) + "=1,3,224,224, say";
  if (!input.type().tensor_type().has_shape())
    throw UserError(where(), about + "the file does not say its shape" + remedy);
  const TensorShapeProto& declared = input.type().tensor_type().shape();
  Shape shape(std::vector<int64_t>(declared.dim_size(), 1));
  for (int i = 0; i < declared.dim_size(); ++i) {
    const TensorShapeProto::Dimension& dim = declared.dim(i);
    if (dim.has_dim_value()) {
      shape.set(i, dim.dim_value());
    } else if (i == 0) {
      shape.set(i, options_.batch.value_or(1));
    } else {
      throw UserError(
          where(), about + "axis " + std::to_string(i) + " of " + DimsText(declared) + " has no fixed extent" + remedy);
    }
  }
  return shape;
}

std::string GraphReader::SwapChannels(const std::string& blob, const Shape& shape) {
  LayerParameter layer = ChannelSwap();
  layer.set_name(Unique(blob + "/swap"));
  layer.add_bottom(blob);
  layer.add_top(layer.name());
  FixedWeights weights = ChannelSwapWeights();
  Append(layer, {shape}, {Floats(weights.shape, std::move(weights.values))});
  return layer.name();
}

void GraphReader::ReadInputs() {
  Diagnostics problems;
  bool swapped = false;
  std::set<std::string> names;
  for (const ValueInfoProto& input : graph_.input()) {
    if (initializers_.count(input.name()) > 0) continue;
    names.insert(input.name());
    names.insert(Clean(input.name()));
    if (reads_[input.name()] == 0) {
      Note("input \"" + Printable(input.name()) + "\": nothing needs it, so it is left out");
      continue;
    }
    const TensorShapeProto& declared = input.type().tensor_type().shape();
    const bool open = declared.dim_size() > 0 && !declared.dim(0).has_dim_value();
    try {
      if (!IsNumber(input.type().tensor_type().elem_type())) {
        throw UserError(where(), "input \"" + Printable(input.name()) + "\": is no tensor of numbers");
      }
      const Shape shape = ShapeOfInput(input);
      if (shape.axes() > Shape::kMaxAxes || CheckedCount(shape.dims()) < 1) {
        throw UserError(where(),
                        "input \"" + Printable(input.name()) + "\": nothing can have the shape " + shape.ToString());
      }
      LayerParameter layer = LayerOf("Input");
      layer.set_name(Unique(input.name()));
      if (open) open_inputs_.insert(layer.name());
      layer.add_top(layer.name());
      BlobShape* blob_shape = layer.mutable_input_param()->add_shape();
      for (const int64_t extent : shape.dims()) blob_shape->add_dim(extent);
      operands_[input.name()] = {.blob = layer.name(), .shape = shape};
      result_.inputs.push_back({layer.name(), shape});
      Append(std::move(layer), {}, {});
      if (!options_.swap_channels || shape.axes() != 4 || shape[1] != 3) continue;
      operands_[input.name()].blob = SwapChannels(result_.inputs.back().name, shape);
      swapped = true;
    } catch (const UserError& error) {
      for (const Diagnostic& problem : error.diagnostics()) problems.Error(problem.where, problem.message);
    }
  }
  for (const auto& [name, shape] : options_.shapes) {
    if (names.count(name) == 0) problems.Error(where(), "--shape=" + name + "=...: has no input of this name");
  }
  if (options_.batch && open_inputs_.empty() && !problems.has_errors())
    problems.Error(where(), "--batch: the file fixes the batch of all its inputs");
  if (options_.swap_channels && !swapped && !problems.has_errors()) {
    problems.Error(where(), "--swap_channels: no input is N x 3 x height x width");
  }
  problems.ThrowIfErrors();
  if (result_.inputs.empty()) throw UserError(where(), "nothing in it depends on an input");
}

std::vector<Shape> GraphReader::Append(LayerParameter layer, const std::vector<Shape>& bottoms,
                                       std::vector<Constant> blobs) {
  LayerShapes shapes = SetUpLayer(layer, bottoms, where());
  CREMA_CHECK(shapes.params.size() == blobs.size()) << layer.type() << " takes " << shapes.params.size() << " blobs";
  for (int i = 0; i < layer.top_size(); ++i) shapes_[layer.top(i)] = shapes.tops[i];
  if (!blobs.empty()) {
    LayerParameter* weights = result_.weights.add_layer();
    weights->set_name(layer.name());
    weights->set_type(layer.type());
    for (size_t i = 0; i < blobs.size(); ++i) {
      const Shape& wanted = shapes.params[i];
      if (blobs[i].shape != wanted) {
        throw UserError("the extents of its weights, " + blobs[i].shape.ToString() +
                        ", do not fit what it reads: " + wanted.ToString() + " would");
      }
      google::protobuf::RepeatedField<float>* data = AddBlob(wanted, weights);
      data->Add(blobs[i].floats.begin(), blobs[i].floats.end());
      result_.parameters += wanted.count();
    }
  }
  *result_.net.add_layer() = std::move(layer);
  return std::move(shapes.tops);
}

void GraphReader::ReadNode(const NodeProto& node) {
  NodeReader reader(*this, node);
  for (const std::string& input : node.input()) {
    if (!input.empty() && Find(input) == nullptr) throw Unknown();
  }
  if (FoldNode(reader)) return;
  const OperatorFunction read = FindOperator(node.op_type());
  if (read == nullptr)
    reader.Refuse("crema computes it of constants only; leave out what it belongs to, and export again");
  read(reader);
}

void GraphReader::CheckOutput(const ValueInfoProto& declared, const Shape& shape) {
  if (!declared.type().tensor_type().has_shape() || !options_.shapes.empty()) return;
  const TensorShapeProto& dims = declared.type().tensor_type().shape();
  bool same = dims.dim_size() == shape.axes();
  for (int i = 0; same && i < shape.axes(); ++i)
    same = !dims.dim(i).has_dim_value() || dims.dim(i).dim_value() == shape[i];
  if (!same) {
    Note("output \"" + Printable(declared.name()) + "\" is " + shape.ToString() + ", where the file says " +
         DimsText(dims));
  }
}

bool GraphReader::IsOutput(const std::string& name) const {
  return std::any_of(graph_.output().begin(), graph_.output().end(),
                     [&](const ValueInfoProto& output) { return output.name() == name; });
}

void GraphReader::NameOutputs() {
  std::map<std::string, std::vector<ImportedNet::Tensor>> named;  // by blob: Identity gives one several names
  for (const ValueInfoProto& output : graph_.output()) {
    const Operand* value = Find(output.name());
    if (value->is_constant()) {
      throw UserError(where(), "output \"" + Printable(output.name()) + "\": depends on no input");
    }
    CheckOutput(output, value->shape);
    result_.outputs.push_back({Clean(output.name()), value->shape});
    named[value->blob].push_back(result_.outputs.back());
  }
  for (const auto& [blob, outputs] : named) {
    bool read = false;
    LayerParameter* maker = nullptr;
    for (LayerParameter& layer : *result_.net.mutable_layer()) {
      read |= std::find(layer.bottom().begin(), layer.bottom().end(), blob) != layer.bottom().end();
      if (std::find(layer.top().begin(), layer.top().end(), blob) != layer.top().end()) maker = &layer;
    }
    CREMA_CHECK(maker != nullptr) << blob;
    if (outputs.size() == 1 && !read && maker->type() != "Input") {
      std::replace(maker->mutable_top()->begin(), maker->mutable_top()->end(), blob, outputs[0].name);
      continue;
    }
    // A blob that a layer reads is no output of the net: copies of it are.
    LayerParameter copies = LayerOf("Split");
    copies.set_name(Unique(outputs[0].name + "/output"));
    copies.add_bottom(blob);
    for (const ImportedNet::Tensor& output : outputs) copies.add_top(output.name);
    Append(std::move(copies), {outputs[0].shape}, {});
  }
}

void GraphReader::AddSoftmax() {
  const ImportedNet::Tensor scores = result_.outputs[0];
  if (result_.outputs.size() != 1 || scores.shape.axes() < 2) {
    throw UserError(where(), "--softmax: takes a model whose only output is N x classes");
  }
  for (const LayerParameter& maker : result_.net.layer()) {
    if (maker.type() == "Softmax" && maker.top(0) == scores.name) {
      throw UserError(where(), "--softmax: the output \"" + scores.name + "\" is of a Softmax already; leave it out");
    }
  }
  LayerParameter layer = LayerOf("Softmax");
  layer.set_name(Unique("prob"));
  layer.add_bottom(scores.name);
  layer.add_top(layer.name());
  result_.outputs[0].name = layer.name();
  Append(std::move(layer), {scores.shape}, {});
}

ImportedNet GraphReader::Read() {
  CheckOperators();
  ReadInputs();
  const int64_t set = OperatorSetOf(model_);
  if (set > kNewestOperatorSet) {
    Note("is of operator set " + std::to_string(set) + ", newer than " + std::to_string(kNewestOperatorSet) +
         ", the last that crema knows; compare what the net computes");
  }
  Diagnostics problems;
  // Constants first: what reads a node together with those behind it asks for theirs.
  for (const bool constants : {true, false}) {
    for (int i = 0; i < graph_.node_size(); ++i) {
      const NodeProto& node = graph_.node(i);
      if (!needed_[i] || absorbed_.count(&node) > 0 || (node.op_type() == "Constant") != constants) continue;
      try {
        ReadNode(node);
      } catch (const Unknown&) {
        // What it reads has been complained about.
      } catch (const UserError& error) {
        for (const Diagnostic& problem : error.diagnostics()) {
          problems.Error(where(), Describe(node) + ": " + problem.message);
        }
      }
    }
  }
  problems.ThrowIfErrors();
  NameOutputs();
  if (options_.softmax) AddSoftmax();
  result_.net.set_name(Clean(graph_.name()));
  result_.weights.set_name(result_.net.name());
  // Of a file without any layer nobody knew that it is one of weights.
  for (int i = 0; result_.weights.layer_size() <= i && i < result_.net.layer_size(); ++i) {
    LayerParameter* const named = result_.weights.add_layer();
    named->set_name(result_.net.layer(i).name());
    named->set_type(result_.net.layer(i).type());
  }
  result_.nodes = graph_.node_size();
  return std::move(result_);
}

}  // namespace crema::onnx
