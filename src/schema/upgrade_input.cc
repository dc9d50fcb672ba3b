#include "schema/upgrade.h"

namespace crema {

void UpgradeInput(NetParameter* net, const PlaceOf& place, Diagnostics* diagnostics,
                  std::vector<LayerOrigin>* origins) {
  const int inputs = net->input_size(), shapes = net->input_shape_size(), dims = net->input_dim_size();
  if (inputs == 0 && shapes == 0 && dims == 0) return;
  if (inputs == 0) {
    diagnostics->Error(place(shapes > 0 ? "input_shape" : "input_dim"),
                       "a shape without an input; name it with input: \"data\"");
    return;
  }
  if (shapes > 0 && dims > 0) {
    diagnostics->Error(place("input_dim"), "input_shape and input_dim cannot both be given; remove input_dim");
    return;
  }
  if (shapes != inputs && dims != 4 * inputs) {
    const std::string per =
        inputs == 1 ? "the input \"" + net->input(0) + "\" has " : std::to_string(inputs) + " inputs have ";
    diagnostics->Error(place(shapes > 0 ? "input_shape"
                             : dims > 0 ? "input_dim"
                                        : "input"),
                       per +
                           (shapes > 0 ? std::to_string(shapes) + " input_shape blocks"
                            : dims > 0 ? std::to_string(dims) + " input_dim values"
                                       : "no shape") +
                           "; each needs one input_shape { dim: ... } (or four input_dim, the old form)");
    return;
  }
  LayerParameter layer;
  layer.set_name("input");
  layer.set_type("Input");
  *layer.mutable_top() = net->input();
  for (int i = 0; i < inputs; ++i) {
    BlobShape* shape = layer.mutable_input_param()->add_shape();
    if (shapes > 0) {
      shape->CopyFrom(net->input_shape(i));
    } else {
      for (int axis = 0; axis < 4; ++axis) shape->add_dim(net->input_dim(4 * i + axis));
    }
    for (int64_t extent : shape->dim()) {
      if (extent >= 0) continue;
      diagnostics->Error(
          place((shapes > 0 ? "input_shape[" + std::to_string(i) : "input_dim[" + std::to_string(4 * i)) + "]"),
          "the input \"" + net->input(i) + "\" has the extent " + std::to_string(extent) + "; extents are 0 or more");
    }
  }
  google::protobuf::RepeatedPtrField<LayerParameter> layers;
  layers.Add()->Swap(&layer);
  for (LayerParameter& old : *net->mutable_layer()) layers.Add()->Swap(&old);
  net->mutable_layer()->Swap(&layers);
  origins->insert(origins->begin(), {LayerOrigin::Syntax::kInput, 0});
  net->clear_input();
  net->clear_input_shape();
  net->clear_input_dim();
  if (diagnostics->has_errors()) return;
  for (const Diagnostic& other : diagnostics->list()) {
    if (other.severity == Diagnostic::Severity::kWarning && other.message.find("syntax") != std::string::npos) return;
  }
  diagnostics->Warning(place("input"), "uses the old \"input\" fields; read as a layer of type \"Input\"");
}

}  // namespace crema
