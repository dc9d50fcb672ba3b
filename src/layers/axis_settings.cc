#include "layers/axis_settings.h"

namespace crema {

std::vector<int64_t> ReadAxisSetting(const LayerSetup& setup, const std::string& block, int axes,
                                     const AxisSetting& setting) {
  const auto field = [&](const char* name) { return block + "." + name; };
  const std::string name = setting.name;
  std::vector<int64_t> values(axes, setting.fallback);
  if (setting.has_vertical || setting.has_horizontal) {
    const std::string given = setting.has_vertical ? setting.vertical_name : setting.horizontal_name;
    const std::string pair = std::string(setting.vertical_name) + " and " + setting.horizontal_name;
    if (!setting.values.empty()) {
      setup.Fail(field(given.c_str()), "has both " + name + " and " + given + "; keep one of the two forms");
    }
    if (axes != 2) {
      setup.Fail(field(given.c_str()), pair + " are for two spatial axes, but " + setup.DescribeBottom(0) + " has " +
                                           std::to_string(axes) + "; repeat " + name + " once for each instead");
    }
    values = {setting.vertical, setting.horizontal};
  } else if (setting.values.size() == 1) {
    values.assign(axes, setting.values[0]);
  } else if (!setting.values.empty()) {
    if (setting.values.size() != axes) {
      setup.Fail(field(setting.name), name + " is given " + std::to_string(setting.values.size()) + " times, but " +
                                          setup.DescribeBottom(0) + " has " + std::to_string(axes) +
                                          " spatial axes; give it once for all of them, or once for each");
    }
    values.assign(setting.values.begin(), setting.values.end());
  } else if (setting.fallback < 0 && axes > 0) {
    setup.Fail(block, name + " is not set; give " + name + ", or " + setting.vertical_name + " and " +
                          setting.horizontal_name);
  }
  constexpr int64_t kMost = int64_t{1} << 28;  // sums of several fit into the 32 bits that kernels count with
  for (const int64_t value : values) {
    if (value >= setting.minimum && value <= kMost) continue;
    const bool pair = setting.has_vertical || setting.has_horizontal;
    setup.Fail(
        pair ? field(setting.has_vertical ? setting.vertical_name : setting.horizontal_name) : field(setting.name),
        (pair ? std::string(setting.vertical_name) + " and " + setting.horizontal_name + " must both be"
              : name + " must be") +
            (value < setting.minimum ? " at least " + std::to_string(setting.minimum)
                                     : " at most " + std::to_string(kMost)) +
            ", got " + std::to_string(value));
  }
  return values;
}

}  // namespace crema
