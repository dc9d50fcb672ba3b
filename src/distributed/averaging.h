// What a round makes of the workers' values: one formula for iterative reduce, block momentum and DiLoCo, and the mean
// of gradients.
#ifndef CREMA_DISTRIBUTED_AVERAGING_H_
#define CREMA_DISTRIBUTED_AVERAGING_H_

#include <functional>
#include <span>
#include <vector>

#include "crema/distributed.pb.h"
#include "distributed/coordinator.h"
#include "distributed/state_layout.h"
#include "distributed/worker.h"

namespace crema {

// Floats of a payload whose size is a multiple of theirs.
std::span<const float> FloatsOf(const Payload& payload);

// Sums are taken in the order of the contributions, in double precision: the same contributions give the same bits,
// whatever the number of threads.
class Averaging : public RoundMath {
 public:
  // With the outer momentum V, one number for each trained value; empty: zeros. `state` has the history where
  // settings.history() is MEAN, and may have it else.
  Averaging(const DistributedParameter& settings, StateLayout layout, Payload state, std::vector<float> velocity);

  std::string Check(const Contribution& contribution) override;
  Payload Reduce(const Round& round, const std::vector<Contribution>& contributions) override;
  void Accept() override;
  void Restore(const Payload& state) override;

  const std::vector<float>& velocity() const { return velocity_; }

 protected:
  // The weighted mean of [begin, end) of those contributions that reach so far, written to `out`.
  void Mean(const std::vector<Contribution>& contributions, int64_t begin, int64_t end, float* out) const;
  // Statistics of BatchNorm layers, as settings say; `out` points to all values.
  void PoolStatistics(const std::vector<Contribution>& contributions, float* out) const;
  double WeightOf(const Contribution& contribution) const;

  const DistributedParameter settings_;
  const StateLayout layout_;
  Payload state_, next_state_;

 private:
  void OuterUpdate(int workers, float* values);

  std::vector<float> velocity_, next_velocity_;
};

// DistributedParameter.GRADIENT: contributions hold gradients in the place of trained values.
class GradientMean : public Averaging {
 public:
  // Changes trained values (the first argument, in and out) by a mean gradient, in iteration `iteration`; and puts back
  // what else it changed in the call before.
  struct Update {
    std::function<void(uint64_t iteration, const float* gradient, float* values)> apply;
    std::function<void()> undo;
  };

  GradientMean(const DistributedParameter& settings, StateLayout layout, Payload state, Update update);

  Payload Reduce(const Round& round, const std::vector<Contribution>& contributions) override;
  void Accept() override;

 private:
  Update update_;
  bool pending_ = false;
};

// Moves what a worker learned from one version of the parameters to another one.
class LocalMoves : public WorkerMath {
 public:
  LocalMoves(DistributedParameter::Mode mode, StateLayout layout) : mode_(mode), layout_(std::move(layout)) {}
  Payload Rebase(const Payload& values, bool with_history, const Payload& from, const Payload& to) override;

 private:
  const DistributedParameter::Mode mode_;
  const StateLayout layout_;
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_AVERAGING_H_
