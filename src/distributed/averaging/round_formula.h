// The arithmetic of a round, the same wherever its values are averaged: at the coordinator, or among workers.
#ifndef CREMA_DISTRIBUTED_AVERAGING_ROUND_FORMULA_H_
#define CREMA_DISTRIBUTED_AVERAGING_ROUND_FORMULA_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "crema/distributed.pb.h"
#include "distributed/protocol/payload.h"
#include "distributed/training/state_layout.h"

namespace crema {

// Floats of a payload whose size is a multiple of theirs.
std::span<const float> FloatsOf(const Payload& payload);
float* FloatsOf(Bytes& bytes);
// To be written in full: its memory holds what was there before.
std::shared_ptr<Bytes> NewPayload(uint64_t bytes);
bool AllFinite(std::span<const float> values);

// The outer momentum in a state of a layout that has it.
std::span<const float> VelocityIn(const StateLayout& layout, const Payload& state);

// Whether the settings have an outer momentum V.
bool HasOuterMomentum(const DistributedParameter& settings);
// StateLayout.velocity, for so many trained values: workers that average among themselves have to know V.
int64_t VelocityInStates(const DistributedParameter& settings, int64_t trained);

// A solver's update at the end of an iteration, by the mean of the workers' gradients: changes trained values and,
// where it is not null, what the solver remembers, one as the other as TrainingSteps reads them. Throws
// EnvironmentError where it cannot.
using GradientUpdate = std::function<void(uint64_t iteration, const float* gradient, float* values, float* history)>;

// DistributedParameter.elastic_rate, or what stands in its place.
double ElasticRate(const DistributedParameter& settings);

// What one worker brings to a mean.
struct WeighedValues {
  const float* values = nullptr;
  double weight = 0;  // above 0
};

// The mean of `count` values, summed in double precision in the order of `terms`: of one term its bits. `out` is none
// of the terms. False where a value is not finite.
bool WeighedMean(std::span<const WeighedValues> terms, int64_t count, float* out);

// values * factor, and a + b, in floats. False where a result is not finite.
bool ScaleValues(const float* values, double factor, int64_t count, float* out);
bool AddValues(const float* a, const float* b, int64_t count, float* out);

// Has no state, and is thread-safe. Results do not depend on the number of threads.
class RoundFormula {
 public:
  RoundFormula(const DistributedParameter& settings, StateLayout layout);

  const StateLayout& layout() const { return layout_; }
  double WeightOf(uint64_t examples) const;

  // `terms` and `out` point to statistics of BatchNorm, in the order of slots. False where a number is not finite.
  bool PoolStatistics(std::span<const WeighedValues> terms, float* out) const;

  // Statistics as terms of a sum of floats: the worker's share of mean and mean square about the means of `center`,
  // which are close, in place of mean and variance; or nothing but those of the worker in the lowest place. `center`:
  // statistics that all have, or null for zeros.
  void StatisticsToTerm(const float* statistics, const float* center, double share, bool first, float* out) const;
  // What a sum of such terms says, in place.
  void TermsToStatistics(const float* center, float* statistics) const;

  // The trained values that follow `anchor` when this is the mean (which may be `out`) of what so many workers made of
  // it, and the outer momentum that follows `velocity`; both null where the settings have none.
  void OuterUpdate(int workers, const float* anchor, const float* mean, const float* velocity, float* out,
                   float* next_velocity) const;

  // STALE: the trained values that follow `anchor` when these differences are added, each by its weight times outer_lr.
  void AddDifferences(const float* anchor, std::span<const WeighedValues> differences, float* out) const;

 private:
  const DistributedParameter settings_;
  const StateLayout layout_;
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_AVERAGING_ROUND_FORMULA_H_
