#include "layers/convolution_window.h"

#include <google/protobuf/repeated_field.h>

#include <limits>

namespace crema {

namespace {

using Repeated = google::protobuf::RepeatedField<google::protobuf::uint32>;

// One setting in its two forms: `name`, repeated, or name_h and name_w.
struct Setting {
  const char* name;
  const Repeated& values;
  const char *vertical_name, *horizontal_name;
  bool has_vertical, has_horizontal;
  int64_t vertical, horizontal;
  int64_t fallback;  // below 0: must be given
  int64_t minimum;
};

std::string Field(const char* name) { return std::string("convolution_param.") + name; }

std::vector<int64_t> Read(const LayerSetup& setup, int axes, const Setting& setting) {
  const std::string name = setting.name;
  std::vector<int64_t> values(axes, setting.fallback);
  if (setting.has_vertical || setting.has_horizontal) {
    const std::string given = setting.has_vertical ? setting.vertical_name : setting.horizontal_name;
    const std::string pair = std::string(setting.vertical_name) + " and " + setting.horizontal_name;
    if (!setting.values.empty()) {
      setup.Fail(Field(given.c_str()), "has both " + name + " and " + given + "; keep one of the two forms");
    }
    if (axes != 2) {
      setup.Fail(Field(given.c_str()), pair + " are for two spatial axes, but " + setup.DescribeBottom(0) + " has " +
                                           std::to_string(axes) + "; repeat " + name + " once for each instead");
    }
    values = {setting.vertical, setting.horizontal};
  } else if (setting.values.size() == 1) {
    values.assign(axes, setting.values[0]);
  } else if (!setting.values.empty()) {
    if (setting.values.size() != axes) {
      setup.Fail(Field(setting.name), name + " is given " + std::to_string(setting.values.size()) + " times, but " +
                                          setup.DescribeBottom(0) + " has " + std::to_string(axes) +
                                          " spatial axes; give it once for all of them, or once for each");
    }
    values.assign(setting.values.begin(), setting.values.end());
  } else if (setting.fallback < 0 && axes > 0) {
    setup.Fail("convolution_param", name + " is not set; give " + name + ", or " + setting.vertical_name + " and " +
                                        setting.horizontal_name);
  }
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  for (const int64_t value : values) {
    if (value >= setting.minimum && value <= kMost) continue;
    const bool pair = setting.has_vertical || setting.has_horizontal;
    setup.Fail(
        pair ? Field(setting.has_vertical ? setting.vertical_name : setting.horizontal_name) : Field(setting.name),
        (pair ? std::string(setting.vertical_name) + " and " + setting.horizontal_name + " must both be"
              : name + " must be") +
            (value < setting.minimum ? " at least " + std::to_string(setting.minimum)
                                     : " at most " + std::to_string(kMost)) +
            ", got " + std::to_string(value));
  }
  return values;
}

}  // namespace

ConvolutionWindow ReadConvolutionWindow(const LayerSetup& setup, int bottom) {
  const ConvolutionParameter& param = setup.param().convolution_param();
  const Shape& shape = setup.bottom_shape(bottom);
  ConvolutionWindow window;
  window.axis = setup.CanonicalAxis("convolution_param.axis", param.axis());
  window.input.assign(shape.dims().begin() + window.axis + 1, shape.dims().end());
  const int axes = static_cast<int>(window.input.size());
  window.kernel = Read(setup, axes,
                       {"kernel_size", param.kernel_size(), "kernel_h", "kernel_w", param.has_kernel_h(),
                        param.has_kernel_w(), param.kernel_h(), param.kernel_w(), -1, 1});
  window.stride = Read(setup, axes,
                       {"stride", param.stride(), "stride_h", "stride_w", param.has_stride_h(), param.has_stride_w(),
                        param.stride_h(), param.stride_w(), 1, 1});
  window.pad = Read(
      setup, axes,
      {"pad", param.pad(), "pad_h", "pad_w", param.has_pad_h(), param.has_pad_w(), param.pad_h(), param.pad_w(), 0, 0});
  window.dilation = Read(setup, axes, {"dilation", param.dilation(), "", "", false, false, 0, 0, 1, 1});
  return window;
}

void CheckReach(const LayerSetup& setup, const ConvolutionWindow& window) {
  bool fits = true, dilated = false;
  std::vector<int64_t> padded;
  for (int i = 0; i < static_cast<int>(window.input.size()); ++i) {
    padded.push_back(window.input[i] + 2 * window.pad[i]);
    fits &= window.reach(i) <= padded.back();
    dilated |= window.dilation[i] > 1;
  }
  if (fits) return;
  const auto extents = [](const std::vector<int64_t>& values) { return Shape(values).ToString(); };
  const ConvolutionParameter& param = setup.param().convolution_param();
  std::string kernel =
      "kernel_size " + (param.kernel_size_size() == 1 ? std::to_string(param.kernel_size(0)) : extents(window.kernel));
  if (dilated) kernel += " with dilation " + extents(window.dilation);
  setup.Fail(param.kernel_size_size() > 0 ? "convolution_param.kernel_size" : "convolution_param.kernel_h",
             kernel + " exceeds the padded input " + extents(padded) + " from \"" + setup.param().bottom(0) +
                 "\"; lower " + (dilated ? "dilation or " : "") + "kernel_size or add pad");
}

void ExpectEqualBottoms(const LayerSetup& setup) {
  setup.ExpectBottoms(1, -1);
  setup.ExpectTops(setup.bottoms());
  for (int i = 1; i < setup.bottoms(); ++i) {
    if (setup.bottom_shape(i) == setup.bottom_shape(0)) continue;
    setup.Fail("bottom", "all bottoms must have one shape, but \"" + setup.param().bottom(0) + "\" is " +
                             setup.bottom_shape(0).ToString() + " and \"" + setup.param().bottom(i) + "\" is " +
                             setup.bottom_shape(i).ToString());
  }
}

ConvolutionChannels ReadChannels(const LayerSetup& setup, int64_t channels, bool depthwise) {
  const ConvolutionParameter& param = setup.param().convolution_param();
  const int64_t outputs = depthwise && !param.has_num_output() ? channels : param.num_output();
  const int64_t groups = depthwise && !param.has_group() ? channels : param.group();
  if (channels < 1) setup.Fail("bottom", "\"" + setup.param().bottom(0) + "\" has no channels");
  if (outputs < 1) {
    setup.Fail(param.has_num_output() ? "convolution_param.num_output" : "convolution_param",
               "num_output must be at least 1; it is the number of filters");
  }
  if (outputs > std::numeric_limits<int32_t>::max()) {
    setup.Fail("convolution_param.num_output",
               "num_output is " + std::to_string(outputs) + ", more filters than are possible");
  }
  if (groups < 1) setup.Fail("convolution_param.group", "group must be at least 1, got 0");
  if (channels % groups != 0) {
    setup.Fail("convolution_param.group", "group " + std::to_string(groups) + " does not divide the " +
                                              std::to_string(channels) + " channels of \"" + setup.param().bottom(0) +
                                              "\"");
  }
  if (outputs % groups != 0) {
    setup.Fail(param.has_group() ? "convolution_param.group" : "convolution_param.num_output",
               "group " + std::to_string(groups) + (param.has_group() ? "" : " (the number of channels)") +
                   " does not divide num_output " + std::to_string(outputs));
  }
  return {outputs, groups};
}

}  // namespace crema
