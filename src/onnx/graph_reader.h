// Makes a net of a graph of ONNX, one node after the other, and what reads a node on the way.
#ifndef CREMA_ONNX_GRAPH_READER_H_
#define CREMA_ONNX_GRAPH_READER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "import/layers.h"
#include "onnx/constant.h"
#include "onnx/import.h"

namespace crema::onnx {

// What a name of the file stands for.
struct Operand {
  std::shared_ptr<const Constant> constant = nullptr;  // or else:
  std::string blob = {};
  Shape shape = {};
  // Zeros around the blob, for each axis, which what reads it still has to add; empty: none. `shape` is without them.
  std::vector<int64_t> before = {}, after = {};

  bool is_constant() const { return constant != nullptr; }
};

class NodeReader;

class GraphReader {
 public:
  // `path` is the model's, for messages and external data.
  GraphReader(const ModelProto& model, std::string path, const OnnxImportOptions& options);

  // Throws UserError with everything that has no form.
  ImportedNet Read();

  // After Read: the net's inputs of which the file leaves the batch open, and the shapes of blobs, under the names that
  // they had before outputs got theirs.
  const std::set<std::string>& open_inputs() const { return open_inputs_; }
  const std::map<std::string, Shape>& shapes() const { return shapes_; }

 private:
  friend class NodeReader;

  void CheckOperators();
  void ReadInputs();
  Shape ShapeOfInput(const ValueInfoProto& input);
  // The input as the model takes it: its channels the other way round.
  std::string SwapChannels(const std::string& blob, const Shape& shape);
  void ReadNode(const NodeProto& node);
  void NameOutputs();
  void CheckOutput(const ValueInfoProto& declared, const Shape& shape);
  void AddSoftmax();

  bool IsOutput(const std::string& name) const;
  Location where() const { return {path_, 0, 0}; }
  void Note(const std::string& message);
  // The constant or blob of a name; null where what makes it failed.
  const Operand* Find(const std::string& name);
  std::string Unique(const std::string& name);
  // Appends the layer, whose name and tops are set, with its blobs; returns the shapes of its tops. Throws UserError.
  std::vector<Shape> Append(LayerParameter layer, const std::vector<Shape>& bottoms, std::vector<Constant> blobs);

  const ModelProto& model_;
  const GraphProto& graph_;
  const std::string path_;
  const OnnxImportOptions& options_;
  ImportedNet result_;
  std::vector<bool> needed_;
  std::map<std::string, Operand> operands_;
  std::map<std::string, const TensorProto*> initializers_;
  std::map<std::string, int> reads_;                 // how often needed nodes, and the graph's outputs, read a name
  std::map<std::string, const NodeProto*> readers_;  // the last of them
  std::set<std::string> names_;                      // of layers and blobs
  std::set<const NodeProto*> absorbed_;
  std::map<std::string, Shape> shapes_;  // by blob
  std::set<std::string> open_inputs_;
};

// One node. Whatever it throws is reported as the node's mistake.
class NodeReader {
 public:
  NodeReader(GraphReader& graph, const NodeProto& node);

  const std::string& op() const { return node_.op_type(); }
  const NodeProto& node() const { return node_; }
  int64_t operator_set() const;
  // Stops with a diagnostic that names the node.
  [[noreturn]] void Refuse(const std::string& message) const;

  // --- Inputs; asking for one that is left out is the file's mistake ---

  int inputs() const { return node_.input_size(); }
  bool has(int i) const { return i < node_.input_size() && !node_.input(i).empty(); }
  bool is_constant(int i) const { return operand(i).is_constant(); }
  // As it is: a constant, or a blob that may still have to be padded.
  const Operand& operand(int i) const;
  // Of what the node sees, padding included.
  Shape shape(int i) const;
  // A blob, padded; a constant becomes a Parameter layer that is not trained.
  Operand blob(int i);
  // Refuses what is computed; `role` says what it is: "the weights".
  const Constant& constant(int i, const std::string& role) const;
  // The same of floats.
  const std::vector<float>& floats(int i, const std::string& role) const;
  const std::vector<int64_t>& integers(int i, const std::string& role) const;
  // Its only number.
  double number(int i, const std::string& role) const;

