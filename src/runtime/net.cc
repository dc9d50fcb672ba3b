#include "crema/net.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/compute_threads.h"
#include "compiler/compiler.h"
#include "crema/error.h"
#include "device/device.h"
#include "graph/boundary_types.h"
#include "graph/namesakes.h"
#include "ops/operations.h"
#include "runtime/executor.h"
#include "runtime/net_impl.h"
#include "runtime/parameters.h"

namespace crema {

namespace {

NetOptions Checked(NetOptions options) {
  UseComputeThreads();
  if (options.accumulate && !options.keep_gradients) {
    throw UserError("NetOptions::accumulate adds to gradients, which a net without keep_gradients has not");
  }
  if (options.share_memory && !options.share_with) {
    throw UserError("NetOptions::share_memory works in the memory of another net; name it with share_with");
  }
  if (!options.context.device) options.context.device = &CpuDevice();
  return options;
}

void CheckGradients(const NetOptions& options, const GradientReader* reader) {
  if (options.share_with) {
    throw UserError(
        "a net that borrows another net's parameters has no gradients; call Backward of the net they are of");
  }
  if (!options.backward) throw UserError("the net has no backward pass; make it with NetOptions::backward");
  if (!options.keep_gradients && !reader) {
    throw UserError("nobody takes the gradients; give Backward a GradientReader, or make the net with keep_gradients");
  }
}

uint64_t PassToGoBack(const std::optional<uint64_t>& last) {
  if (last) return *last;
  throw UserError("there is no forward pass to go back through; call Forward before Backward");
}

}  // namespace

Net::Impl::Impl(const NetFile& file, const NetOptions& given)
    : options(Checked(given)),
      compiled(Compile(file, options, options.share_with ? &options.share_with->compiled() : nullptr)),
      parameters(compiled->graph, *options.context.device, options.context.seed,
                 options.backward && options.keep_gradients, Borrowed(), options.train_with != nullptr),
      executor(*compiled, parameters.list(), options.context,
               options.share_with && options.share_memory ? options.share_with->impl_->executor.free_memory()
                                                          : std::span<std::byte>()) {}

std::function<const Parameter*(int)> Net::Impl::LentTo(const Graph& other) const {
  return [this, matches = MatchParameters(compiled->graph, other)](int param) {
    return matches[param] < 0 ? nullptr : &parameters.list()[matches[param]];
  };
}

std::function<const Parameter*(int)> Net::Impl::Borrowed() const {
  if (options.share_with) return options.share_with->impl_->LentTo(compiled->graph);
  if (!options.train_with) return [](int) { return nullptr; };
  return [lent = options.train_with->impl_->LentTo(compiled->graph)](int param) {
    const Parameter* const other = lent(param);
    return other && other->trained ? other : nullptr;
  };
}

uint64_t Net::Impl::Version() const {
  return version + (options.share_with ? options.share_with->impl_->Version() : 0);
}

uint64_t Net::Impl::NextVersion() {
  // Training changes parameters after every pass, and running statistics within it.
  if (options.backward) ++version;
  return Version();
}

void Net::Impl::ParametersChanged() {
  ++version;
  if (options.share_with) options.share_with->impl_->ParametersChanged();
}

int Net::Impl::LastValue(const std::string& blob) const {
  int last = -1;
  const auto& values = compiled->graph.values;
  for (int v = 0; v < static_cast<int>(values.size()); ++v) {
    if (values[v].name == blob) last = v;
  }
  return last;
}

Net::Net(const NetFile& file, const NetOptions& options) : impl_(std::make_unique<Impl>(file, options)) {}

Net::~Net() = default;

const std::string& Net::name() const { return impl_->compiled->graph.name; }
Phase Net::phase() const { return impl_->compiled->graph.phase; }
const std::vector<Diagnostic>& Net::warnings() const { return impl_->compiled->warnings; }
const CompiledNet& Net::compiled() const { return *impl_->compiled; }
uint64_t Net::pass() const { return impl_->pass; }
void Net::set_pass(uint64_t pass) { impl_->pass = pass; }

float Net::Forward() {
  const float loss = impl_->executor.Forward(impl_->pass, impl_->NextVersion(), false);
  impl_->last_pass = impl_->pass++;
  return loss;
}

float Net::ForwardBackward(GradientReader* reader, const std::function<void()>& then) {
  CheckGradients(impl_->options, reader);
  const float loss = impl_->executor.ForwardBackward(
      impl_->pass, impl_->NextVersion(), impl_->gradients_cleared || !impl_->options.accumulate, reader, then);
  impl_->last_pass = impl_->pass++;
  impl_->gradients_cleared = false;
  return loss;
}

void Net::Backward(GradientReader* reader) {
  CheckGradients(impl_->options, reader);
  const uint64_t pass = PassToGoBack(impl_->last_pass);
  impl_->executor.Backward(pass, impl_->gradients_cleared || !impl_->options.accumulate, reader);
  impl_->gradients_cleared = false;
}

void Net::ClearGradients() { impl_->gradients_cleared = true; }

void Net::RepeatBackward() {
  CheckGradients(impl_->options, nullptr);
  const uint64_t pass = PassToGoBack(impl_->last_pass);
  impl_->executor.Forward(pass, impl_->Version(), true);
  impl_->executor.Backward(pass, true, nullptr);
  impl_->gradients_cleared = false;
}

void Net::set_loss_factor(const float* factor) { impl_->executor.set_loss_factor(factor); }

Tensor Net::blob(const std::string& name) const {
  const int value = impl_->LastValue(name);
  return value < 0 ? Tensor() : impl_->executor.on_host(impl_->compiled->program.value_tensor[value]);
}

Tensor Net::blob_grad(const std::string& name) const {
  const int value = impl_->LastValue(name);
  return value < 0 ? Tensor() : impl_->executor.on_host(impl_->compiled->program.value_grad[value]);
}

std::vector<std::string> Net::blob_names() const {
  std::vector<std::string> names;
  for (const Value& value : impl_->compiled->graph.values) {
    if (value.version == 0) names.push_back(value.name);
  }
  return names;
}

void Net::VisitTops(const TopVisitor& visit) const {
  const CompiledNet& net = *impl_->compiled;
  for (const Node& node : net.graph.nodes) {
    for (const int v : node.tops) {
      visit(node.name(), net.graph.values[v].name, impl_->executor.on_host(net.program.value_tensor[v]),
            impl_->executor.on_host(net.program.value_grad[v]));
    }
  }
}

std::vector<NetOutput> Net::outputs() const {
  std::vector<NetOutput> list;
  const Graph& graph = impl_->compiled->graph;
  for (int v : graph.outputs) {
    const Value& value = graph.values[v];
    const Node& maker = graph.nodes[value.producer];
    const float loss_weight = maker.loss_weights[value.producer_top];
    const bool is_loss = loss_weight != 0 || (maker.setup->is_loss() && value.producer_top == 0);
    list.push_back(
        {value.name, impl_->executor.on_host(impl_->compiled->program.value_tensor[v]), loss_weight, is_loss});
  }
  return list;
}

std::vector<NetInput> Net::inputs() const {
  std::vector<NetInput> list;
  const CompiledNet& net = *impl_->compiled;
  for (const Node& node : net.graph.nodes) {
    if (!IsInputType(node.param->type())) continue;
    for (int v : node.tops) {
      list.push_back({net.graph.values[v].name, impl_->executor.on_host(net.program.value_tensor[v])});
    }
  }
  return list;
}

std::span<Parameter> Net::parameters() {
  ParametersChanged();
  return impl_->parameters.list();
}
std::span<const Parameter> Net::parameters() const { return std::as_const(impl_->parameters).list(); }
std::span<float> Net::parameter_block() {
  ParametersChanged();
  return impl_->parameters.values();
}
void Net::ParametersChanged() { impl_->ParametersChanged(); }
std::span<float> Net::gradient_block() { return impl_->parameters.gradients(); }

std::vector<std::pair<std::string, uint64_t>> Net::data_positions() const {
  std::vector<std::pair<std::string, uint64_t>> positions;
  for (const Node& node : impl_->compiled->graph.nodes) {
    if (node.setup->is_source()) positions.emplace_back(node.name(), node.layer->position());
  }
  return positions;
}

void Net::CopyDataPositions(std::vector<uint64_t>* records) const {
  records->clear();
  for (const Node& node : impl_->compiled->graph.nodes) {
    if (node.setup->is_source()) records->push_back(node.layer->position());
  }
}

void Net::set_data_positions(const std::vector<uint64_t>& records) {
  if (const size_t layers = data_positions().size(); layers != records.size()) {
    throw UserError("the net has " + std::to_string(layers) + " data layers, but " + std::to_string(records.size()) +
                    " positions are given");
  }
  size_t next = 0;
  for (const Node& node : impl_->compiled->graph.nodes) {
    if (node.setup->is_source()) node.layer->set_position(records[next++]);
  }
}

void Net::set_data_position(const std::string& layer, uint64_t records) {
  for (const Node& node : impl_->compiled->graph.nodes) {
    if (node.setup->is_source() && node.name() == layer) node.layer->set_position(records);
  }
}

std::vector<std::pair<std::string, Tensor>> Net::recurrent_states() const {
  std::vector<std::pair<std::string, Tensor>> states;
  for (const Node& node : impl_->compiled->graph.nodes) {
    Tensor state = node.layer->recurrent_state();
    if (state.defined()) states.emplace_back(node.name(), std::move(state));
  }
  return states;
}

void Net::ClearRecurrentStates() {
  Operations& ops = OperationsOf(*impl_->options.context.device);
  for (const Node& node : impl_->compiled->graph.nodes) {
    if (const Tensor state = node.layer->recurrent_state(); state.defined()) ops.Fill(0, state);
  }
}

void Net::ReadBatches(const BatchSchedule& schedule) {
  if (!schedule.valid()) {
    throw UserError("batches cannot be read in runs of " + std::to_string(schedule.run) + " that begin " +
                    std::to_string(schedule.stride) + " apart; a run has at least one batch and ends before the next");
  }
  for (const Node& node : impl_->compiled->graph.nodes) {
    if (node.setup->is_source()) node.layer->ReadBatches(schedule);
  }
}

uint64_t Net::next_batch() const {
  uint64_t next = 0;
  for (const Node& node : impl_->compiled->graph.nodes) {
    if (node.setup->is_source()) next = std::max(next, node.layer->next_batch());
  }
  return next;
}

std::vector<std::pair<std::string, DataExtent>> Net::data_extents() const {
  std::vector<std::pair<std::string, DataExtent>> extents;
  for (const Node& node : impl_->compiled->graph.nodes) {
    if (node.setup->is_source()) extents.emplace_back(node.name(), node.layer->data_extent());
  }
  return extents;
}

void Net::FindDataExtent(const std::string& layer) {
  for (const Node& node : impl_->compiled->graph.nodes) {
    if (node.setup->is_source() && node.name() == layer) node.layer->FindDataExtent();
  }
}

std::vector<std::pair<std::string, DataSupply>> Net::data_supplies() const {
  std::vector<std::pair<std::string, DataSupply>> supplies;
  for (const Node& node : impl_->compiled->graph.nodes) {
    if (node.setup->is_source()) supplies.emplace_back(node.name(), node.layer->data_supply());
  }
  return supplies;
}

std::string Net::FindNanParameter() const {
  Operations& ops = OperationsOf(*impl_->options.context.device);
  std::vector<float> values;
  for (const Parameter& p : parameters()) {
    if (!ops.HasNonFinite(p.data.count(), p.data.f32())) continue;
    values.resize(static_cast<size_t>(p.shape.count()));
    p.CopyDataTo(values.data());
    if (std::any_of(values.begin(), values.end(), [](float value) { return std::isnan(value); })) {
      return "parameter " + p.name();
    }
  }
  return {};
}

namespace {

// The value whose memory this one is.
int ViewedValue(const Graph& graph, int value) {
  while (graph.values[value].producer >= 0 && graph.nodes[graph.values[value].producer].setup->is_view()) {
    value = graph.nodes[graph.values[value].producer].bottoms[0];
  }
  return value;
}

// Which item of a batch from outside holds the first number that is not finite; empty where nobody knows.
std::string DescribeNonFinite(const Node& source, const Tensor& top, Device& device) {
  if (!source.setup->is_source() || top.shape().axes() == 0) return {};
  std::vector<float> values(static_cast<size_t>(top.count()));
  device.CopyOut(top.raw(), values.data(), top.bytes());
  const auto bad = std::find_if(values.begin(), values.end(), [](float x) { return !std::isfinite(x); });
  const std::string item = source.layer->DescribeItem((bad - values.begin()) / top.shape().count(1));
  return item.empty() ? "" : ", " + item;
}

}  // namespace

std::string Net::FindNonFinite() {
  Operations& ops = OperationsOf(*impl_->options.context.device);
  for (const Parameter& p : parameters()) {
    if (ops.HasNonFinite(p.data.count(), p.data.f32())) return "parameter " + p.name();
  }
  // Data may hold NaN for what is not known, as flows do: it is the cause only where no layer makes such numbers of
  // others.
  std::string made, read;
  std::set<int> values;  // that are not finite
  const Graph& graph = impl_->compiled->graph;
  const auto sees_some = [&](const Node& node) {
    return std::ranges::any_of(node.bottoms, [&](int v) { return values.contains(ViewedValue(graph, v)); });
  };
  impl_->executor.Forward(impl_->pass - 1, impl_->NextVersion(), true, [&](const Step& step) {
    if (step.node < 0) return;
    const Node& node = graph.unit(step.node);
    for (size_t i = 0; made.empty() && i < step.tops.size(); ++i) {
      const Tensor top = impl_->executor.tensor(step.tops[i]);
      if (top.dtype() != DType::kF32 || !ops.HasNonFinite(top.count(), top.f32())) continue;
      values.insert(node.tops[i]);
      std::string& found = node.setup->is_source() ? read : made;
      if (!found.empty() || sees_some(node)) continue;
      found = "layer \"" + node.name() + "\" (" + node.type_name() + "), top \"" + graph.values[node.tops[i]].name +
              "\"" + DescribeNonFinite(node, top, *impl_->options.context.device);
    }
  });
  return made.empty() ? read : made;
}

void Net::set_recorder(StepRecorder* recorder) { impl_->executor.set_recorder(recorder); }

}  // namespace crema
