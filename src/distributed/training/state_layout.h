// Where what lies in the bytes that machines exchange.
#ifndef CREMA_DISTRIBUTED_TRAINING_STATE_LAYOUT_H_
#define CREMA_DISTRIBUTED_TRAINING_STATE_LAYOUT_H_

#include <cstdint>
#include <vector>

#include "distributed/codecs/error_feedback.h"
#include "distributed/protocol/payload.h"

namespace crema {

// The three blobs of one BatchNorm layer (Caffe's): sums of means and of variances, and the factor that both are
// divided by. Offsets count floats from the first value.
struct BatchNormPlaces {
  int64_t mean = 0, variance = 0, factor = 0, channels = 0;
};

// Little-endian floats. A state: trained values, statistics, what the step of a round remembers where workers have to
// know it (the outer momentum; with gradients, the solver's history), and, where it is sent, the history of workers
// that have their own. What workers make of a state is without what the step of a round remembers.
struct StateLayout {
  int64_t trained = 0;         // numbers
  int64_t values = 0;          // trained ones and statistics
  int64_t velocity = 0;        // the outer momentum: 0, or `trained`
  int64_t shared_history = 0;  // the solver's history where all workers update alike, and have the same
  int64_t history = 0;         // of each worker
  std::vector<BatchNormPlaces> batch_norms = {};
  std::vector<Bucket> buckets = {};  // the trained values as they are coded, parameter by parameter

  // Of what workers make of a state.
  uint64_t bytes(bool with_history) const {
    return static_cast<uint64_t>(values + (with_history ? history : 0)) * sizeof(float);
  }
  uint64_t state_bytes(bool with_history) const {
    return bytes(with_history) + static_cast<uint64_t>(velocity + shared_history) * sizeof(float);
  }
  // Where these begin in a state, in floats.
  int64_t velocity_in_state() const { return values; }
  int64_t shared_history_in_state() const { return values + velocity; }
  int64_t history_in_state() const { return values + velocity + shared_history; }
};

// Throws EnvironmentError unless the state has the size of one, with or without a history.
void ExpectState(const StateLayout& layout, const Payload& state);

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_TRAINING_STATE_LAYOUT_H_
