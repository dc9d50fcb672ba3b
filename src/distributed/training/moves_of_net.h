// What a worker computes of values, once its net, and with it their layout, is known.
#ifndef CREMA_DISTRIBUTED_TRAINING_MOVES_OF_NET_H_
#define CREMA_DISTRIBUTED_TRAINING_MOVES_OF_NET_H_

#include <memory>
#include <utility>

#include "distributed/averaging/averaging.h"

namespace crema {

// Until the net is known there is nothing to move.
class MovesOfNet : public WorkerMath {
 public:
  void Set(std::unique_ptr<LocalMoves> moves) { moves_ = std::move(moves); }
  Payload Rebase(const Payload& values, bool with_history, const Payload& from, const Payload& to) override {
    return moves_->Rebase(values, with_history, from, to);
  }
  Payload Own(const Payload& values, const Payload& from) override { return moves_->Own(values, from); }
  Payload Encode(const Payload& values, const Payload& from, uint64_t version) override {
    return moves_->Encode(values, from, version);
  }
  void Settle(Outcome outcome) override { moves_->Settle(outcome); }
  Payload Decode(Work::Form form, const Payload& sent, const Payload& last) override {
    return moves_->Decode(form, sent, last);
  }
  void ExpectState(const Payload& state) const override { moves_->ExpectState(state); }
  Payload Offer(const Payload& values, bool with_history) override { return moves_->Offer(values, with_history); }
  const ExchangeMath* exchange() const override { return moves_->exchange(); }
  Payload Conclude(const ExchangePlan& plan, const Payload& exchanged, bool with_history,
                   const Payload& from) override {
    return moves_->Conclude(plan, exchanged, with_history, from);
  }

 private:
  std::unique_ptr<LocalMoves> moves_;
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_TRAINING_MOVES_OF_NET_H_
