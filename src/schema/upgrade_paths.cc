#include <map>

#include "schema/upgrade.h"

namespace crema {

namespace {

// Today's names of fields that V0 called otherwise.
const std::map<std::string, std::string>& V0Names() {
  static const std::map<std::string, std::string> names = {
      {"axis", "concat_dim"},        {"batch_size", "batchsize"},        {"bg_threshold", "det_bg_threshold"},
      {"bias_term", "biasterm"},     {"context_pad", "det_context_pad"}, {"crop_mode", "det_crop_mode"},
      {"crop_size", "cropsize"},     {"fg_fraction", "det_fg_fraction"}, {"fg_threshold", "det_fg_threshold"},
      {"kernel_size", "kernelsize"}, {"mean_file", "meanfile"},          {"shuffle", "shuffle_images"},
  };
  return names;
}

// "param[1].lr_mult" -> "blobs_lr[1]"; empty for other fields.
std::string OldParam(const std::string& path, std::string_view share_field) {
  if (path.compare(0, 5, "param") != 0 || (path.size() > 5 && path[5] != '[' && path[5] != '.')) return {};
  const size_t close = path.find(']');
  const std::string index = close == std::string::npos ? "" : path.substr(5, close - 4);
  const size_t dot = path.find('.');
  const std::string leaf = dot == std::string::npos ? "lr_mult" : path.substr(dot + 1);
  if (leaf == "name") return std::string(share_field) + index;
  if (leaf == "share_mode") return "blob_share_mode" + index;
  return (leaf == "decay_mult" ? "weight_decay" : "blobs_lr") + index;
}

std::vector<std::string> V1Paths(const std::string& prefix, const std::string& path) {
  if (const std::string param = OldParam(path, "param"); !param.empty()) return {prefix + param};
  std::vector<std::string> paths = {prefix + path};
  if (path.compare(0, 16, "transform_param.") == 0) {
    for (const char* block : {"data_param", "image_data_param", "window_data_param"}) {
      paths.push_back(prefix + block + path.substr(15));
    }
  }
  return paths;
}

// Where forks had the windows of volumes: "pooling3d_param.stride" and "pooling_param.stride_shape".
void AddVolumePaths(std::vector<std::string>* paths) {
  for (const char* block : {"convolution", "pooling"}) {
    const std::string today = std::string(block) + "_param.";
    const std::string first = paths->front();
    const size_t at = first.find(today);
    if (at == std::string::npos) continue;
    const std::string before = first.substr(0, at), leaf = first.substr(at + today.size());
    const std::string field = leaf.substr(0, leaf.find('['));
    paths->push_back(before + block + "3d_param." + leaf);
    paths->push_back(before + block + "_nd_param." + leaf);
    if (field == "kernel_size") paths->push_back(before + today + "kernel_shape");
    if (field == "stride" || field == "pad") paths->push_back(before + today + field + "_shape");
  }
}

std::vector<std::string> V0Paths(const LayerOrigin& origin, const std::string& prefix, const std::string& path) {
  if (const std::string param = OldParam(path, ""); !param.empty()) return {prefix + "layer." + param};
  if (path.compare(0, 6, "bottom") == 0 || path.compare(0, 3, "top") == 0) return {prefix + path};
  const size_t dot = path.find('.');
  std::string leaf = dot == std::string::npos ? path : path.substr(dot + 1);
  std::vector<std::string> paths;
  const std::string first = leaf.substr(0, leaf.find_first_of(".["));
  if (first == "pad" && origin.padding >= 0) {
    paths.push_back("layers[" + std::to_string(origin.padding) + "].layer.pad");
  }
  if (const auto old = V0Names().find(first); old != V0Names().end()) leaf = old->second + leaf.substr(first.size());
  paths.push_back(prefix + "layer." + leaf);
  paths.push_back(prefix + path);
  return paths;
}

}  // namespace

std::vector<std::string> OldPaths(const LayerOrigin& origin, const std::string& path) {
  const std::string index = "[" + std::to_string(origin.index) + "].";
  switch (origin.syntax) {
    case LayerOrigin::Syntax::kCurrent:
      break;
    case LayerOrigin::Syntax::kV1:
      return V1Paths("layers" + index, path);
    case LayerOrigin::Syntax::kV0:
      return V0Paths(origin, "layers" + index, path);
    case LayerOrigin::Syntax::kInput: {
      if (path.compare(0, 3, "top") == 0) return {"input" + path.substr(3)};
      if (path.compare(0, 17, "input_param.shape") == 0) return {"input_shape" + path.substr(17), "input_dim"};
      return {};
    }
  }
  std::vector<std::string> paths = {"layer" + index + path};
  AddVolumePaths(&paths);
  return paths;
}

}  // namespace crema
