// Writing a compiled net's layers as the nodes of an ONNX graph. GraphWriter is the file in the making; a LayerWriter
// is what the function for one type of layer (layer_table.h) sees of it.
#ifndef CREMA_ONNX_GRAPH_WRITER_H_
#define CREMA_ONNX_GRAPH_WRITER_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "crema/error.h"
#include "crema/net.h"
#include "graph/graph.h"
#include "onnx/export.h"
#include "onnx/model.pb.h"

namespace crema::onnx {

// An extent that is known only when the net runs.
inline constexpr int64_t kOpen = -1;

// Thrown for a layer that can be written, but not while the extent of the batch is open.
class OpenBatchError : public UserError {
  using UserError::UserError;
};

AttributeProto Int(const std::string& name, int64_t value);
AttributeProto Ints(const std::string& name, const std::vector<int64_t>& values);
AttributeProto Float(const std::string& name, float value);
AttributeProto String(const std::string& name, const std::string& value);
AttributeProto Body(const std::string& name, GraphProto graph);
// A node of a graph that another node runs.
NodeProto InnerNode(const std::string& op, const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs, const std::vector<AttributeProto>& attributes = {});
// A tensor of floats; an extent of kOpen is left open.
ValueInfoProto FloatsInfo(const std::string& name, const std::vector<int64_t>& dims);

class GraphWriter {
 public:
  // `net` has the weights and one node for each layer (no fused ones). `other`: the same net for another extent of the
  // batch; extents that differ are open. Null: none is. `transform`: what the graph does to the values of an input; may
  // be null. All must outlive this.
  GraphWriter(const Net& net, const Graph* other, const OnnxTransform* transform);

  // Writes all layers, inputs and outputs. Throws UserError that holds every layer without a form in ONNX; where there
  // is none, OpenBatchError.
  GraphProto Write();

 private:
  friend class LayerWriter;

  void WriteInput(const Node& node);  // input_values.cc
  void WriteLayer(const Node& node);
  std::vector<int64_t> Dims(int value) const;
  ValueInfoProto Info(int value) const;
  std::string Unique(const std::string& name);  // of a value
  std::string UniqueNode(const std::string& name);
  std::string AddInitializer(const std::string& name, const Shape& shape, int32_t type, const void* data, size_t bytes);

  const Net& net_;
  const Graph& graph_;
  const Graph* other_;
  const OnnxTransform* transform_;
  GraphProto out_;
  std::vector<std::string> value_names_;
  std::set<std::string> names_;  // of values, constants among them
  std::set<std::string> node_names_;
  std::map<std::pair<int, std::vector<int64_t>>, std::string> weights_;  // by parameter and shape
  std::set<const Node*> absorbed_;
};

class LayerWriter {
 public:
  LayerWriter(GraphWriter& writer, const Node& node);

  const LayerParameter& param() const { return *node_.param; }
  const std::string& type() const { return node_.type->name; }
  int bottoms() const { return static_cast<int>(node_.bottoms.size()); }
  int tops() const { return static_cast<int>(node_.tops.size()); }
  int blobs() const { return static_cast<int>(node_.params.size()); }
  // The names of their values.
  const std::string& bottom(int i) const { return writer_.value_names_[node_.bottoms[i]]; }
  // For the batch that the net was compiled for.
  const Shape& bottom_shape(int i) const { return Spec(node_.bottoms[i]); }
  const Shape& top_shape(int i) const { return Spec(node_.tops[i]); }
  // The same with kOpen for what is open.
  std::vector<int64_t> bottom_dims(int i) const { return writer_.Dims(node_.bottoms[i]); }
  std::vector<int64_t> top_dims(int i) const { return writer_.Dims(node_.tops[i]); }
  const Node& node() const { return node_; }
  const Graph& graph() const { return writer_.graph_; }

  // Stops with a diagnostic at `field` of this layer.
  [[noreturn]] void Refuse(const std::string& field, const std::string& message) const;
  // The same with OpenBatchError.
  [[noreturn]] void RefuseOpen(const std::string& message) const;
  // Refuses an open extent of bottom `i`, which the layer's form needs to know; ExpectFixedFrom: on any axis from
  // `first` on.
  void ExpectFixed(int i, int axis) const;
  void ExpectFixedFrom(int i, int first) const;

  // --- Constants; all return the name under which nodes read them, which begins with the layer's and ends in `role`
  // ---

  // Blob `i` of the layer, under another shape where one is given. Layers that share it read one constant.
  std::string Blob(int i, const std::string& role);
  std::string Blob(int i, const std::string& role, const Shape& shape);
  std::vector<float> BlobValues(int i) const;
  const Shape& blob_shape(int i) const { return node_.setup->params()[i].shape; }
  std::string Floats(const std::string& role, const Shape& shape, const std::vector<float>& values);
  std::string Number(const std::string& role, float value) { return Floats(role, {}, {value}); }
  std::string Integers(const std::string& role, const std::vector<int64_t>& values);
  std::string Integer(const std::string& role, int64_t value);

  // --- Nodes ---

  // Appends a node of one result and returns that one's name.
  std::string Add(const std::string& op, const std::vector<std::string>& inputs,
                  const std::vector<AttributeProto>& attributes = {});
  // The same with several.
  std::vector<std::string> AddMany(const std::string& op, const std::vector<std::string>& inputs, int results,
                                   const std::vector<AttributeProto>& attributes = {});
  // `value` under another shape; nothing where it has that already. At most one extent may be kOpen.
  std::string Reshape(const std::string& value, const std::vector<int64_t>& dims);
  // factor * value + shift, without what changes nothing.
  std::string Affine(const std::string& value, float factor, float shift);
  // Gives top `i` its contents: the node that makes `value` gets the names of layer and blob where it is this layer's.
  void SetTop(int i, const std::string& value);

  // The only layer that reads top 0, where it reads nothing else; null where there is none.
  const Node* Follower() const;
  // Writes `follower` as a part of this layer: its top is set through the result, and nothing else is written for it.
  LayerWriter Absorb(const Node& follower);

 private:
  Diagnostic Problem(const std::string& field, const std::string& message) const;
  const Shape& Spec(int value) const { return writer_.graph_.values[value].spec.shape; }

  GraphWriter& writer_;
  const Node& node_;
  std::string name_;  // of its last node
  int first_;         // of its nodes
};

}  // namespace crema::onnx

#endif  // CREMA_ONNX_GRAPH_WRITER_H_
