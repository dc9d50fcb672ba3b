// LSTM and RNN, whose sequences may begin anew at any step, as the second bottom says. ONNX's own operators of these
// names cannot do that, so the steps are the body of a Scan, with the arithmetic of src/ops/sequences/lstm.h and rnn.h;
// whatever does not depend on the step before is computed outside, for all steps at once.
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

  std::string Add(const std::string& op, const std::vector<std::string>& inputs,
                  const std::vector<AttributeProto>& attributes = {}, int results = 1) {
    std::vector<std::string> outputs;
    for (int i = 0; i < results; ++i) outputs.push_back(Name(op + "_" + std::to_string(++count_)));
    *body_.add_node() = InnerNode(op, inputs, outputs, attributes);
    body_.mutable_node(body_.node_size() - 1)->set_name(outputs[0]);
    results_ = outputs;
    return outputs[0];
  }
  // Of the latest node.
  const std::vector<std::string>& results() const { return results_; }

  void AddOutput(const std::string& value) { *body_.add_output() = Info(Add("Identity", {value})); }

  GraphProto Take() { return std::move(body_); }

 private:
  ValueInfoProto Info(const std::string& name) const { return FloatsInfo(name, {kOpen, kOpen}); }

  std::string layer_;
  GraphProto body_;
  int count_ = 0;
  std::vector<std::string> results_;
};

// The sums that do not depend on the step before, steps x sequences x sums.
std::string InputSums(LayerWriter& layer, bool has_static) {
  layer.ExpectFixedFrom(0, 2);
  std::vector<int64_t> dims = layer.bottom_dims(0);
  std::string input = layer.bottom(0);
  if (dims.size() != 3) {
    dims = {dims[0], dims[1], layer.bottom_shape(0).count(2)};
    input = layer.Reshape(input, dims);
  }
  const auto product = [&](const std::string& value, int blob, const std::string& role) {
    const std::string weights = layer.Add("Transpose", {layer.Blob(blob, role)}, {Ints("perm", {1, 0})});
    return layer.Add("MatMul", {value, weights});
  };
  std::string sums = layer.Add("Add", {product(input, 0, "input_weight"), layer.Blob(1, "bias")});
  if (!has_static) return sums;
  layer.ExpectFixedFrom(2, 1);
  std::string fixed = layer.bottom(2);
  if (layer.bottom_shape(2).axes() != 2) fixed = layer.Add("Flatten", {fixed}, {Int("axis", 1)});
  return layer.Add("Add", {sums, product(fixed, 2, "static_weight")});
}

// Runs the steps over all sums; returns h of each step, steps x sequences x hidden. `step` gives the new states, h
// first, from the names of the old ones, already dropped where a sequence begins, and of the sums.
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
  const std::string all = body.Add("Add", {body.Name("sums"), body.Add("MatMul", {before[0], weights})});
  const std::vector<std::string> after = step(body, before, all);
  for (const std::string& state : after) body.AddOutput(state);
  body.AddOutput(after[0]);

  const std::vector<std::string> results =
      layer.AddMany("Scan", inputs, states + 1, {Body("body", body.Take()), Int("num_scan_inputs", 2)});
  for (int i = 0; param.expose_hidden() && i < states; ++i) {
    layer.SetTop(1 + i, layer.Reshape(results[i], layer.top_dims(1 + i)));
  }
  return results[states];
}

void Lstm(LayerWriter& layer) {
  const int64_t hidden = layer.param().recurrent_param().num_output();
  const std::string split = layer.Integers("gates", {hidden, hidden, hidden, hidden});
  layer.SetTop(
      0, RunSteps(layer, 2, [&](Steps& body, const std::vector<std::string>& before, const std::string& sums) {
        body.Add("Split", {sums, split}, {Int("axis", 1)}, 4);
        const std::vector<std::string> gates = body.results();
        const std::string in = body.Add("Sigmoid", {gates[0]}), forget = body.Add("Sigmoid", {gates[1]}),
                          out = body.Add("Sigmoid", {gates[2]}), candidate = body.Add("Tanh", {gates[3]});
        const std::string kept = body.Add("Mul", {forget, before[1]}), added = body.Add("Mul", {in, candidate});
        const std::string cell = body.Add("Add", {kept, added});
        const std::string output = body.Add("Mul", {out, body.Add("Tanh", {cell})});
        return std::vector<std::string>{output, cell};
      }));
}

void Rnn(LayerWriter& layer) {
  const std::string states =
      RunSteps(layer, 1, [](Steps& body, const std::vector<std::string>&, const std::string& sums) {
        return std::vector<std::string>{body.Add("Tanh", {sums})};
      });
  const int first = layer.blobs() - 2;
  const std::string weights = layer.Add("Transpose", {layer.Blob(first, "output_weight")}, {Ints("perm", {1, 0})});
  const std::string product = layer.Add("MatMul", {states, weights});
  layer.SetTop(0, layer.Add("Tanh", {layer.Add("Add", {product, layer.Blob(first + 1, "output_bias")})}));
}

// Made of the bottom's extents where that is there, which may be open.
void ContinuationIndicator(LayerWriter& layer) {
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

LayerTable RecurrentLayers() {
  return {{"ContinuationIndicator", ContinuationIndicator}, {"LSTM", Lstm}, {"RNN", Rnn}};
}

}  // namespace crema::onnx
