// How the settings of a BatchNorm layer are read, for all who need to know.
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

}  // namespace crema

#endif  // CREMA_GRAPH_BATCH_NORM_MODES_H_
