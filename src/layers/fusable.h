// Which settings of the layers that follow a convolution or a batch normalisation let them be done in the same pass.
// Each says why not.
#ifndef CREMA_LAYERS_FUSABLE_H_
#define CREMA_LAYERS_FUSABLE_H_

#include <span>
#include <string>

#include "crema/layer.h"

namespace crema {

bool IsSumOfTwo(const LayerSetup& eltwise);
bool IsScaleByChannel(const LayerSetup& scale);
// Whether a Scale follows a BatchNorm that scales already.
bool ScalesTwice(std::span<const LayerSetup* const> members);

// Every member but the first: a Scale by channel, an Eltwise that adds two bottoms, a ReLU without slope.
bool FollowersAreFusable(std::span<const LayerSetup* const> members, std::string* why_not);

}  // namespace crema

#endif  // CREMA_LAYERS_FUSABLE_H_
