#include "inference/needed_layers.h"

#include <algorithm>
#include <set>

#include "base/suggest.h"
#include "compiler/selection.h"
#include "crema/error.h"

namespace crema {

namespace {

void RefuseUnknown(const std::vector<std::string>& blobs, const NetState& state, const std::string& path,
                   const NetParameter& net) {
  std::vector<std::string> names;
  for (const LayerParameter& layer : net.layer()) {
    if (TakesPart(state, layer)) names.insert(names.end(), layer.top().begin(), layer.top().end());
  }
  for (const std::string& blob : blobs) {
    if (std::find(names.begin(), names.end(), blob) != names.end()) continue;
    throw UserError(Location{path}, "has no blob \"" + blob + "\"" + DidYouMean(blob, names));
  }
}

void KeepTops(const std::set<std::string>& blobs, LayerParameter* input) {
  auto* const tops = input->mutable_top();
  auto* const shapes = input->mutable_input_param()->mutable_shape();
  const bool own_shapes = shapes->size() == tops->size();
  for (int i = tops->size() - 1; i >= 0; --i) {
    if (blobs.count(tops->Get(i)) > 0) continue;
    tops->erase(tops->begin() + i);
    if (own_shapes) shapes->erase(shapes->begin() + i);
  }
}

}  // namespace

void LeaveOut(Phase phase, LayerParameter* layer) {
  layer->clear_include();
  layer->clear_exclude();
  layer->add_exclude()->set_phase(phase);
}

void KeepWhatIsNeeded(const std::vector<std::string>& blobs, const NetState& state, const std::string& path,
                      NetParameter* net) {
  RefuseUnknown(blobs, state, path, *net);
  std::set<std::string> needed(blobs.begin(), blobs.end()), layers;
  for (int i = net->layer_size() - 1; i >= 0; --i) {
    LayerParameter* layer = net->mutable_layer(i);
    if (!TakesPart(state, *layer)) continue;
    const auto& tops = layer->top();
    const auto is_needed = [&](const std::string& top) { return needed.count(top) > 0; };
    if (layers.count(layer->name()) == 0 && std::none_of(tops.begin(), tops.end(), is_needed)) {
      LeaveOut(state.phase(), layer);
      continue;
    }
    layers.insert(layer->name());
    needed.insert(layer->bottom().begin(), layer->bottom().end());
    if (layer->type() == "Input" && std::any_of(tops.begin(), tops.end(), is_needed)) KeepTops(needed, layer);
  }
}

}  // namespace crema
