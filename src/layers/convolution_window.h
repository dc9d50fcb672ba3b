// What Convolution and its relatives read from their blocks.
#ifndef CREMA_LAYERS_CONVOLUTION_WINDOW_H_
#define CREMA_LAYERS_CONVOLUTION_WINDOW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "crema/layer.h"

namespace crema {

// One entry for each spatial axis, outermost first.
struct ConvolutionWindow {
  std::string block = "convolution_param";  // where it is from
  int kernel_sizes = 0;                     // values of kernel_size there
  int axis = 1;                             // of the channels; those behind it are spatial, those before it batch
  std::vector<int64_t> input, kernel, stride, pad, dilation;

  // A kernel's reach: dilation * (kernel - 1) + 1.
  int64_t reach(int i) const { return dilation[i] * (kernel[i] - 1) + 1; }
  // Of the convolution, or of its transpose, by the middles of kernels; for layers with the channels on axis 1.
  std::vector<LayerSetup::AxisMap> coordinate_map(bool transposed = false) const;
};

// Reads and checks axis, kernel_size, stride, pad, dilation (each given once for all axes, or once for each) and their
// _h/_w forms against the shape of `bottom`. Fails with a diagnostic at the field of `block`. Parameter:
// ConvolutionParameter or DeformableConvolutionParameter.
template <typename Parameter>
ConvolutionWindow ReadConvolutionWindow(const LayerSetup& setup, const std::string& block, const Parameter& param,
                                        int bottom = 0);
inline ConvolutionWindow ReadConvolutionWindow(const LayerSetup& setup, int bottom = 0) {
  return ReadConvolutionWindow(setup, "convolution_param", setup.param().convolution_param(), bottom);
}

// Fails unless the padded input holds at least one window along each axis.
void CheckReach(const LayerSetup& setup, const ConvolutionWindow& window);

// Fails unless every bottom has the shape of bottom 0 and there are as many tops as bottoms.
void ExpectEqualBottoms(const LayerSetup& setup);

struct ConvolutionChannels {
  int64_t outputs, groups;
};

// num_output and group, after checking them, and that num_output and `channels` divide by group. Where a depthwise
// layer leaves them out, both are `channels`. Parameter: as above.
template <typename Parameter>
ConvolutionChannels ReadChannels(const LayerSetup& setup, const std::string& block, const Parameter& param,
                                 int64_t channels, bool depthwise = false);
inline ConvolutionChannels ReadChannels(const LayerSetup& setup, int64_t channels, bool depthwise = false) {
  return ReadChannels(setup, "convolution_param", setup.param().convolution_param(), channels, depthwise);
}

}  // namespace crema

#endif  // CREMA_LAYERS_CONVOLUTION_WINDOW_H_
