// Fields that say what predicted numbers of boxes are multiplied by.
#ifndef CREMA_LAYERS_BOX_VARIANCE_H_
#define CREMA_LAYERS_BOX_VARIANCE_H_

#include <string>

#include "crema/layer.h"
#include "ops/detection/box_formulas.h"

namespace crema {

// Of the values of `field`, a path of the file that ends with "variance": one for all four numbers, four, or none for
// `usual`. Reports others.
BoxVariance VarianceOf(const LayerSetup& setup, const std::string& field,
                       const google::protobuf::RepeatedField<float>& values, float usual);

}  // namespace crema

#endif  // CREMA_LAYERS_BOX_VARIANCE_H_
