#include "onnx/window.h"

#include <algorithm>

namespace crema::onnx {

namespace {

constexpr int64_t kMost = 1 << 20;

std::vector<int64_t> Extents(const NodeReader& node, const std::string& name, size_t count, int64_t fallback,
                             int64_t least) {
  std::vector<int64_t> values = node.Ints(name).value_or(std::vector<int64_t>(count, fallback));
  if (values.size() != count) {
    node.Refuse("attribute " + name + " has " + std::to_string(values.size()) + " numbers, " + std::to_string(count) +
                " are needed");
  }
  for (const int64_t value : values) {
    if (value < least || value > kMost) node.Refuse("attribute " + name + " holds " + std::to_string(value));
  }
  return values;
}

}  // namespace

std::vector<int64_t> SpatialExtents(const NodeReader& node, const Shape& shape) {
  if (shape.axes() < 3) node.Refuse("reads " + shape.ToString() + ", which are no images");
  return {shape.dims().begin() + 2, shape.dims().end()};
}

Window ReadWindow(const NodeReader& node, const std::vector<int64_t>& input, const std::vector<int64_t>& kernel,
                  bool transpose) {
  const size_t axes = input.size();
  Window window;
  if (kernel.empty() && !node.has_attribute("kernel_shape")) node.Refuse("has no kernel_shape");
  window.kernel = node.has_attribute("kernel_shape") ? Extents(node, "kernel_shape", axes, 1, 1) : kernel;
  if (!kernel.empty() && window.kernel != kernel) {
    node.Refuse("kernel_shape is " + Shape(window.kernel).ToString() + ", but its weights are for " +
                Shape(kernel).ToString());
  }
  window.stride = Extents(node, "strides", axes, 1, 1);
  window.dilation = Extents(node, "dilations", axes, 1, 1);
  const std::string automatic = node.String("auto_pad", "NOTSET");
  const std::vector<int64_t> pads =
      automatic == "NOTSET" ? Extents(node, "pads", 2 * axes, 0, 0) : std::vector<int64_t>(2 * axes, 0);
  window.before.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(axes));
  window.after.assign(pads.begin() + static_cast<std::ptrdiff_t>(axes), pads.end());
  if (automatic == "NOTSET" || automatic == "VALID") return window;
  if (automatic != "SAME_UPPER" && automatic != "SAME_LOWER") node.Refuse("auto_pad " + automatic + " is unknown");
  for (size_t i = 0; i < axes; ++i) {
    const int64_t results = (input[i] + window.stride[i] - 1) / window.stride[i],
                  reach = window.reach(static_cast<int>(i));
    // So that a transpose has input * stride elements.
    const int64_t total = transpose ? reach - window.stride[i] : (results - 1) * window.stride[i] + reach - input[i];
    if (transpose && total % 2 != 0) {
      node.Refuse("auto_pad leaves open where an odd number of pixels is cut off; export it with pads");
    }
    const int64_t less = std::max<int64_t>(0, total) / 2, more = std::max<int64_t>(0, total) - less;
    if (transpose && total < 0) node.Refuse("auto_pad would add pixels; export it with pads and output_padding");
    window.before[i] = automatic == "SAME_UPPER" ? less : more;
    window.after[i] = automatic == "SAME_UPPER" ? more : less;
  }
  return window;
}

}  // namespace crema::onnx
