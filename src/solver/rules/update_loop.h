// The loop all update rules share: scaled gradient, weight decay, rule, subtraction, in one pass over the elements.
#ifndef CREMA_SOLVER_RULES_UPDATE_LOOP_H_
#define CREMA_SOLVER_RULES_UPDATE_LOOP_H_

#include "base/multiversion.h"
#include "solver/rules/update_rule.h"

namespace crema {

template <WeightDecay kDecay, int kHistories, typename Formula>
CREMA_INLINE void UpdateElements(const UpdateChunk& chunk, const Formula& formula) {
  float* __restrict data = chunk.data;
  const float* __restrict gradient = chunk.gradient;
  float* __restrict first = chunk.history[0];
  float* __restrict second = kHistories > 1 ? chunk.history[1] : nullptr;
  const float scale = chunk.gradient_scale, decay = chunk.decay, rate = chunk.rate;
  const float decoupled = chunk.decay_rate * chunk.decay;
  const int64_t count = chunk.count;
  for (int64_t i = 0; i < count; ++i) {
    const float g = DecayedGradient<kDecay>(scale, gradient[i], decay, data[i]);
    const float x = DecayedValue<kDecay>(data[i], decoupled);
    if constexpr (kHistories > 1) {
      data[i] = x - formula(g, rate, first[i], second[i]);
    } else {
      data[i] = x - formula(g, rate, first[i]);
    }
  }
}

// formula(gradient, rate, history&...) returns what is subtracted from the element and updates its history.
template <int kHistories, typename Formula>
CREMA_INLINE void UpdateWith(const UpdateChunk& chunk, const Formula& formula) {
  switch (chunk.decay_type) {
    case WeightDecay::kNone:
      return UpdateElements<WeightDecay::kNone, kHistories>(chunk, formula);
    case WeightDecay::kL1:
      return UpdateElements<WeightDecay::kL1, kHistories>(chunk, formula);
    case WeightDecay::kL2:
      return UpdateElements<WeightDecay::kL2, kHistories>(chunk, formula);
    case WeightDecay::kDecoupled:
      return UpdateElements<WeightDecay::kDecoupled, kHistories>(chunk, formula);
  }
}

}  // namespace crema

#endif  // CREMA_SOLVER_RULES_UPDATE_LOOP_H_
