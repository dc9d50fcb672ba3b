#include "report/data_timing.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/number_text.h"
#include "base/stopwatch.h"
#include "base/text_table.h"
#include "crema/layer.h"
#include "graph/boundary_types.h"
#include "graph/program.h"
#include "report/assumed_inputs.h"

namespace crema {

namespace {

constexpr int kWarmUp = 2;        // passes
constexpr double kShare = 0.1;    // of the time: who waits longer is limited by its data
constexpr double kWithin = 1e-9;  // a division by no time

bool IsDataLayer(const LayerParameter& layer) {
  return ReadsData(layer) && !IsInputType(layer.type()) && FindLayerType(layer.type()) != nullptr;
}

// Layers keep their indices, by which messages find their places; those left out belong to no phase of this net.
NetFile OnlyData(NetFile file, Phase phase, const std::string* name) {
  for (LayerParameter& layer : *file.net.mutable_layer()) {
    if (IsDataLayer(layer) && (!name || layer.name() == *name)) continue;
    layer.clear_exclude();
    layer.clear_include();
    layer.add_include()->set_phase(phase == TRAIN ? TEST : TRAIN);
  }
  return file;
}

DataTiming TimeLayer(const NetFile& file, const NetOptions& options, const std::string& name, int batches) {
  Net net(OnlyData(file, options.phase, &name), options);
  DataTiming timing;
  timing.layer = name;
  for (const Node& node : net.compiled().graph.nodes) {
    timing.type = node.setup->param().type();
    const Shape& shape = node.setup->top_specs()[0].shape;
    timing.batch = shape[0];
    timing.item = Shape(std::vector<int64_t>(shape.dims().begin() + 1, shape.dims().end()));
  }
  net.Forward();
  const DataSupply supply = net.data_supplies().front().second;
  timing.threads = supply.threads;
  for (int i = 0; i < supply.prefetch + 1; ++i) net.Forward();
  const Stopwatch stopwatch;
  for (int i = 0; i < batches; ++i) net.Forward();
  timing.batch_seconds = stopwatch.Seconds() / batches;
  return timing;
}

std::string WholePercent(double share) { return std::to_string(std::lround(100 * share)) + " %"; }

void RunPasses(Net& net, int passes, bool backward) {
  for (int i = 0; i < passes; ++i) {
    net.ClearGradients();
    net.Forward();
    if (backward) net.Backward();
  }
}

}  // namespace

std::vector<DataTiming> TimeData(const NetFile& file, const NetOptions& options, int batches) {
  NetOptions own = options;
  own.backward = false;
  own.context.device = nullptr;
  if (std::none_of(file.net.layer().begin(), file.net.layer().end(), IsDataLayer)) {
    throw UserError("net \"" + file.net.name() +
                    "\" has no layer that reads data; give the net that is trained (train_val.prototxt)");
  }
  std::vector<std::string> names;
  {
    const Net all(OnlyData(file, own.phase, nullptr), own);
    for (const Node& node : all.compiled().graph.nodes) names.push_back(node.name());
  }
  std::vector<DataTiming> timings;
  for (const std::string& name : names) timings.push_back(TimeLayer(file, own, name, batches));
  return timings;
}

PassTiming TimePasses(Net& net, int passes, bool backward) {
  RunPasses(net, kWarmUp, backward);
  std::map<std::string, double> before;
  for (const auto& [layer, supply] : net.data_supplies()) before[layer] = supply.waited_seconds;
  PassTiming timing;
  timing.passes = passes;
  const Stopwatch stopwatch;
  RunPasses(net, passes, backward);
  timing.seconds = stopwatch.Seconds();
  double longest = -1;
  for (const auto& [layer, supply] : net.data_supplies()) {
    const double waited = supply.waited_seconds - before[layer];
    timing.waited_seconds += waited;
    if (waited <= longest) continue;
    longest = waited;
    timing.layer = layer;
    timing.remedy = supply.remedy;
  }
  return timing;
}

std::string DataTimingText(const std::vector<DataTiming>& layers) {
  TextTable table({"layer", "type", ">records/s", ">record", ">batch", ">time a batch", ">threads"});
  for (const DataTiming& layer : layers) {
    table.AddRow({layer.layer, layer.type,
                  FormatScaled(static_cast<double>(layer.batch) / std::max(layer.batch_seconds, kWithin)),
                  layer.item.ToString(), FormatCount(layer.batch), FormatSeconds(layer.batch_seconds),
                  layer.threads > 0 ? std::to_string(layer.threads) : ""});
  }
  return table.ToString();
}

std::string PassTimingText(const PassTiming& timing, bool backward) {
  const double share = timing.waited_seconds / std::max(timing.seconds, kWithin);
  std::string text = std::string(backward ? "A training pass" : "A forward pass") + " of the whole net takes " +
                     FormatSeconds(timing.seconds / timing.passes) + ", " + WholePercent(share) +
                     " of it waiting for data: ";
  if (share <= kShare) return text + "the net limits, not the data.\n";
  return text + "the data limits, layer \"" + timing.layer + "\"" +
         (timing.remedy.empty() ? ".\n" : "; " + timing.remedy + ".\n");
}

}  // namespace crema
