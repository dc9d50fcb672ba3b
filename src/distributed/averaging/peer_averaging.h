// What workers make of each other's values where these do not pass through a coordinator.
#ifndef CREMA_DISTRIBUTED_AVERAGING_PEER_AVERAGING_H_
#define CREMA_DISTRIBUTED_AVERAGING_PEER_AVERAGING_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "distributed/averaging/round_formula.h"
#include "distributed/codecs/peer_coding.h"
#include "distributed/exchange/exchange.h"

namespace crema {

// The mean of everybody's values, and with SHARDED the bits that the coordinator's Averaging has before its outer
// update. A sum's term is a value times its worker's share of the weights, rounded to a float; of N workers the mean is
// then off by at most N + 1 roundings of the mean of magnitudes, and a pooled variance by 4 N + 2 of variance + mean^2.
// With codecs (SHARDED) what goes to whoever takes the mean of a piece is coded, and so is the mean that comes back:
// all take what the codes say, also the one who made them. Remembers what codes leave out; not thread-safe.
class PeerAveraging : public ExchangeMath {
 public:
  // `update`: where the values are gradients.
  PeerAveraging(const DistributedParameter& settings, StateLayout layout, GradientUpdate update = {});

  const StateLayout& layout() const { return formula_.layout(); }

  // Whether the last exchange's result became part of the parameters.
  void Settle(bool committed);
  // What codes left out is not sent any more.
  void Forget();

  // What of a worker's values is exchanged: without a history where the round has none. Null where a value is not
  // finite, or the history is missing.
  Payload Offer(const Payload& values, bool with_history) const;
  // The state that follows `from` when this is the mean; null where a length is wrong, a number not finite, or the
  // update throws EnvironmentError.
  Payload Conclude(const ExchangePlan& plan, const Payload& mean, bool with_history, const Payload& from) const;

  // Multiples of 64 bytes, or, with codecs, of what is coded as one. A cut that would divide the statistics comes
  // before them instead.
  std::vector<uint64_t> Cuts(uint64_t bytes, int pieces) const override;
  uint64_t most_piece_bytes() const override;
  // With overlap: BACKWARD some eight, of 64 KiB at least and 4 MiB at most; else one.
  int Buckets(uint64_t bytes) const override;
  void Begin(const ExchangePlan& plan) const override;
  Payload Piece(const ExchangePlan& plan, const Payload& values, uint64_t begin, uint64_t end) const override;
  Payload Combine(const ExchangePlan& plan, uint64_t begin, uint64_t end,
                  std::span<const Payload> pieces) const override;
  Payload Gather(const ExchangePlan& plan, std::span<const uint64_t> cuts,
                 std::span<const Payload> combined) const override;
  Payload Term(const ExchangePlan& plan, const Payload& values) const override;
  Payload Add(const Payload& a, const Payload& b) const override;
  Payload Finish(const ExchangePlan& plan, std::span<const Payload> sum) const override;

 private:
  bool AreValues(uint64_t bytes) const { return bytes == layout().bytes(false) || bytes == layout().bytes(true); }
  // By rank; empty where there is no mean.
  std::vector<double> WeightsOf(const ExchangePlan& plan) const;

  // Trained values, and what the step of a round remembers, behind those of a state.
  void Step(const ExchangePlan& plan, const float* from, const float* mean, float* next) const;

  // Arithmetic of Combine, of pieces as they are.
  Payload MeanOf(const ExchangePlan& plan, uint64_t begin, uint64_t end, std::span<const Payload> pieces) const;
  // What workers' means lie close to, which all of them have; null without a state.
  const float* StatisticsIn(const Payload& state) const;
  // The trained values that codes are differences to; empty for zeros.
  std::span<const float> AnchorOf(const ExchangePlan& plan) const;
  bool Exactly(const ExchangePlan& plan) const { return plan.version < warmup_rounds_; }

  const RoundFormula formula_;
  const GradientUpdate update_;
  const bool codes_differences_, in_buckets_;
  const uint64_t warmup_rounds_;
  const std::unique_ptr<PeerCoding> coding_;  // null: there are no codecs
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_AVERAGING_PEER_AVERAGING_H_
