#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include "schema/upgrade.h"

namespace crema {

namespace {

template <typename Param>
void Move(Param* param, LayerParameter* layer) {
  if (param->has_scale()) layer->mutable_transform_param()->set_scale(param->scale());
  if (param->has_mean_file()) layer->mutable_transform_param()->set_mean_file(param->mean_file());
  if (param->has_crop_size()) layer->mutable_transform_param()->set_crop_size(param->crop_size());
  if (param->has_mirror()) layer->mutable_transform_param()->set_mirror(param->mirror());
  param->clear_scale();
  param->clear_mean_file();
  param->clear_crop_size();
  param->clear_mirror();
}

}  // namespace

void WarnAboutOldTransform(const NetParameter& net, const PlaceOf& place, Diagnostics* diagnostics) {
  for (int i = 0; i < net.layer_size(); ++i) {
    LayerParameter moved = net.layer(i);
    moved.clear_transform_param();
    UpgradeDataTransform(&moved);
    if (!moved.has_transform_param()) continue;
    const char* block = moved.type() == "Data"         ? "data_param"
                        : moved.type() == "WindowData" ? "window_data_param"
                                                       : "image_data_param";
    std::vector<const google::protobuf::FieldDescriptor*> fields;
    moved.transform_param().GetReflection()->ListFields(moved.transform_param(), &fields);
    for (const auto* field : fields) {
      const std::string path = std::string(block) + "." + std::string(field->name());
      diagnostics->Warning(
          place("layer[" + std::to_string(i) + "]." + path),
          path + " has no effect in a \"layer\"; write transform_param { " + std::string(field->name()) + ": ... }");
    }
  }
}

void UpgradeDataTransform(LayerParameter* layer) {
  if (layer->type() == "Data" && layer->has_data_param()) Move(layer->mutable_data_param(), layer);
  const bool images =
      layer->type() == "ImageData" || layer->type() == "ImageSegData" || layer->type() == "ImageLabelmapData";
  if (images && layer->has_image_data_param()) Move(layer->mutable_image_data_param(), layer);
  if (layer->type() == "WindowData" && layer->has_window_data_param()) Move(layer->mutable_window_data_param(), layer);
}

}  // namespace crema
