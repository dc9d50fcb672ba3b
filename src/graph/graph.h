// The compiler's picture of a net: layers as nodes, every write of a blob as a value, learnable parameters. Plain data;
// each pass fills in a little more of it.
#ifndef CREMA_GRAPH_GRAPH_H_
#define CREMA_GRAPH_GRAPH_H_

#include <memory>
#include <string>
#include <vector>

#include "crema/layer.h"

namespace crema {

// A blob's contents between two writes of its name: in-place layers read one value and make the next one.
struct Value {
  struct Use {
    int node;
    int bottom;
  };

  std::string name;  // the blob's name in the file
  int version = 0;   // how often the name was written before
  int producer = -1;
  int producer_top = 0;
  std::vector<Use> uses;
  TensorSpec spec;
  bool shape_known = false;
  // Some parameter, or an input under force_backward, lies below: a gradient of it is of use.
  bool needs_grad = false;
  // Some loss lies above.
  bool reaches_loss = false;
  // One of Graph::outputs.
  bool is_output = false;

  // "ip1", or "ip1'2" for the second rewrite in place.
  std::string label() const { return version == 0 ? name : name + "'" + std::to_string(version); }
};

// Whether a tensor may be laid out channels last: numbers, three to five axes.
bool IsImage(const TensorSpec& spec);

struct GraphParam {
  int owner = -1;       // node
  int owner_index = 0;  // which of the owner's blobs
  std::string shared_name;
  TensorSpec spec;
  FillerParameter filler;
  float lr_mult = 1, decay_mult = 1;
  bool has_lr_mult = false, has_decay_mult = false;
  bool learnable = true;
  std::vector<int> users;  // nodes, the owner first

  // Another net's, which NetOptions::share_with named.
  bool borrowed = false;
  // A layer may choose `layout`, after lay_out_weights.
  bool may_lay_out = false;
  // How it and its gradient lie; null: plain.
  std::shared_ptr<const ParameterLayout> layout;

  bool wants_grad() const { return learnable && lr_mult != 0; }
  // As it lies in memory; `spec` is what files know.
  TensorSpec stored() const { return layout ? TensorSpec{Shape{layout->count()}, spec.dtype} : spec; }
};

// A layer of the file; or, in Graph::fused, several of them that run as one.
struct Node {
  int index_in_file = 0;  // layer(i) of the net file
  const LayerParameter* param = nullptr;
  const LayerType* type = nullptr;
  Phase phase = TRAIN;
  std::vector<int> bottoms, tops;  // values
  std::vector<int> params;
  std::vector<float> loss_weights;  // one a top

  // Of the images it reads and makes; other tensors are as their specs say.
  Layout layout = Layout::kPlain;
  DType image_type = DType::kF32;
  std::unique_ptr<Layer> layer;
  std::unique_ptr<LayerSetup> setup;  // after infer_shapes
  std::unique_ptr<LayerPlan> plan;    // after choose_kernels
  bool runs_backward = false;
  // What it makes is not kept from forward to backward: it runs again where that is read.
  bool recompute = false;
  std::vector<bool> bottom_grads, param_grads;

  // Items of the batch that it takes at a time, and that `layer` is set up for; 0: all.
  int64_t rows = 0;
  std::vector<std::unique_ptr<Layer>> other_lanes;  // such layers for the other lanes of the part

  std::vector<int> members;                      // of a fused node: the layers it stands for, in their order
  std::unique_ptr<Layer> (*create)() = nullptr;  // of a fused node: another such layer
  std::string fused_name;                        // "conv1+relu1"
  std::string fused_type;                        // "Convolution+ReLU"

  const std::string& name() const { return members.empty() ? param->name() : fused_name; }
  const std::string& type_name() const { return members.empty() ? type->name : fused_type; }
  // `spec` as this node sees it.
  TensorSpec Laid(TensorSpec spec) const;
};

// Units that run one after the other on `rows` items of the batch, then on the next ones. Turns are taken by several
// threads, each with a lane of its own: layers, and memory for what lies between them.
struct BatchPart {
  int begin = 0, end = 0;  // places in Graph::order
  int64_t rows = 0, turns = 0;
  int lanes = 1;
  std::vector<int> inner = {};  // values that exist for the items of one turn only
};

struct Graph {
  std::string name;
  Phase phase = TRAIN;
  std::vector<Node> nodes;  // the layers of the file that are in this net, in their order
  std::vector<Node> fused;  // groups of them that run as one; their values, parameters and flags are the members'
  // What is run, in this order: units, that is nodes which are in no group, and groups (see unit()).
  std::vector<int> order;
  std::vector<BatchPart> parts;  // in the order of their units
  std::vector<Value> values;
  std::vector<GraphParam> params;
  // Chains of layers whose types could run as one but did not, with the reason: "a+r (InnerProduct+ReLU): ..."
  std::vector<std::string> fusion_notes;
  // After choose_layouts: what is wanted and this device is faster with.
  Factors factors = Factors::kF32;
  // Values that no layer reads, or what NetOptions::outputs names, sorted by name as Caffe does.
  std::vector<int> outputs;

  // Unit u is nodes[u], or fused[u - nodes.size()].
  Node& unit(int u) { return u < size() ? nodes[u] : fused[u - size()]; }
  const Node& unit(int u) const { return u < size() ? nodes[u] : fused[u - size()]; }
  int size() const { return static_cast<int>(nodes.size()); }

  // Aborts unless producers, uses and indices agree: run after every pass.
  void Verify() const;
};

}  // namespace crema

#endif  // CREMA_GRAPH_GRAPH_H_
