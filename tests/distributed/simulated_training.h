// Training whose result shows which steps went into it, for the simulator: parameters are sums over steps, so that a
// step that was lost, used twice or applied to other parameters can be seen in them.
#ifndef CREMA_TESTS_DISTRIBUTED_SIMULATED_TRAINING_H_
#define CREMA_TESTS_DISTRIBUTED_SIMULATED_TRAINING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "distributed/protocol/coordinator.h"
#include "distributed/protocol/worker.h"

namespace crema {

// What some steps add up to.
struct Tally {
  uint64_t count = 0, sum = 0, mixed = 0;  // steps, and the sum and the exclusive or of their hashes
  uint64_t updates = 0;                    // hash of those that gradients went into, in their order

  void Add(const Steps& steps);
  // A solver's update at the end of an iteration.
  void Update(uint64_t iteration);
  // this + (other - base)
  void Move(const Tally& other, const Tally& base);
  bool operator==(const Tally&) const = default;
};

// How values go into parameters: as what training made of these, as differences to them (CoordinatorOptions.stale), or
// as gradients, of which each round makes one update; or not at all: they replace them (CoordinatorOptions.tournament).
enum class Simulated { kParameters, kDifferences, kGradients, kApart };

// Parameters of `words` words of 8 bytes, at least 4, where there are updates 5: the tally, and words that follow from
// it.
Payload ParametersOf(const Tally& tally, size_t words);
// Values that training spoiled.
Payload NotFinite(size_t words);
bool IsFinite(const Payload& values);
// Throws std::logic_error where these are no values of ParametersOf.
Tally TallyOf(const Payload& values);

class SimulatedRoundMath : public RoundMath {
 public:
  SimulatedRoundMath(Payload state, size_t words, Simulated kind = Simulated::kParameters)
      : state_(std::move(state)), words_(words), kind_(kind) {}

  std::string Check(Contribution& contribution) override;
  Payload Reduce(const Round& round, const std::vector<Contribution>& contributions) override;
  void Accept() override;
  // The new state behind the fingerprint of the one before.
  Payload Difference() override { return difference_; }
  // Two more words.
  Payload Whole(const Payload& state) override;
  void Restore(const Payload& state) override { state_ = state; }

 private:
  Payload state_, next_, difference_;
  size_t words_;
  Simulated kind_;
};

// Pieces are not added up but gathered, so that one that is missing or of another place is noticed. SHARDED only.
class SimulatedExchangeMath : public ExchangeMath {
 public:
  explicit SimulatedExchangeMath(int buckets) : buckets_(buckets) {}

  int Buckets(uint64_t) const override { return buckets_; }
  Payload Piece(const ExchangePlan& plan, const Payload& values, uint64_t begin, uint64_t end) const override;
  std::vector<uint64_t> Cuts(uint64_t bytes, int pieces) const override;
  uint64_t most_piece_bytes() const override { return 1 << 20; }
  Payload Combine(const ExchangePlan& plan, uint64_t begin, uint64_t end,
                  std::span<const Payload> pieces) const override;
  Payload Term(const ExchangePlan&, const Payload&) const override { return nullptr; }
  Payload Add(const Payload&, const Payload&) const override { return nullptr; }
  Payload Finish(const ExchangePlan&, std::span<const Payload>) const override { return nullptr; }

 private:
  const int buckets_;
};

class SimulatedWorkerMath : public WorkerMath {
 public:
  explicit SimulatedWorkerMath(size_t words, Simulated kind = Simulated::kParameters, int buckets = 1)
      : words_(words), kind_(kind), exchange_(buckets) {}

  Payload Rebase(const Payload& values, bool with_history, const Payload& from, const Payload& to) override;
  Payload Encode(const Payload& values, const Payload& from, uint64_t version) override;
  // Null where a state comes to one who does not have what never changes.
  Payload Decode(Work::Form form, const Payload& sent, const Payload& last) override;
  Payload Offer(const Payload& values, bool with_history) override;
  const ExchangeMath* exchange() const override { return &exchange_; }
  Payload Conclude(const ExchangePlan& plan, const Payload& exchanged, bool with_history, const Payload& from) override;

 private:
  const size_t words_;
  const Simulated kind_;
  const SimulatedExchangeMath exchange_;
  bool has_all_ = false;
};

}  // namespace crema

#endif  // CREMA_TESTS_DISTRIBUTED_SIMULATED_TRAINING_H_
