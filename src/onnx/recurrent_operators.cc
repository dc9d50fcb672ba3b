// GRU and LSTM. Each direction becomes a layer of that type, backwards between two Reverse layers; all sequences begin
// with the pass, as they do in ONNX.
#include <algorithm>
#include <string>
#include <vector>

#include "base/lower_case.h"
#include "onnx/operator_table.h"

namespace crema::onnx {

namespace {

// One of the two types.
struct Cell {
  std::string type;
  // Where each of crema's gates stands in ONNX's order.
  std::vector<int> gates;
  std::vector<std::string> states;
  std::vector<std::string> activations;
};

const Cell kGru{"GRU", {1, 0, 2}, {"hidden state"}, {"sigmoid", "tanh"}};
const Cell kLstm{"LSTM", {0, 2, 1, 3}, {"hidden state", "cell"}, {"sigmoid", "tanh", "tanh"}};

// Inputs of the operators, by place.
enum Input { kSequence, kWeights, kHiddenWeights, kBias, kLengths, kInitial, kPeepholes = 7 };

struct Recurrence {
  const Cell& cell;
  int64_t hidden = 0, steps = 0;
  int directions = 1;
  bool begins_backwards = false, batch_first = false;
  bool exposes = false;  // the states are bottoms and tops

  bool backwards(int direction) const { return directions == 2 ? direction == 1 : begins_backwards; }
  std::string role(int direction, const std::string& part = {}) const {
    return (backwards(direction) ? "backwards" : "forwards") + (part.empty() ? part : "/" + part);
  }
};

bool IsZero(const Constant& value) {
  for (int64_t i = 0; i < value.count(); ++i) {
    if (value.value(i) != 0) return false;
  }
  return true;
}

// Whether a state begins with something else than zeros.
bool StateIsGiven(const NodeReader& node, size_t state) {
  const int input = kInitial + static_cast<int>(state);
  return node.has(input) && !(node.is_constant(input) && IsZero(node.constant(input, "a state")));
}

// Refuses whatever crema's layers do not do.
void CheckKind(const NodeReader& node, const Recurrence& r) {
  std::vector<std::string> expected, given = node.Strings("activations").value_or(std::vector<std::string>());
  for (int i = 0; i < r.directions; ++i) {
    expected.insert(expected.end(), r.cell.activations.begin(), r.cell.activations.end());
  }
  for (std::string& name : given) name = LowerCase(name);
  if (!given.empty() && given != expected)
    node.Refuse("has other activations than Sigmoid and Tanh, which crema's has");
  if (node.has_attribute("clip")) node.Refuse("clips its sums, which crema's does not");
  if (node.Int("input_forget", 0) != 0) node.Refuse("joins its input and forget gates, which crema's does not");
  if (r.cell.type == "GRU" && node.Int("linear_before_reset", 0) == 0) {
    node.Refuse(
        "resets the state before the weights (linear_before_reset is 0); crema's GRU, and PyTorch's, resets what comes "
        "behind them");
  }
  if (r.cell.type == "LSTM" && node.has(kPeepholes) && !IsZero(node.constant(kPeepholes, "the peepholes")))
    node.Refuse("has peepholes, from the cell to the gates, which crema's has not");
  if (!node.has(kLengths)) return;
  const std::vector<int64_t>& lengths = node.integers(kLengths, "sequence_lens");
  if (std::any_of(lengths.begin(), lengths.end(), [&](int64_t length) { return length != r.steps; }))
    node.Refuse("has sequences of several lengths in a batch; export the model with sequences of one length");
}

// Elements of one direction with the gates in crema's order: rows of `width` for each unit, from gate `first` on.
std::vector<float> Gates(const Recurrence& r, const std::vector<float>& from, int direction, int64_t width, int first,
                         int in_all) {
  std::vector<float> values;
  const int64_t gate = r.hidden * width;
  for (const int place : r.cell.gates) {
    const auto begin = from.begin() + (int64_t{direction} * in_all + first + place) * gate;
    values.insert(values.end(), begin, begin + gate);
  }
  return values;
}

// The blobs of a layer. ONNX has a bias for the inputs and one for the state, of which crema keeps the sum; the
// candidate of a GRU has both.
std::vector<Constant> Blobs(const NodeReader& node, const Recurrence& r, int direction) {
  const auto gates = static_cast<int>(r.cell.gates.size());
  const int64_t rows = gates * r.hidden, inputs = node.shape(kSequence)[2];
  std::vector<float> bias(rows), of_state(rows);
  if (node.has(kBias)) {
    const std::vector<float>& both = node.floats(kBias, "the bias");
    bias = Gates(r, both, direction, 1, 0, 2 * gates);
    of_state = Gates(r, both, direction, 1, gates, 2 * gates);
  }
  const bool is_gru = r.cell.type == "GRU";
  for (int64_t i = 0; i < (is_gru ? rows - r.hidden : rows); ++i) bias[i] += of_state[i];
  std::vector<Constant> blobs = {
      Floats({rows, inputs}, Gates(r, node.floats(kWeights, "the weights"), direction, inputs, 0, gates)),
      Floats({rows}, std::move(bias)),
      Floats({rows, r.hidden},
             Gates(r, node.floats(kHiddenWeights, "the hidden weights"), direction, r.hidden, 0, gates))};
  if (is_gru) blobs.push_back(Floats({r.hidden}, {of_state.end() - r.hidden, of_state.end()}));
  return blobs;
}

void ExpectShape(const NodeReader& node, int i, const std::string& role, const Shape& expected) {
  if (node.shape(i) == expected) return;
  node.Refuse(role + " is " + node.shape(i).ToString() + ", but must be " + expected.ToString());
}

// With the first two axes, steps and sequences or directions and sequences, the other way round where the file has the
// batch first.
Operand Turned(NodeReader& node, const Recurrence& r, const Operand& value, const std::string& role) {
  return r.batch_first ? node.Permute(value, {1, 0, 2}, role) : value;
}

Operand Backwards(NodeReader& node, const Operand& value, const std::string& role) {
  return node.Add(LayerOf("Reverse"), {value}, {}, role);
}

// 1 x sequences x hidden zeros, for any batch.
Operand ZeroState(NodeReader& node, const Recurrence& r, const Operand& sequence) {
  const Operand column = node.Cut(node.Cut(sequence, 0, 0, 1, "step"), 2, 0, 1, "column");
  return node.Stretched(node.Power(column, 0, 0, 1, "zeros"), {1, column.shape[1], r.hidden});
}

// That of each direction and kind before the first step, 1 x sequences x hidden.
std::vector<std::vector<Operand>> InitialStates(NodeReader& node, const Recurrence& r, const Operand& sequence) {
  std::vector<std::vector<Operand>> states(r.directions);
  for (size_t i = 0; i < r.cell.states.size(); ++i) {
    const int input = kInitial + static_cast<int>(i);
    const bool given = StateIsGiven(node, i);
    if (given) {
      const int64_t batch = sequence.shape[1];
      ExpectShape(node, input, "the first " + r.cell.states[i],
                  r.batch_first ? Shape{batch, r.directions, r.hidden} : Shape{r.directions, batch, r.hidden});
    }
    const Operand all = given ? Turned(node, r, node.blob(input), "state") : ZeroState(node, r, sequence);
    for (int d = 0; d < r.directions; ++d) states[d].push_back(given ? node.Cut(all, 0, d, 1, "state") : all);
  }
  return states;
}

// What one direction makes: h of all steps, steps x sequences x hidden, and the states after the last one, 1 x
// sequences x hidden, those that anything reads.
struct Direction {
  Operand steps;
  std::vector<Operand> last;
};

Direction AddDirection(NodeReader& node, const Recurrence& r, int d, const Operand& sequence, const Operand& continues,
                       const std::vector<Operand>& states) {
  LayerParameter layer = LayerOf(r.cell.type);
  RecurrentParameter* param = layer.mutable_recurrent_param();
  param->set_num_output(static_cast<uint32_t>(r.hidden));
  param->mutable_weight_filler()->set_type("xavier");
  if (r.exposes) param->set_expose_hidden(true);
  const bool backwards = r.backwards(d);
  std::vector<Operand> bottoms = {backwards ? Backwards(node, sequence, r.role(d, "input")) : sequence, continues};
  bottoms.insert(bottoms.end(), states.begin(), states.end());
  const int tops = 1 + static_cast<int>(states.size());
  const std::vector<Operand> made = node.AddMany(std::move(layer), bottoms, tops, Blobs(node, r, d), r.role(d));
  Direction result{made[0], {made.begin() + 1, made.end()}};
  std::vector<Operand> rest;
  for (size_t i = 0; i < states.size(); ++i) {
    if (!node.wanted(1 + static_cast<int>(i))) rest.push_back(result.last[i]);
  }
  if (r.exposes && !node.wanted(0)) rest.push_back(made[0]);
  if (!rest.empty()) node.AddMany(LayerOf("Silence"), rest, 0, {}, r.role(d, "rest"));
  if (!r.exposes && node.wanted(1)) result.last = {node.Cut(made[0], 0, r.steps - 1, 1, r.role(d, "last"))};
  if (backwards && node.wanted(0)) result.steps = Backwards(node, made[0], r.role(d, "in_order"));
  return result;
}

Operand Joined(NodeReader& node, const std::vector<Operand>& parts, int axis, const std::string& role = {}) {
  if (parts.size() == 1) return parts[0];
  LayerParameter layer = LayerOf("Concat");
  if (axis != 1) layer.mutable_concat_param()->set_axis(axis);
  return node.Add(std::move(layer), parts, {}, role);
}

void SetResults(NodeReader& node, const Recurrence& r, const std::vector<Direction>& made) {
  if (node.wanted(0)) {
    std::vector<Operand> parts;
    for (int d = 0; d < r.directions; ++d) {
      const Operand steps = Turned(node, r, made[d].steps, r.role(d, "turned"));
      std::vector<int64_t> dims = steps.shape.dims();
      dims.insert(dims.begin() + (r.batch_first ? 2 : 1), 1);
      // The last layer has the node's name.
      parts.push_back(node.Reshape(steps, Shape(dims), r.directions == 1 ? "" : r.role(d, "axes")));
    }
    node.Set(0, Joined(node, parts, r.batch_first ? 2 : 1));
  }
  for (size_t i = 0; i < r.cell.states.size(); ++i) {
    const int output = 1 + static_cast<int>(i);
    if (!node.wanted(output)) continue;
    std::vector<Operand> parts;
    parts.reserve(made.size());
    for (const Direction& direction : made) parts.push_back(direction.last[i]);
    node.Set(output, Turned(node, r, Joined(node, parts, 0, "last"), "last"));
  }
}

void ReadCell(NodeReader& node, const Cell& cell) {
  Recurrence r{.cell = cell};
  const std::string direction = LowerCase(node.String("direction", "forward"));
  r.directions = direction == "bidirectional" ? 2 : 1;
  r.begins_backwards = direction == "reverse";
  r.batch_first = node.Int("layout", 0) != 0;
  if (node.shape(kSequence).axes() != 3) {
    node.Refuse("reads " + node.shape(kSequence).ToString() + "; steps x sequences x inputs are possible");
  }
  const Operand sequence = Turned(node, r, node.blob(kSequence), "input");
  r.steps = sequence.shape[0];
  CheckKind(node, r);
  const Shape of_hidden = node.shape(kHiddenWeights);
  if (of_hidden.axes() != 3)
    node.Refuse("has hidden weights of " + of_hidden.ToString() + "; they must be directions x rows x hidden");
  r.hidden = of_hidden[2];
  const int64_t rows = static_cast<int64_t>(cell.gates.size()) * r.hidden;
  ExpectShape(node, kHiddenWeights, "the tensor of hidden weights", {r.directions, rows, r.hidden});
  ExpectShape(node, kWeights, "the tensor of weights", {r.directions, rows, sequence.shape[2]});
  if (node.has(kBias)) ExpectShape(node, kBias, "the bias", {r.directions, 2 * rows});
  for (size_t i = 0; i < cell.states.size(); ++i) r.exposes |= StateIsGiven(node, i);
  r.exposes |= cell.states.size() > 1 && node.wanted(2);
  Operand continues = node.Add(LayerOf("ContinuationIndicator"), {sequence}, {}, "continues");
  std::vector<std::vector<Operand>> states(r.directions);
  if (r.exposes) {
    continues = node.Power(continues, 0, 1, 1, "always");
    states = InitialStates(node, r, sequence);
  }
  std::vector<Direction> made;
  for (int d = 0; d < r.directions; ++d) made.push_back(AddDirection(node, r, d, sequence, continues, states[d]));
  SetResults(node, r, made);
}

void Gru(NodeReader& node) { ReadCell(node, kGru); }
void Lstm(NodeReader& node) { ReadCell(node, kLstm); }

}  // namespace

OperatorTable RecurrentOperators() { return {{"GRU", Gru}, {"LSTM", Lstm}}; }

}  // namespace crema::onnx
