// What Scale and Bias have in common: a vector that runs along some axes of bottom 0 and is stretched over the others,
// either learnt or given as bottom 1.
#ifndef CREMA_LAYERS_STRETCHED_VECTOR_H_
#define CREMA_LAYERS_STRETCHED_VECTOR_H_

#include <string>

#include "crema/layer.h"
#include "ops/normalization/channels.h"

namespace crema {

struct StretchedVector {
  bool learnt = true;
  Shape shape;
  // Its elements are the channels; plain.
  ChannelGrid grid;
  // One number for each channel of an image: then the grid may have the bottom's layout.
  bool of_channels = false;

  // As the layer is planned.
  ChannelGrid GridFor(const TensorSpec& bottom) const;
};

// Checks the bottoms against `axis` and `num_axes` of the message `block` ("scale_param"), and says which layouts the
// layer takes. Fails with the remedy.
StretchedVector ReadStretchedVector(LayerSetup& setup, const std::string& block, int axis, int num_axes);

}  // namespace crema

#endif  // CREMA_LAYERS_STRETCHED_VECTOR_H_
