// Rounds of workers whose nets have BatchNorm, and pieces of what they bring, for tests of averaging among workers.
#ifndef CREMA_TESTS_DISTRIBUTED_AVERAGED_ROUNDS_H_
#define CREMA_TESTS_DISTRIBUTED_AVERAGED_ROUNDS_H_

#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "distributed/averaging/peer_averaging.h"
#include "distributed/contributions.h"

namespace crema {

// Two BatchNorm layers behind the trained values, and a statistic that is of none.
inline StateLayout LayoutWith(const DistributedParameter& settings, int64_t trained, bool statistics, bool history) {
  StateLayout layout = Trained(trained, history ? trained : 0);
  layout.velocity = VelocityInStates(settings, trained);
  if (!statistics) return layout;
  layout.batch_norms = {{trained, trained + 20, trained + 40, 20}, {trained + 41, trained + 44, trained + 47, 3}};
  layout.values = trained + 49;
  return layout;
}

// What a worker may have made of a net: positive variances and factors, not the same for all.
inline std::vector<float> ValuesOf(const StateLayout& layout, uint32_t seed, bool with_history) {
  std::vector<float> values = RandomFloats(seed, layout.bytes(with_history) / sizeof(float));
  for (const BatchNormPlaces& layer : layout.batch_norms) {
    const float factor = 1.5f + values[layer.factor];
    for (int64_t i = 0; i < layer.channels; ++i) {
      values[layer.mean + i] *= factor;
      values[layer.variance + i] = factor * (0.1f + std::fabs(values[layer.variance + i]));
    }
    values[layer.factor] = factor;
  }
  return values;
}

inline Payload PieceOf(const Payload& values, uint64_t begin, uint64_t end) {
  return std::make_shared<Bytes>(values->begin() + static_cast<int64_t>(begin),
                                 values->begin() + static_cast<int64_t>(end));
}

inline Payload Joined(const std::vector<Payload>& pieces) {
  const auto whole = std::make_shared<Bytes>();
  for (const Payload& piece : pieces) whole->insert(whole->end(), piece->begin(), piece->end());
  return whole;
}

struct RoundOfWorkers {
  ExchangePlan plan;
  std::vector<Contribution> contributions;
  std::vector<Payload> values;
};

inline RoundOfWorkers WorkersWith(const StateLayout& layout, int workers, uint32_t seed, bool with_history) {
  RoundOfWorkers round;
  for (int i = 0; i < workers; ++i) {
    const uint64_t examples = 3 + 5 * static_cast<uint64_t>(i) + seed % 3;
    round.plan.examples.push_back(examples);
    round.contributions.push_back(Of(static_cast<uint32_t>(i), examples,
                                     ValuesOf(layout, 100 * seed + static_cast<uint32_t>(i), with_history),
                                     with_history));
    round.values.push_back(round.contributions.back().values);
  }
  return round;
}

}  // namespace crema

#endif  // CREMA_TESTS_DISTRIBUTED_AVERAGED_ROUNDS_H_
