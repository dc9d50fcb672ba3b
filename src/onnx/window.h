// The windows that convolutions and poolings of a model move over images.
#ifndef CREMA_ONNX_WINDOW_H_
#define CREMA_ONNX_WINDOW_H_

#include <cstdint>
#include <vector>

#include "onnx/graph_reader.h"

namespace crema::onnx {

// One entry for each spatial axis.
struct Window {
  std::vector<int64_t> kernel, stride, dilation;
  // Padding, that of a Pad in front excluded.
  std::vector<int64_t> before, after;

  int axes() const { return static_cast<int>(kernel.size()); }
  int64_t reach(int i) const { return dilation[i] * (kernel[i] - 1) + 1; }
};

// Of a node that reads N x channels x `input`, from its attributes; kernel_shape must be `kernel` where that is not
// empty. auto_pad: SAME_* gives as many results as input / stride, rounded up. Of a convolution's transpose pads may
// not be left to it.
Window ReadWindow(const NodeReader& node, const std::vector<int64_t>& input, const std::vector<int64_t>& kernel,
                  bool transpose = false);

// The extents behind the first two axes.
std::vector<int64_t> SpatialExtents(const NodeReader& node, const Shape& shape);

}  // namespace crema::onnx

#endif  // CREMA_ONNX_WINDOW_H_
