// What the layers that read class labels share.
#ifndef CREMA_LAYERS_LABELS_H_
#define CREMA_LAYERS_LABELS_H_

#include <string>

#include "crema/layer.h"
#include "ops/softmax.h"

namespace crema {

// Fails unless bottom 1 holds one label for each position of bottom 0 around `axis`.
void CheckLabelShape(const LayerSetup& setup, const ClassAxis& axis);

// Throws BadItem for the first label of `labels` (bottom 1) that is no class. `scores` is the name of bottom 0, `param`
// the message of the file that holds ignore_label ("loss_param").
void CheckLabels(const Tensor& labels, const ClassAxis& axis, const LabelRule& rule, const std::string& scores,
                 const std::string& param);

}  // namespace crema

#endif  // CREMA_LAYERS_LABELS_H_
