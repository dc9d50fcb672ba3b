// Where what lies in the bytes that machines exchange.
#ifndef CREMA_DISTRIBUTED_STATE_LAYOUT_H_
#define CREMA_DISTRIBUTED_STATE_LAYOUT_H_

#include <cstdint>
#include <vector>

#include "distributed/error_feedback.h"

namespace crema {

// The three blobs of one BatchNorm layer (Caffe's): sums of means and of variances, and the factor that both are
// divided by. Offsets count floats from the first value.
struct BatchNormBlobs {
  int64_t mean = 0, variance = 0, factor = 0, channels = 0;
};

// Little-endian floats: trained values, then statistics, then, where it is sent, the solver's history. A state, other
// than what workers made of one, has the outer momentum between the last two where workers have to know it.
struct StateLayout {
  int64_t trained = 0;  // numbers
  int64_t values = 0;   // trained ones and statistics
  int64_t velocity = 0;  // the outer momentum: 0, or `trained`
  int64_t history = 0;
  std::vector<BatchNormBlobs> batch_norms = {};
  std::vector<Bucket> buckets = {};  // the trained values as they are coded, parameter by parameter

  uint64_t bytes(bool with_history) const {
    return static_cast<uint64_t>(values + (with_history ? history : 0)) * sizeof(float);
  }
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_STATE_LAYOUT_H_
