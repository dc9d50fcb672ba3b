// What workers bring to a round, for tests.
#ifndef CREMA_TESTS_DISTRIBUTED_CONTRIBUTIONS_H_
#define CREMA_TESTS_DISTRIBUTED_CONTRIBUTIONS_H_

#include <cstring>
#include <memory>
#include <vector>

#include "base/random.h"
#include "distributed/averaging/averaging.h"

namespace crema {

inline Payload PayloadOf(const std::vector<float>& floats) {
  const auto bytes = std::make_shared<Bytes>(floats.size() * sizeof(float));
  if (!floats.empty()) std::memcpy(bytes->data(), floats.data(), bytes->size());
  return bytes;
}

inline std::vector<float> Floats(const Payload& payload) {
  const auto floats = FloatsOf(payload);
  return {floats.begin(), floats.end()};
}

inline std::vector<float> RandomFloats(uint32_t seed, size_t count) {
  RandomStream random(seed, 1);
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = 2 * random.Uniform(i) - 1;
  return values;
}

inline Contribution Of(uint32_t slot, uint64_t examples, const std::vector<float>& values, bool with_history = false) {
  Contribution contribution;
  contribution.slot = slot;
  contribution.push.set_examples(examples);
  contribution.push.set_with_history(with_history);
  contribution.values = PayloadOf(values);
  return contribution;
}

inline StateLayout Trained(int64_t count, int64_t history = 0) {
  StateLayout layout;
  layout.trained = layout.values = count;
  layout.history = history;
  return layout;
}

// What each comes to where these workers, of whom `plan` tells, exchange their values; `bytes` counts what each sends.
inline std::vector<Payload> ExchangeAll(ExchangePlan plan, const std::vector<Payload>& values,
                                        const std::vector<const ExchangeMath*>& maths,
                                        std::vector<uint64_t>* bytes = nullptr) {
  std::vector<std::unique_ptr<Exchange>> exchanges;
  for (plan.rank = 0; plan.rank < plan.size(); ++plan.rank) {
    const auto rank = static_cast<size_t>(plan.rank);
    exchanges.push_back(MakeExchange(plan, values[rank], *maths[rank]));
  }
  for (bool some = true; some;) {
    some = false;
    for (size_t from = 0; from < exchanges.size(); ++from) {
      for (Exchange::Message& message : exchanges[from]->TakeMessages()) {
        if (bytes) (*bytes)[from] += message.payload->size();
        exchanges[static_cast<size_t>(message.to)]->OnMessage(static_cast<int>(from), message.stage,
                                                              std::move(message.payload));
        some = true;
      }
    }
  }
  std::vector<Payload> results;
  for (const auto& exchange : exchanges) results.push_back(exchange->result());
  return results;
}

}  // namespace crema

#endif  // CREMA_TESTS_DISTRIBUTED_CONTRIBUTIONS_H_
