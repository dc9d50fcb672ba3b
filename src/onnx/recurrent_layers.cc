// GRU, LSTM and RNN. Where all sequences begin with the pass they are ONNX's operators of these names. Else sequences
// may begin anew at any step, as the second bottom says, which those cannot do: the steps are then the body of a Scan,
// with the arithmetic of src/ops/sequences/gru.h, lstm.h and rnn.h; whatever does not depend on the step before is
// computed outside, for all steps at once.
#include <algorithm>
#include <string>
#include <vector>

#include "onnx/layer_table.h"

namespace crema::onnx {

namespace {

// Nodes of a body, whose names are its own.
class Steps {
 public:
  // `states`: how many, each N x hidden; `sums`: of an element of the sequence.
  Steps(const std::string& layer, int states) : layer_(layer) {
    body_.set_name(layer + ".step");
    for (int i = 0; i < states; ++i) *body_.add_input() = Info(Name("state_" + std::to_string(i)));
    *body_.add_input() = Info(Name("sums"));
    *body_.add_input() = FloatsInfo(Name("continuation"), {kOpen});
  }

  std::string Name(const std::string& value) const { return layer_ + ".step/" + value; }

  std::string Add(const std::string& op, const std::vector<std::string>& inputs) {
    return AddNode(op, inputs, {}, 1)[0];
  }

  // Parts of the second axis, as long as `lengths` says.
  std::vector<std::string> Split(const std::string& value, const std::string& lengths, int parts) {
    return AddNode("Split", {value, lengths}, {Int("axis", 1)}, parts);
  }

  void AddOutput(const std::string& value) { *body_.add_output() = Info(Add("Identity", {value})); }

  GraphProto Take() { return std::move(body_); }

 private:
  std::vector<std::string> AddNode(const std::string& op, const std::vector<std::string>& inputs,
                                   const std::vector<AttributeProto>& attributes, int results) {
    std::vector<std::string> outputs;
    for (int i = 0; i < results; ++i) outputs.push_back(Name(op + "_" + std::to_string(++count_)));
    *body_.add_node() = InnerNode(op, inputs, outputs, attributes);
    body_.mutable_node(body_.node_size() - 1)->set_name(outputs[0]);
    return outputs;
  }

  ValueInfoProto Info(const std::string& name) const { return FloatsInfo(name, {kOpen, kOpen}); }

