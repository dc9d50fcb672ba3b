// Settings of a window that are given once for all spatial axes, once for each, or as name_h and name_w.
#ifndef CREMA_LAYERS_AXIS_SETTINGS_H_
#define CREMA_LAYERS_AXIS_SETTINGS_H_

#include <google/protobuf/repeated_field.h>

#include <cstdint>
#include <vector>

#include "crema/layer.h"

namespace crema {

// One setting in its two forms: `name`, repeated, or name_h and name_w, of images alone.
struct AxisSetting {
  const char* name;
  const google::protobuf::RepeatedField<google::protobuf::uint32>& values;
  const char *vertical_name, *horizontal_name;
  bool has_vertical, has_horizontal;
  int64_t vertical, horizontal;
  int64_t fallback;  // below 0: must be given
  int64_t minimum;
};

// One value for each of the `axes` spatial axes of bottom 0. Fails with a diagnostic at the field of `block`, such as
// "convolution_param".
std::vector<int64_t> ReadAxisSetting(const LayerSetup& setup, const std::string& block, int axes,
                                     const AxisSetting& setting);

}  // namespace crema

#endif  // CREMA_LAYERS_AXIS_SETTINGS_H_