  // --- Attributes; one of another type is the file's mistake ---

  bool has_attribute(const std::string& name) const { return Attribute(name) != nullptr; }
  int64_t Int(const std::string& name, int64_t fallback) const;
  float Float(const std::string& name, float fallback) const;
  std::string String(const std::string& name, const std::string& fallback) const;
  std::optional<std::vector<std::string>> Strings(const std::string& name) const;
  std::optional<std::vector<int64_t>> Ints(const std::string& name) const;
  // Whole numbers that are an attribute in older operator sets and input `i` in newer ones.
  std::optional<std::vector<int64_t>> List(const std::string& name, int i) const;
  std::optional<Constant> Tensor(const std::string& name) const;
  std::optional<std::vector<float>> Floats(const std::string& name) const;
  // The axis in [0, axes], which may be negative in the file; `past_end`: may be `axes` itself.
  int Axis(int64_t axis, int axes, bool past_end = false) const;
  std::vector<int> Axes(const std::vector<int64_t>& axes, int count) const;

  // --- Results ---

  int outputs() const { return node_.output_size(); }
  // Whether anything reads it.
  bool wanted(int i) const;
  void Set(int i, Operand value);
  void SetConstant(int i, Constant value);
  // Appends a layer of one top. The layer's name is the node's, with "/role" behind it where there is one.
  Operand Add(LayerParameter layer, const std::vector<Operand>& bottoms, std::vector<Constant> blobs = {},
              const std::string& role = {});
  std::vector<Operand> AddMany(LayerParameter layer, const std::vector<Operand>& bottoms, int tops,
                               std::vector<Constant> blobs = {}, const std::string& role = {});
  // The same values under another shape, so that it holds for other batches, too, where the first extent stays.
  Operand Reshape(const Operand& value, const Shape& shape, const std::string& role = {});
  // The same values, repeated under the larger shape that broadcasting gives them.
  Operand Stretched(const Operand& value, const Shape& shape);
  // (scale * value + shift) ^ power.
  Operand Power(const Operand& value, float scale, float shift, float power = 1, const std::string& role = {});
  // With its axes in another order.
  Operand Permute(const Operand& value, const std::vector<int>& order, const std::string& role = {});
  // `count` elements of an axis, from `start` on.
  Operand Cut(const Operand& value, int axis, int64_t start, int64_t count, const std::string& role = {});
  // Padded by zeros, as far as that is still to do.
  Operand Padded(const Operand& value);
  void Note(const std::string& message);

  // The node that alone reads output 0, or that of what was absorbed last, where it is an `op`; null where there is
  // none.
  const NodeProto* Follower(const std::string& op) const;
  // Nothing more is made of `follower`: what Set(0) gets is its result.
  void Absorb(const NodeProto& follower);
  // The constant that `other` reads; null where it is none.
  const Constant* ConstantOf(const NodeProto& other, int i) const;
  // The blob that it reads; empty where it is none.
  std::string BlobOf(const NodeProto& other, int i) const;
  // The last layer, where it made `blob`, is an `type`, and nothing but this node reads that; null else.
  LayerParameter* LastLayer(const std::string& blob, const std::string& type, const std::string& name);
  // Undoes the layer that LastLayer found, of one bottom and no blobs; what it read.
  Operand TakeBack(const LayerParameter& last);
  // The name that layers get.
  void set_base(const std::string& base) { base_ = base; }

 private:
  const AttributeProto* Attribute(const std::string& name) const;

  GraphReader& graph_;
  const NodeProto& node_;
  const NodeProto* last_;  // whose results are set: the node or what it absorbed
  std::string base_;
};

}  // namespace crema::onnx

#endif  // CREMA_ONNX_GRAPH_READER_H_
