#include <algorithm>
#include <limits>
#include <map>

#include "base/paths.h"
#include "onnx/graph_reader.h"
#include "onnx/model_reader.h"

namespace crema::onnx {

namespace {

// That of the weights it holds, which the user knows, or else its own.
std::string BaseName(const NodeProto& node, const std::map<std::string, const TensorProto*>& initializers) {
  constexpr std::string_view kWeight = ".weight";
  for (const std::string& input : node.input()) {
    if (initializers.count(input) > 0 && input.ends_with(kWeight) && input.size() > kWeight.size()) {
      return input.substr(0, input.size() - kWeight.size());
    }
  }
  return !node.name().empty() || node.output().empty() ? node.name() : node.output(0);
}

const char* Word(AttributeProto::AttributeType type) {
  switch (type) {
    case AttributeProto::FLOAT:
      return "a number";
    case AttributeProto::INT:
      return "a whole number";
    case AttributeProto::STRING:
      return "a word";
    case AttributeProto::FLOATS:
      return "numbers";
    case AttributeProto::INTS:
      return "whole numbers";
    case AttributeProto::STRINGS:
      return "words";
    case AttributeProto::TENSOR:
      return "a tensor";
    default:
      return "another value";
  }
}

}  // namespace

NodeReader::NodeReader(GraphReader& graph, const NodeProto& node)
    : graph_(graph), node_(node), last_(&node), base_(BaseName(node, graph.initializers_)) {}

int64_t NodeReader::operator_set() const { return OperatorSetOf(graph_.model_); }

void NodeReader::Refuse(const std::string& message) const { throw UserError(message); }

void NodeReader::Note(const std::string& message) { graph_.Note(Describe(node_) + ": " + message); }

const Operand& NodeReader::operand(int i) const {
  if (!has(i)) Refuse("has no input " + std::to_string(i) + ", which it needs");
  return *graph_.Find(node_.input(i));
}

Shape NodeReader::shape(int i) const {
  const Operand& value = operand(i);
  Shape shape = value.is_constant() ? value.constant->shape : value.shape;
  for (size_t axis = 0; axis < value.before.size(); ++axis) {
    shape.set(static_cast<int>(axis), shape[static_cast<int>(axis)] + value.before[axis] + value.after[axis]);
  }
  return shape;
}

Operand NodeReader::blob(int i) {
  const Operand& value = operand(i);
  if (!value.is_constant()) return Padded(value);
  LayerParameter layer = LayerOf("Parameter");
  for (const int64_t extent : value.constant->shape.dims())
    layer.mutable_parameter_param()->mutable_shape()->add_dim(extent);
  layer.mutable_parameter_param()->mutable_shape();
  Freeze(1, &layer);
  Constant floats = *value.constant;
  if (floats.whole) floats.floats.assign(floats.integers.begin(), floats.integers.end());
  return Add(std::move(layer), {}, {std::move(floats)}, "constant");
}

const Constant& NodeReader::constant(int i, const std::string& role) const {
  const Operand& value = operand(i);
  if (!value.is_constant()) Refuse(role + " must be constant, but \"" + node_.input(i) + "\" is computed");
  return *value.constant;
}

const std::vector<float>& NodeReader::floats(int i, const std::string& role) const {
  const Constant& value = constant(i, role);
  if (value.whole) Refuse(role + " must be floats, but \"" + node_.input(i) + "\" holds whole numbers");
  return value.floats;
}

const std::vector<int64_t>& NodeReader::integers(int i, const std::string& role) const {
  const Constant& value = constant(i, role);
  if (!value.whole) Refuse(role + " must be whole numbers, but \"" + node_.input(i) + "\" holds floats");
  return value.integers;
}

double NodeReader::number(int i, const std::string& role) const {
  const Constant& value = constant(i, role);
  if (value.count() != 1)
    Refuse(role + " must be one number, but \"" + node_.input(i) + "\" is " + value.shape.ToString());
  return value.value(0);
}

const AttributeProto* NodeReader::Attribute(const std::string& name) const {
  for (const AttributeProto& attribute : node_.attribute()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

namespace {

// Files of old versions do not say the type.
bool IsA(const AttributeProto& attribute, AttributeProto::AttributeType type, bool has_value) {
  return attribute.has_type() ? attribute.type() == type : has_value;
}

std::string WrongType(const AttributeProto& attribute, AttributeProto::AttributeType type) {
  return "attribute " + attribute.name() + " must be " + Word(type);
}

}  // namespace

int64_t NodeReader::Int(const std::string& name, int64_t fallback) const {
  const AttributeProto* attribute = Attribute(name);
  if (!attribute) return fallback;
  if (!IsA(*attribute, AttributeProto::INT, attribute->has_i())) Refuse(WrongType(*attribute, AttributeProto::INT));
  return attribute->i();
}

float NodeReader::Float(const std::string& name, float fallback) const {
  const AttributeProto* attribute = Attribute(name);
  if (!attribute) return fallback;
  if (!IsA(*attribute, AttributeProto::FLOAT, attribute->has_f())) Refuse(WrongType(*attribute, AttributeProto::FLOAT));
  return attribute->f();
}

std::string NodeReader::String(const std::string& name, const std::string& fallback) const {
  const AttributeProto* attribute = Attribute(name);
  if (!attribute) return fallback;
  if (!IsA(*attribute, AttributeProto::STRING, attribute->has_s()))
    Refuse(WrongType(*attribute, AttributeProto::STRING));
  return attribute->s();
}

std::optional<std::vector<std::string>> NodeReader::Strings(const std::string& name) const {
  const AttributeProto* attribute = Attribute(name);
  if (!attribute) return std::nullopt;
  if (!IsA(*attribute, AttributeProto::STRINGS, true)) Refuse(WrongType(*attribute, AttributeProto::STRINGS));
  return std::vector<std::string>(attribute->strings().begin(), attribute->strings().end());
}

std::optional<std::vector<int64_t>> NodeReader::Ints(const std::string& name) const {
  const AttributeProto* attribute = Attribute(name);
  if (!attribute) return std::nullopt;
  if (!IsA(*attribute, AttributeProto::INTS, true)) Refuse(WrongType(*attribute, AttributeProto::INTS));
  return std::vector<int64_t>(attribute->ints().begin(), attribute->ints().end());
}

std::optional<std::vector<float>> NodeReader::Floats(const std::string& name) const {
  const AttributeProto* attribute = Attribute(name);
  if (!attribute) return std::nullopt;
  if (!IsA(*attribute, AttributeProto::FLOATS, true)) Refuse(WrongType(*attribute, AttributeProto::FLOATS));
  return std::vector<float>(attribute->floats().begin(), attribute->floats().end());
}

std::optional<std::vector<int64_t>> NodeReader::List(const std::string& name, int i) const {
  if (has_attribute(name) || !has(i)) return Ints(name);
  return integers(i, name);
}

std::optional<Constant> NodeReader::Tensor(const std::string& name) const {
  const AttributeProto* attribute = Attribute(name);
  if (!attribute) return std::nullopt;
  if (!IsA(*attribute, AttributeProto::TENSOR, attribute->has_t()))
    Refuse(WrongType(*attribute, AttributeProto::TENSOR));
  return ReadTensor(attribute->t(), DirectoryOf(graph_.path_));
}

int NodeReader::Axis(int64_t axis, int axes, bool past_end) const {
  const int64_t most = axes - (past_end ? 0 : 1);
  if (axis < -int64_t{axes} || axis > most) {
    Refuse("axis " + std::to_string(axis) + " is none of the " + std::to_string(axes) + " axes of what it reads");
  }
  return static_cast<int>(axis < 0 ? axis + axes : axis);
}

std::vector<int> NodeReader::Axes(const std::vector<int64_t>& axes, int count) const {
  std::vector<int> sorted;
  for (const int64_t axis : axes) sorted.push_back(Axis(axis, count));
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) Refuse("names an axis twice");
  return sorted;
}

bool NodeReader::wanted(int i) const {
  if (i >= node_.output_size() || node_.output(i).empty()) return false;
  const auto reads = graph_.reads_.find(node_.output(i));
  return reads != graph_.reads_.end() && reads->second > 0;
}

void NodeReader::Set(int i, Operand value) {
  if (i >= last_->output_size()) Refuse("has no output " + std::to_string(i));
  // No layer follows that would pad it.
  if (graph_.IsOutput(last_->output(i))) value = Padded(value);
  graph_.operands_[last_->output(i)] = std::move(value);
}

void NodeReader::SetConstant(int i, Constant value) {
  Set(i, {.constant = std::make_shared<Constant>(std::move(value))});
}

Operand NodeReader::Add(LayerParameter layer, const std::vector<Operand>& bottoms, std::vector<Constant> blobs,
                        const std::string& role) {
  return AddMany(std::move(layer), bottoms, 1, std::move(blobs), role)[0];
}

std::vector<Operand> NodeReader::AddMany(LayerParameter layer, const std::vector<Operand>& bottoms, int tops,
                                         std::vector<Constant> blobs, const std::string& role) {
  layer.set_name(graph_.Unique(role.empty() ? base_ : base_ + "/" + role));
  std::vector<Shape> shapes;
  for (const Operand& bottom : bottoms) {
    layer.add_bottom(bottom.blob);
    shapes.push_back(bottom.shape);
  }
  std::vector<Operand> results;
  for (int i = 0; i < tops; ++i) {
    layer.add_top(tops == 1 ? layer.name() : graph_.Unique(layer.name() + "/" + std::to_string(i)));
    results.push_back({.blob = layer.top(i)});
  }
  const std::vector<Shape> made = graph_.Append(std::move(layer), shapes, std::move(blobs));
  for (int i = 0; i < tops; ++i) results[i].shape = made[i];
  return results;
}

Operand NodeReader::Reshape(const Operand& value, const Shape& shape, const std::string& role) {
  if (value.shape == shape) return value;
  if (shape.count() != value.shape.count()) {
    Refuse("cannot give " + value.shape.ToString() + " the shape " + shape.ToString() + ", which holds " +
           std::to_string(shape.count()) + " elements");
  }
  if (shape.axes() == 2 && value.shape.axes() > 2 && shape[0] == value.shape[0]) {
    return Add(LayerOf("Flatten"), {value}, {}, role);
  }
  LayerParameter layer = LayerOf("Reshape");
  BlobShape* dims = layer.mutable_reshape_param()->mutable_shape();
  bool batch = value.shape.axes() > 0;
  for (int i = 0; i < shape.axes(); ++i) {
    const bool stays = i < value.shape.axes() && shape[i] == value.shape[i] && batch;
    // Another first extent may be a multiple of the batch.
    dims->add_dim(stays ? 0 : i == 0 ? -1 : shape[i]);
    batch &= stays;
  }
  return Add(std::move(layer), {value}, {}, role);
}

Operand NodeReader::Stretched(const Operand& value, const Shape& shape) {
  std::vector<int64_t> dims(shape.axes() - value.shape.axes(), 1);
  dims.insert(dims.end(), value.shape.dims().begin(), value.shape.dims().end());
  Operand result = Reshape(value, Shape(dims), "axes");
  for (int axis = 0; axis < shape.axes(); ++axis) {
    if (dims[axis] == shape[axis]) continue;
    LayerParameter layer = LayerOf("Tile");
    if (axis != 1) layer.mutable_tile_param()->set_axis(axis);
    layer.mutable_tile_param()->set_tiles(
        static_cast<int32_t>(std::min<int64_t>(shape[axis], std::numeric_limits<int32_t>::max())));
    result = Add(std::move(layer), {result}, {}, "tile");
  }
  return result;
}

Operand NodeReader::Power(const Operand& value, float scale, float shift, float power, const std::string& role) {
  LayerParameter layer = LayerOf("Power");
  PowerParameter* param = layer.mutable_power_param();
  if (scale != 1) param->set_scale(scale);
  if (shift != 0) param->set_shift(shift);
  if (power != 1) param->set_power(power);
  return Add(std::move(layer), {value}, {}, role);
}

Operand NodeReader::Permute(const Operand& value, const std::vector<int>& order, const std::string& role) {
  if (std::is_sorted(order.begin(), order.end())) return value;
  LayerParameter layer = LayerOf("Permute");
  for (const int axis : order) layer.mutable_permute_param()->add_order(axis);
  return Add(std::move(layer), {value}, {}, role);
}

Operand NodeReader::Cut(const Operand& value, int axis, int64_t start, int64_t count, const std::string& role) {
  const int64_t extent = value.shape[axis], end = start + count;
  if (start == 0 && end == extent) return value;
  std::vector<Operand> parts =
      AddMany(SliceFor(axis, start, end, extent), {value}, 1 + (start > 0) + (end < extent), {}, role);
  const Operand wanted = parts[start > 0];
  parts.erase(parts.begin() + (start > 0));
  AddMany(LayerOf("Silence"), parts, 0, {}, "rest");
  return wanted;
}

const NodeProto* NodeReader::Follower(const std::string& op) const {
  const auto reads = graph_.reads_.find(last_->output(0));
  if (reads == graph_.reads_.end() || reads->second != 1) return nullptr;
  const NodeProto* reader = graph_.readers_.at(last_->output(0));
  return reader->op_type() == op && reader->domain().empty() && reader->output_size() == 1 ? reader : nullptr;
}

void NodeReader::Absorb(const NodeProto& follower) {
  graph_.absorbed_.insert(&follower);
  last_ = &follower;
}

const Constant* NodeReader::ConstantOf(const NodeProto& other, int i) const {
  if (i >= other.input_size() || other.input(i).empty()) return nullptr;
  const Operand* value = graph_.Find(other.input(i));
  return value ? value->constant.get() : nullptr;
}

std::string NodeReader::BlobOf(const NodeProto& other, int i) const {
  if (i >= other.input_size() || other.input(i).empty()) return {};
  const Operand* value = graph_.Find(other.input(i));
  return value ? value->blob : std::string();
}

LayerParameter* NodeReader::LastLayer(const std::string& blob, const std::string& type, const std::string& name) {
  auto& layers = *graph_.result_.net.mutable_layer();
  if (layers.empty() || graph_.reads_[name] != 1) return nullptr;
  const auto is_it = [&](const auto& operand) { return operand.second.blob == blob; };
  if (std::count_if(graph_.operands_.begin(), graph_.operands_.end(), is_it) != 1) return nullptr;  // it has two names
  LayerParameter& last = *layers.rbegin();
  return last.type() == type && last.top_size() == 1 && last.top(0) == blob ? &last : nullptr;
}

Operand NodeReader::TakeBack(const LayerParameter& last) {
  Operand value{.blob = last.bottom(0), .shape = graph_.shapes_.at(last.bottom(0))};
  graph_.names_.erase(last.name());
  graph_.shapes_.erase(last.top(0));
  graph_.result_.net.mutable_layer()->RemoveLast();
  return value;
}

}  // namespace crema::onnx
