#include "layers/convolution_window.h"

#include <limits>

#include "layers/axis_settings.h"
#include "layers/field_range.h"
#include "layers/window_map.h"

namespace crema {

std::vector<LayerSetup::AxisMap> ConvolutionWindow::coordinate_map(bool transposed) const {
  std::vector<LayerSetup::AxisMap> map;
  for (size_t i = 0; i < input.size(); ++i) {
    map.push_back(WindowMap(reach(static_cast<int>(i)), stride[i], pad[i], transposed));
  }
  return map;
}

template <typename Parameter>
ConvolutionWindow ReadConvolutionWindow(const LayerSetup& setup, const std::string& block, const Parameter& param,
                                        int bottom) {
  const Shape& shape = setup.bottom_shape(bottom);
  ConvolutionWindow window;
  window.block = block;
  window.kernel_sizes = param.kernel_size_size();
  window.axis = setup.CanonicalAxis(block + ".axis", param.axis());
  window.input.assign(shape.dims().begin() + window.axis + 1, shape.dims().end());
  const int axes = static_cast<int>(window.input.size());
  const auto read = [&](const AxisSetting& setting) { return ReadAxisSetting(setup, block, axes, setting); };
  window.kernel = read({"kernel_size", param.kernel_size(), "kernel_h", "kernel_w", param.has_kernel_h(),
                        param.has_kernel_w(), param.kernel_h(), param.kernel_w(), -1, 1});
  window.stride = read({"stride", param.stride(), "stride_h", "stride_w", param.has_stride_h(), param.has_stride_w(),
                        param.stride_h(), param.stride_w(), 1, 1});
  window.pad = read(
      {"pad", param.pad(), "pad_h", "pad_w", param.has_pad_h(), param.has_pad_w(), param.pad_h(), param.pad_w(), 0, 0});
  window.dilation = read({"dilation", param.dilation(), "", "", false, false, 0, 0, 1, 1});
  return window;
}

template ConvolutionWindow ReadConvolutionWindow(const LayerSetup&, const std::string&, const ConvolutionParameter&,
                                                 int);
template ConvolutionWindow ReadConvolutionWindow(const LayerSetup&, const std::string&,
                                                 const DeformableConvolutionParameter&, int);

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
  std::string kernel =
      "kernel_size " + (window.kernel_sizes == 1 ? std::to_string(window.kernel[0]) : extents(window.kernel));
  if (dilated) kernel += " with dilation " + extents(window.dilation);
  setup.Fail(window.block + (window.kernel_sizes > 0 ? ".kernel_size" : ".kernel_h"),
             kernel + " exceeds the padded input " + extents(padded) + " from \"" + setup.param().bottom(0) +
                 "\"; lower " + (dilated ? "dilation or " : "") + "kernel_size or add pad");
}

void ExpectEqualBottoms(const LayerSetup& setup) {
  setup.ExpectBottoms(1, -1);
  setup.ExpectTops(setup.bottoms());
  for (int i = 1; i < setup.bottoms(); ++i) {
    if (setup.bottom_shape(i) == setup.bottom_shape(0)) continue;
    setup.Fail("bottom", "all bottoms must have one shape, but " + setup.BottomIs(0) + " and " + setup.BottomIs(i));
  }
}

template <typename Parameter>
ConvolutionChannels ReadChannels(const LayerSetup& setup, const std::string& block, const Parameter& param,
                                 int64_t channels, bool depthwise) {
  const int64_t outputs = depthwise && !param.has_num_output() ? channels : param.num_output();
  const int64_t groups = depthwise && !param.has_group() ? channels : param.group();
  if (channels < 1) setup.Fail("bottom", "\"" + setup.param().bottom(0) + "\" has no channels");
  if (outputs < 1) {
    setup.Fail(param.has_num_output() ? block + ".num_output" : block,
               "num_output must be at least 1; it is the number of filters");
  }
  if (outputs > std::numeric_limits<int32_t>::max()) {
    setup.Fail(block + ".num_output", "num_output is " + std::to_string(outputs) + ", more filters than are possible");
  }
  ReadInRange(setup, block + ".group", groups, {.low = 1});
  if (channels % groups != 0) {
    setup.Fail(block + ".group", "group " + std::to_string(groups) + " does not divide the " +
                                     std::to_string(channels) + " channels of \"" + setup.param().bottom(0) + "\"");
  }
  if (outputs % groups != 0) {
    setup.Fail(block + (param.has_group() ? ".group" : ".num_output"),
               "group " + std::to_string(groups) + (param.has_group() ? "" : " (the number of channels)") +
                   " does not divide num_output " + std::to_string(outputs));
  }
  return {outputs, groups};
}

template ConvolutionChannels ReadChannels(const LayerSetup&, const std::string&, const ConvolutionParameter&, int64_t,
                                          bool);
template ConvolutionChannels ReadChannels(const LayerSetup&, const std::string&, const DeformableConvolutionParameter&,
                                          int64_t, bool);

}  // namespace crema
