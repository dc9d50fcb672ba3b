// What the ways to exchange values have in common.
#ifndef CREMA_DISTRIBUTED_EXCHANGE_EXCHANGE_IMPL_H_
#define CREMA_DISTRIBUTED_EXCHANGE_EXCHANGE_IMPL_H_

#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "distributed/exchange/exchange.h"

namespace crema {

class ExchangeBase : public Exchange {
 public:
  std::vector<Message> TakeMessages() final { return std::exchange(messages_, {}); }
  void OnMessage(int from, uint32_t stage, Payload payload) final;
  bool Expects(int from, uint32_t stage) const final;
  bool ExpectsAny(int from) const final;
  Payload result() const final { return result_; }
  bool failed() const final { return failed_; }

 protected:
  // Values of so many bytes, cut into so many pieces. A reference, so that the plan is whole while the other arguments
  // are computed of it, in whatever order.
  ExchangeBase(ExchangePlan&& plan, const ExchangeMath& math, uint64_t bytes, int pieces);

  // Whether another worker sends something in this stage, one of stages().
  virtual bool Comes(int from, uint32_t stage) const = 0;
  // False for those who send nothing in any stage: where there are as many stages as workers, all of these would
  // otherwise be asked for all of those.
  virtual bool Sends(int /*from*/) const { return true; }
  // A message that is to come, for the first time.
  virtual void Take(int from, uint32_t stage, Payload payload) = 0;

  int rank() const { return plan_.rank; }
  int size() const { return plan_.size(); }
  int pieces() const { return static_cast<int>(cuts_.size()) - 1; }
  // Bytes of the pieces [first, last).
  uint64_t BytesOf(int first, int last) const {
    return cuts_[static_cast<size_t>(last)] - cuts_[static_cast<size_t>(first)];
  }
  uint64_t BytesOf(int piece) const { return BytesOf(piece, piece + 1); }
  // Pieces that are not empty.
  int Filled() const;
  std::vector<Payload> CutUp(const Payload& whole) const;
  // This worker's term of the sum; null, and it failed, where there is none.
  Payload Term(const Payload& values);

  void Send(int to, uint32_t stage, Payload payload);
  void Fail() { failed_ = true; }
  void End(Payload result);
  // Ends with what comes of the sum.
  void Finish(std::span<const Payload> sum) { End(math_.Finish(plan_, sum)); }
  bool over() const { return failed_ || result_; }

  const ExchangePlan plan_;
  const ExchangeMath& math_;
  const std::vector<uint64_t> cuts_;

 private:
  std::set<std::pair<int, uint32_t>> came_;
  std::vector<Message> messages_;
  Payload result_;
  bool failed_ = false;
};

// Bytes [begin, end); no copy where these are all.
Payload Part(const Payload& whole, uint64_t begin, uint64_t end);
// One behind the other; no copy of a single one.
Payload Concatenate(std::span<const Payload> parts);

std::unique_ptr<Exchange> MakeShardedExchange(ExchangePlan plan, Payload values, const ExchangeMath& math,
                                              uint64_t there_from);
std::unique_ptr<Exchange> MakeRingExchange(ExchangePlan plan, const Payload& values, const ExchangeMath& math);
std::unique_ptr<Exchange> MakeTreeExchange(ExchangePlan plan, const Payload& values, const ExchangeMath& math);
std::unique_ptr<Exchange> MakeHalvingExchange(ExchangePlan plan, const Payload& values, const ExchangeMath& math);

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_EXCHANGE_EXCHANGE_IMPL_H_