  std::string layer_;
  GraphProto body_;
  int count_ = 0;
};

// The sequence as steps x sequences x inputs.
std::string SequenceOf(LayerWriter& layer) {
  layer.ExpectFixedFrom(0, 2);
  const std::vector<int64_t> dims = layer.bottom_dims(0);
  if (dims.size() == 3) return layer.bottom(0);
  return layer.Reshape(layer.bottom(0), {dims[0], dims[1], layer.bottom_shape(0).count(2)});
}

// The sums that do not depend on the step before, steps x sequences x sums.
std::string InputSums(LayerWriter& layer, bool has_static) {
  const auto product = [&](const std::string& value, int blob, const std::string& role) {
    const std::string weights = layer.Add("Transpose", {layer.Blob(blob, role)}, {Ints("perm", {1, 0})});
    return layer.Add("MatMul", {value, weights});
  };
  std::string sums = layer.Add("Add", {product(SequenceOf(layer), 0, "input_weight"), layer.Blob(1, "bias")});
  if (!has_static) return sums;
  layer.ExpectFixedFrom(2, 1);
  std::string fixed = layer.bottom(2);
  if (layer.bottom_shape(2).axes() != 2) fixed = layer.Add("Flatten", {fixed}, {Int("axis", 1)});
  return layer.Add("Add", {sums, product(fixed, 2, "static_weight")});
}

// Runs the steps over all sums; returns h of each step, steps x sequences x hidden. `step` gives the new states, h
// first, from the names of the old ones, already dropped where a sequence begins, of the sums that do not depend on
// them, and of the product of the old h with the hidden weights.
template <typename Step>
std::string RunSteps(LayerWriter& layer, int states, const Step& step) {
  const RecurrentParameter& param = layer.param().recurrent_param();
  const int least = param.expose_hidden() ? 2 + states : 2;
  const bool has_static = layer.bottoms() == least + 1;
  const int64_t hidden = param.num_output(), sequences = layer.bottom_dims(0)[1];
  if (sequences == kOpen && !param.expose_hidden()) layer.ExpectFixed(0, 1);
  const std::string sums = InputSums(layer, has_static);

  std::vector<std::string> inputs;
  for (int i = 0; i < states; ++i) {
    const std::string role = "state_" + std::to_string(i);
    inputs.push_back(param.expose_hidden()
                         ? layer.Reshape(layer.bottom(least - states + has_static + i), {sequences, hidden})
                         : layer.Floats(role, {sequences, hidden}, std::vector<float>(sequences * hidden)));
  }
  inputs.push_back(sums);
  inputs.push_back(layer.bottom(1));

  Steps body(layer.param().name(), states);
  const std::string goes_on = body.Add("Unsqueeze", {body.Name("continuation"), layer.Integers("axis_of_unit", {1})});
  std::vector<std::string> before;
  for (int i = 0; i < states; ++i) {
    before.push_back(body.Add("Mul", {body.Name("state_" + std::to_string(i)), goes_on}));
  }
  const std::string weights =
      layer.Add("Transpose", {layer.Blob(has_static ? 3 : 2, "hidden_weight")}, {Ints("perm", {1, 0})});
  const std::vector<std::string> after =
      step(body, before, body.Name("sums"), body.Add("MatMul", {before[0], weights}));
  for (const std::string& state : after) body.AddOutput(state);
  body.AddOutput(after[0]);

  const std::vector<std::string> results =
      layer.AddMany("Scan", inputs, states + 1, {Body("body", body.Take()), Int("num_scan_inputs", 2)});
  for (int i = 0; param.expose_hidden() && i < states; ++i) {
    layer.SetTop(1 + i, layer.Reshape(results[i], layer.top_dims(1 + i)));
  }
  return results[states];
}

bool IsOperator(const Graph& graph, const Node& node) {
  return node.param->has_recurrent_param() && !node.param->recurrent_param().expose_hidden() &&
         node.bottoms.size() == 2 && BeginsInEachPass(graph, node);
}

// Values of a blob, `width` for each unit, with its gates in ONNX's order.
std::vector<float> InOrder(const std::vector<float>& blob, const std::vector<int>& gates, int64_t gate_floats) {
  std::vector<float> values;
  for (const int gate : gates) {
    values.insert(values.end(), blob.begin() + gate * gate_floats, blob.begin() + (gate + 1) * gate_floats);
  }
  return values;
}

// The operator; `gates`: where each of ONNX's stands in crema's order. Returns h of each step.
std::string AddOperator(LayerWriter& layer, const std::vector<int>& gates) {
  const int64_t hidden = layer.param().recurrent_param().num_output(), inputs = layer.bottom_shape(0).count(2);
  const int64_t rows = static_cast<int64_t>(gates.size()) * hidden;
  const std::string sequence = SequenceOf(layer);
  std::vector<float> bias = InOrder(layer.BlobValues(1), gates, hidden);
  bias.resize(2 * rows);
  std::vector<AttributeProto> attributes = {Int("hidden_size", hidden)};
  if (layer.type() == "GRU") {
    const std::vector<float> of_state = layer.BlobValues(layer.blobs() - 1);
    std::copy(of_state.begin(), of_state.end(), bias.end() - hidden);
    attributes.push_back(Int("linear_before_reset", 1));
  }
  const std::string result = layer.Add(
      layer.type(),
      {sequence, layer.Floats("weight", {1, rows, inputs}, InOrder(layer.BlobValues(0), gates, hidden * inputs)),
       layer.Floats("hidden_weight", {1, rows, hidden}, InOrder(layer.BlobValues(2), gates, hidden * hidden)),
       layer.Floats("bias", {1, 2 * rows}, bias)},
      attributes);
  return layer.Add("Squeeze", {result, layer.Integers("direction", {1})});
}

using Names = std::vector<std::string>;

void Gru(LayerWriter& layer) {
  if (IsOperator(layer.graph(), layer.node())) return layer.SetTop(0, AddOperator(layer, {1, 0, 2}));
  const int64_t hidden = layer.param().recurrent_param().num_output();
  const std::string split = layer.Integers("gates", {hidden, hidden, hidden});
  const std::string bias = layer.Blob(layer.blobs() - 1, "hidden_bias"), one = layer.Floats("one", {}, {1});
  layer.SetTop(
      0, RunSteps(layer, 1, [&](Steps& body, const Names& before, const std::string& sums, const std::string& product) {
        const Names of_input = body.Split(sums, split, 3);
        const Names of_state = body.Split(product, split, 3);
        const auto gate = [&](int i) { return body.Add("Sigmoid", {body.Add("Add", {of_input[i], of_state[i]})}); };
        const std::string reset = gate(0), update = gate(1);
        const std::string part = body.Add("Mul", {reset, body.Add("Add", {of_state[2], bias})});
        const std::string candidate = body.Add("Tanh", {body.Add("Add", {of_input[2], part})});
        const std::string kept = body.Add("Mul", {update, before[0]});
        const std::string share = body.Add("Sub", {one, update});
        return Names{body.Add("Add", {body.Add("Mul", {share, candidate}), kept})};
      }));
}

void Lstm(LayerWriter& layer) {
  if (IsOperator(layer.graph(), layer.node())) return layer.SetTop(0, AddOperator(layer, {0, 2, 1, 3}));
  const int64_t hidden = layer.param().recurrent_param().num_output();
  const std::string split = layer.Integers("gates", {hidden, hidden, hidden, hidden});
  layer.SetTop(
      0, RunSteps(layer, 2, [&](Steps& body, const Names& before, const std::string& sums, const std::string& product) {
        const Names gates = body.Split(body.Add("Add", {sums, product}), split, 4);
        const std::string in = body.Add("Sigmoid", {gates[0]});
        const std::string forget = body.Add("Sigmoid", {gates[1]});
        const std::string out = body.Add("Sigmoid", {gates[2]});
        const std::string candidate = body.Add("Tanh", {gates[3]});
        const std::string kept = body.Add("Mul", {forget, before[1]});
        const std::string cell = body.Add("Add", {kept, body.Add("Mul", {in, candidate})});
        return Names{body.Add("Mul", {out, body.Add("Tanh", {cell})}), cell};
      }));
}

void Rnn(LayerWriter& layer) {
  const std::string states =
      IsOperator(layer.graph(), layer.node())
          ? AddOperator(layer, {0})
          : RunSteps(layer, 1, [](Steps& body, const Names&, const std::string& sums, const std::string& product) {
              return Names{body.Add("Tanh", {body.Add("Add", {sums, product})})};
            });
  const int first = layer.blobs() - 2;
  const std::string weights = layer.Add("Transpose", {layer.Blob(first, "output_weight")}, {Ints("perm", {1, 0})});
  const std::string product = layer.Add("MatMul", {states, weights});
  layer.SetTop(0, layer.Add("Tanh", {layer.Add("Add", {product, layer.Blob(first + 1, "output_bias")})}));
}

// Made of the bottom's extents where that is there, which may be open.
void ContinuationIndicator(LayerWriter& layer) {
  const Graph& graph = layer.graph();
  const std::vector<Value::Use>& uses = graph.values[layer.node().tops[0]].uses;
  const auto needs_none = [&](const Value::Use& use) { return IsOperator(graph, graph.nodes[use.node]); };
  if (!uses.empty() && std::all_of(uses.begin(), uses.end(), needs_none)) return;
  const Shape& shape = layer.top_shape(0);
  const int64_t steps = shape[0];
  std::vector<float> values(static_cast<size_t>(steps), 1.0f);
  values[0] = 0;
  const std::string of_steps = layer.Floats("steps", {steps, 1}, values);
  std::string extents;
  if (layer.bottoms() == 0) {
    extents = layer.Integers("extents", {steps, shape[1]});
  } else {
    layer.ExpectFixed(0, 0);
    extents = layer.Add(
        "Slice", {layer.Add("Shape", {layer.bottom(0)}), layer.Integers("first", {0}), layer.Integers("end", {2})});
  }
  layer.SetTop(0, layer.Add("Expand", {of_steps, extents}));
}

}  // namespace

bool BeginsInEachPass(const Graph& graph, const Node& node) {
  const int maker = node.bottoms.size() > 1 ? graph.values[node.bottoms[1]].producer : -1;
  return maker >= 0 && graph.nodes[maker].type->name == "ContinuationIndicator";
}

LayerTable RecurrentLayers() {
  return {{"ContinuationIndicator", ContinuationIndicator}, {"GRU", Gru}, {"LSTM", Lstm}, {"RNN", Rnn}};
}

}  // namespace crema::onnx
