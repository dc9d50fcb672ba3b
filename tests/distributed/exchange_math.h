// What workers exchange in tests: floats, of which they want the weighted mean.
#ifndef CREMA_TESTS_DISTRIBUTED_EXCHANGE_MATH_H_
#define CREMA_TESTS_DISTRIBUTED_EXCHANGE_MATH_H_

#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "distributed/exchange/exchange.h"

namespace crema {

inline constexpr DistributedParameter::Topology kTopologies[] = {DistributedParameter::SHARDED,
                                                                 DistributedParameter::RING, DistributedParameter::TREE,
                                                                 DistributedParameter::HALVING};

inline Payload BytesOfFloats(const std::vector<float>& floats) {
  const auto bytes = std::make_shared<Bytes>(floats.size() * sizeof(float));
  if (!floats.empty()) std::memcpy(bytes->data(), floats.data(), bytes->size());
  return bytes;
}

inline std::vector<float> FloatsIn(const Payload& payload) {
  std::vector<float> floats(payload->size() / sizeof(float));
  if (!floats.empty()) std::memcpy(floats.data(), payload->data(), floats.size() * sizeof(float));
  return floats;
}

// Values of as many workers as there are in `plan`.
inline std::vector<Payload> ValuesOf(const ExchangePlan& plan, size_t count) {
  std::vector<Payload> values;
  for (int r = 0; r < plan.size(); ++r) {
    const RandomStream random(23, static_cast<uint64_t>(r));
    std::vector<float> floats(count);
    for (size_t i = 0; i < count; ++i) floats[i] = random.Gaussian(i);
    values.push_back(BytesOfFloats(floats));
  }
  return values;
}

inline ExchangePlan PlanOf(DistributedParameter::Topology topology, int workers, int rank = 0) {
  ExchangePlan plan{.topology = topology, .rank = rank};
  for (int r = 0; r < workers; ++r) plan.examples.push_back(static_cast<uint64_t>(3 + 7 * r % 11));
  return plan;
}

class FloatMath : public ExchangeMath {
 public:
  // Pieces as long as each other, or some much longer than others and some empty.
  enum class Cutting { kEven, kSkewed };

  explicit FloatMath(uint64_t most = uint64_t{1} << 30, Cutting cutting = Cutting::kEven)
      : most_(most), cutting_(cutting) {}

  std::vector<uint64_t> Cuts(uint64_t bytes, int pieces) const override {
    const uint64_t count = bytes / sizeof(float), n = static_cast<uint64_t>(pieces);
    std::vector<uint64_t> cuts;
    for (uint64_t i = 0; i <= n; ++i) {
      const uint64_t cut = cutting_ == Cutting::kEven ? count * i / n : count * (i * i / 2) / ((n * n) / 2 + (n == 1));
      cuts.push_back((i == n ? count : i == 0 ? 0 : cut) * sizeof(float));
    }
    return cuts;
  }

  int Buckets(uint64_t) const override { return buckets_; }
  void set_buckets(int buckets) { buckets_ = buckets; }

  uint64_t most_piece_bytes() const override { return most_; }

  Payload Combine(const ExchangePlan& plan, uint64_t begin, uint64_t end,
                  std::span<const Payload> pieces) const override {
    Saw(pieces);
    if (pieces.size() != plan.examples.size()) return nullptr;
    std::vector<double> sum((end - begin) / sizeof(float));
    for (size_t r = 0; r < pieces.size(); ++r) {
      if (pieces[r]->size() != end - begin) return nullptr;
      const std::vector<float> piece = FloatsIn(pieces[r]);
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>(plan.examples[r]) * piece[i];
    }
    return Made(std::vector<float>(sum.size()), [&](size_t i) { return static_cast<float>(sum[i] / Total(plan)); });
  }

  Payload Term(const ExchangePlan& plan, const Payload& values) const override {
    const double weight = static_cast<double>(plan.examples[static_cast<size_t>(plan.rank)]) / Total(plan);
    const std::vector<float> floats = FloatsIn(values);
    return Made(floats, [&](size_t i) { return static_cast<float>(weight * floats[i]); });
  }

  Payload Add(const Payload& a, const Payload& b) const override {
    Saw(std::vector{a, b});
    if (a->size() != b->size()) return nullptr;
    const std::vector<float> x = FloatsIn(a), y = FloatsIn(b);
    return Made(x, [&](size_t i) { return x[i] + y[i]; });
  }

  Payload Finish(const ExchangePlan&, std::span<const Payload> sum) const override {
    Saw(sum);
    std::vector<float> all;
    for (const Payload& part : sum) {
      if (part->size() % sizeof(float) != 0) return nullptr;
      const std::vector<float> floats = FloatsIn(part);
      all.insert(all.end(), floats.begin(), floats.end());
    }
    return Made(all, [&](size_t i) { return all[i]; });
  }

  // So many calls give something, the next and all after it nothing.
  void FailAfter(int calls) { calls_left_ = calls; }
  // That gave something.
  int calls() const { return calls_; }
  // What was made or used and still lies somewhere.
  std::vector<Payload> Alive() const {
    std::vector<Payload> alive;
    for (const auto& seen : seen_) {
      if (Payload payload = seen.lock()) alive.push_back(std::move(payload));
    }
    return alive;
  }

 private:
  static double Total(const ExchangePlan& plan) {
    return static_cast<double>(std::accumulate(plan.examples.begin(), plan.examples.end(), uint64_t{0}));
  }

  template <typename F>
  Payload Made(std::vector<float> floats, F value) const {
    if (calls_left_-- <= 0) return nullptr;
    std::vector<float> result(floats.size());
    for (size_t i = 0; i < result.size(); ++i) result[i] = value(i);
    Payload payload = BytesOfFloats(result);
    ++calls_;
    Saw({&payload, 1});
    return payload;
  }

  void Saw(std::span<const Payload> payloads) const { seen_.insert(seen_.end(), payloads.begin(), payloads.end()); }

  const uint64_t most_;
  const Cutting cutting_;
  int buckets_ = 1;
  mutable int calls_left_ = std::numeric_limits<int>::max();
  mutable int calls_ = 0;
  mutable std::vector<std::weak_ptr<const Bytes>> seen_;
};

// Of many chunks for few values.
inline const TransferOptions kSmall{.chunk_bytes = 100, .credits = 3, .patience = 200};

}  // namespace crema

#endif  // CREMA_TESTS_DISTRIBUTED_EXCHANGE_MATH_H_
