// What a round makes of the workers' values: one formula for iterative reduce, block momentum, DiLoCo and elastic
// averaging, the sum of what those bring who do not wait, and the mean of gradients.
#ifndef CREMA_DISTRIBUTED_AVERAGING_AVERAGING_H_
#define CREMA_DISTRIBUTED_AVERAGING_AVERAGING_H_

#include <functional>
#include <optional>
#include <vector>

#include "crema/distributed.pb.h"
#include "distributed/averaging/peer_averaging.h"
#include "distributed/averaging/round_formula.h"
#include "distributed/codecs/coding.h"
#include "distributed/protocol/coordinator.h"
#include "distributed/protocol/worker.h"
#include "distributed/training/state_layout.h"

namespace crema {

// Sums are taken in the order of the contributions, in double precision: the same contributions give the same bits,
// whatever the number of threads.
class Averaging : public RoundMath {
 public:
  // With the outer momentum V, one number for each trained value; empty: zeros. Where the layout has it, it is in
  // `state` instead. `state` has the history where settings.history() is MEAN, and may have it else.
  Averaging(const DistributedParameter& settings, StateLayout layout, Payload state, std::vector<float> velocity);

  // What workers never change: sent to those that join.
  void set_fixed(Payload fixed) { fixed_ = std::move(fixed); }
  // Pushes have at most so many bytes.
  uint64_t most_push_bytes() const;

  std::string Check(Contribution& contribution) override;
  Payload Reduce(const Round& round, const std::vector<Contribution>& contributions) override;
  void Accept() override;
  Payload Difference() override { return difference_; }
  Payload Whole(const Payload& state) override;
  void Restore(const Payload& state) override;
  // Takes back the last Reduce, where it was not accepted.
  virtual void Abandon() {}

  // The outer momentum; empty where there is none.
  std::vector<float> velocity() const;
  // That the last Reduce took.
  double reduce_seconds() const { return reduce_seconds_; }

 protected:
  // The weighted mean of [begin, end) of those contributions that reach so far, written to `out`.
  void Mean(const std::vector<Contribution>& contributions, int64_t begin, int64_t end, float* out) const;
  // Statistics of BatchNorm layers, as settings say; `out` points to all values.
  void PoolStatistics(const std::vector<Contribution>& contributions, float* out) const;
  // `next`, or, where the way down is compressed, what workers will make of its code.
  Payload Compressed(const Round& round, const Payload& next);

  const DistributedParameter settings_;
  const RoundFormula formula_;
  const StateLayout& layout_;  // the formula's
  Payload state_, next_state_, difference_, next_difference_;
  double reduce_seconds_ = 0;

 private:
  // STALE: contributions hold differences in the place of trained values.
  Payload AddDifferences(const Round& round, const std::vector<Contribution>& contributions) const;
  // Those that reach to `end`, from `begin` on.
  std::vector<WeighedValues> Terms(const std::vector<Contribution>& contributions, int64_t begin, int64_t end) const;

  std::vector<float> velocity_, next_velocity_;
  Payload fixed_;
  std::optional<StateDecoder> up_, down_decoder_;
  std::optional<StateEncoder> down_;
};

// DistributedParameter.GRADIENT: contributions hold gradients in the place of trained values.
class GradientMean : public Averaging {
 public:
  struct Update {
    // Without a history, unless it is part of the layout's states.
    GradientUpdate apply;
    // Puts back what else that changed in the call before.
    std::function<void()> undo = [] {};
  };

  GradientMean(const DistributedParameter& settings, StateLayout layout, Payload state, Update update);

  Payload Reduce(const Round& round, const std::vector<Contribution>& contributions) override;
  void Accept() override;
  void Abandon() override;

 private:
  Update update_;
  bool pending_ = false;
};

// A worker's side: moves what it learned from one version of the parameters to another, codes it, and makes the next
// version of what workers exchanged.
class LocalMoves : public WorkerMath {
 public:
  // `on_fixed` gets what never changes, when it comes: so many bytes. `update`: where workers make the next version of
  // gradients that they exchanged.
  LocalMoves(const DistributedParameter& settings, StateLayout layout, uint64_t fixed_bytes = 0,
             std::function<void(Payload)> on_fixed = {}, GradientUpdate update = {});

  Payload Rebase(const Payload& values, bool with_history, const Payload& from, const Payload& to) override;
  Payload Own(const Payload& values, const Payload& from) override;
  Payload Encode(const Payload& values, const Payload& from, uint64_t version) override;
  void Settle(Outcome outcome) override;
  Payload Decode(Work::Form form, const Payload& sent, const Payload& last) override;
  void ExpectState(const Payload& state) const override { crema::ExpectState(layout_, state); }
  Payload Offer(const Payload& values, bool with_history) override;
  const ExchangeMath* exchange() const override;
  Payload Conclude(const ExchangePlan& plan, const Payload& exchanged, bool with_history, const Payload& from) override;

  // What the coordinator sends has at most so many bytes.
  uint64_t most_state_bytes() const;

 private:
  Payload DifferenceTo(const Payload& values, const Payload& from) const;

  const DistributedParameter settings_;
  PeerAveraging peers_;
  const StateLayout& layout_;  // of peers_
  const uint64_t fixed_bytes_;
  const std::function<void(Payload)> on_fixed_;
  std::optional<StateEncoder> up_;
  std::optional<StateDecoder> down_;
  bool has_fixed_ = false;
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_AVERAGING_AVERAGING_H_
