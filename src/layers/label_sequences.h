// What the layers that read sequences of labels share.
#ifndef CREMA_LAYERS_LABEL_SEQUENCES_H_
#define CREMA_LAYERS_LABEL_SEQUENCES_H_

#include <string>

#include "crema/layer.h"

namespace crema {

// Fails unless bottom 0 has three axes, of which `what` says the order, and the blank is one of the classes of its
// last. `block`: that of blank_label in the file.
void CheckSequenceScores(LayerSetup& setup, const std::string& block, int32_t blank, const std::string& what);
// The number of labels of a sequence, which are the axes of bottom 1 behind the first. Fails unless that is `batch`.
int64_t LongestSequence(const LayerSetup& setup, int64_t batch);

}  // namespace crema

#endif  // CREMA_LAYERS_LABEL_SEQUENCES_H_
