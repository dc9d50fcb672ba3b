// The channel view of a layer's first bottom.
#ifndef CREMA_LAYERS_CHANNEL_SHAPE_H_
#define CREMA_LAYERS_CHANNEL_SHAPE_H_

#include "crema/layer.h"
#include "crema/tensor.h"
#include "ops/normalization/channels.h"

namespace crema {

// Channels are axis 1; a tensor of one axis has a single channel, as Caffe counts.
inline ChannelGrid GridOf(const TensorSpec& spec) {
  const Shape& shape = spec.shape;
  if (shape.axes() < 2) return {shape.count(), 1, 1, Layout::kPlain, DType::kF32};
  return {shape[0], shape[1], shape.count(2), spec.layout, spec.dtype};
}

// Fails where bottom 0 has no axis 1.
inline void ExpectChannels(const LayerSetup& setup) {
  const Shape& shape = setup.bottom_shape(0);
  if (shape.axes() >= 2) return;
  setup.Fail("bottom", "takes num x channels x ..., but \"" + setup.param().bottom(0) + "\" is " + shape.ToString() +
                           ", which has no channels; reshape it");
}

}  // namespace crema

#endif  // CREMA_LAYERS_CHANNEL_SHAPE_H_
