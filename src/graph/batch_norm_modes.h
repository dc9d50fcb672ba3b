// How the settings of BatchNorm and BN layers are read, for all who need to know.
#ifndef CREMA_GRAPH_BATCH_NORM_MODES_H_
#define CREMA_GRAPH_BATCH_NORM_MODES_H_

#include "crema/net.pb.h"

namespace crema {

// Whether it does what a Scale behind it would, as in NVIDIA's fork.
inline bool ScalesItself(const BatchNormParameter& param) {
  return param.scale_bias() || param.has_scale_filler() || param.has_bias_filler();
}

// Whether it normalises with the batch's statistics, and gathers them, instead of using the running ones. In tests that
// fork uses those whatever use_global_stats says.
inline bool NormalizesByBatch(const BatchNormParameter& param, Phase phase) {
  if (phase == TEST && ScalesItself(param)) return false;
  return param.has_use_global_stats() ? !param.use_global_stats() : phase == TRAIN;
}

// Whether a BN has no running statistics, as SegNet's.
inline bool IsBnOfSegNet(const BNParameter& param) {
  return param.has_scale_filler() || param.has_shift_filler() || param.has_bn_mode();
}

// Whether a BN does not look at the batch's statistics.
inline bool BnUsesRunning(const BNParameter& param, Phase phase) {
  if (IsBnOfSegNet(param)) return param.bn_mode() == BNParameter::INFERENCE;
  return param.frozen() || phase == TEST;
}

// What is added to the variance of a BN. SegNet's that does not look at the batch normalises not at all: the variance
// is 1, and nothing is added.
inline float BnEps(const BNParameter& param) {
  if (!IsBnOfSegNet(param)) return param.eps();
  if (param.bn_mode() == BNParameter::INFERENCE) return 0;
  return param.has_eps() ? param.eps() : 1e-9f;
}

// Whether a layer makes what it says of an item depend on the other items of the batch.
inline bool NormalizesByBatch(const LayerParameter& layer, Phase phase) {
  if (layer.type() == "BatchNorm") return NormalizesByBatch(layer.batch_norm_param(), phase);
  return layer.type() == "BN" && !BnUsesRunning(layer.bn_param(), phase);
}

}  // namespace crema

#endif  // CREMA_GRAPH_BATCH_NORM_MODES_H_
