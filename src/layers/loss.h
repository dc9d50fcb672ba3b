// What losses share.
#ifndef CREMA_LAYERS_LOSS_H_
#define CREMA_LAYERS_LOSS_H_

#include <cstdint>
#include <string>

#include "crema/layer.h"
#include "ops/losses/softmax.h"

namespace crema {

// The extent of the first axis; of a single number 1.
int64_t BatchOf(const Shape& shape);
// Each item as one row, whatever its axes.
ClassAxis ItemsAsRows(const Shape& shape);
// Fails unless bottom i has as many items as bottom 0, of as many values each.
void ExpectSameItems(const LayerSetup& setup, int bottom);
// Of a bottom of weights, which have no gradient: how many elements (places of a label, `element` says) each is for,
// one or all of an item. Fails unless there is one for each of the `elements` of bottom 0 or for each item.
int64_t ElementsOfWeight(LayerSetup& setup, int bottom, int64_t elements, const std::string& element);
// Whether all bottoms have the same shape, so that their elements lie alike in every layout.
bool AllBottomsAlike(const LayerSetup& setup);

LabelRule ReadLabelRule(const LossParameter& param);
// What the sum over `places` of `batch` items is divided by, as normalization says, or where that is not set,
// normalize, else `unset`. 0: the number of places that count, which is known when their labels are, or, where places
// are `weighted`, the sum of their weights. Fails at PRE_FIXED, which most losses do not know.
int64_t ReadNormalizer(const LayerSetup& setup, LossParameter::NormalizationMode unset, int64_t places, int64_t batch,
                       bool weighted = false);
// Of layers other than SigmoidCrossEntropyLoss, which alone reads them: fails where class_balanced or negative_weight
// is set.
void RefuseBalance(LayerSetup& setup);
// Of layers other than SoftmaxWithLoss, which alone reads them: warns of class_weight, and fails where a setting of
// forks would change the loss.
void RefuseSoftmaxSettings(LayerSetup& setup);

}  // namespace crema

#endif  // CREMA_LAYERS_LOSS_H_
