#include "distributed/exchange/exchange.h"

#include <algorithm>

#include "base/check.h"
#include "distributed/exchange/exchange_impl.h"

namespace crema {

Payload Part(const Payload& whole, uint64_t begin, uint64_t end) {
  CREMA_CHECK(begin <= end && end <= whole->size());
  if (begin == 0 && end == whole->size()) return whole;
  return std::make_shared<Bytes>(whole->begin() + static_cast<std::ptrdiff_t>(begin),
                                 whole->begin() + static_cast<std::ptrdiff_t>(end));
}

Payload Concatenate(std::span<const Payload> parts) {
  if (parts.size() == 1) return parts[0];
  size_t bytes = 0;
  for (const Payload& part : parts) bytes += part->size();
  const auto all = std::make_shared<Bytes>();
  all->reserve(bytes);
  for (const Payload& part : parts) all->insert(all->end(), part->begin(), part->end());
  return all;
}

Payload ExchangeMath::Piece(const ExchangePlan&, const Payload& values, uint64_t begin, uint64_t end) const {
  return Part(values, begin, end);
}

Payload ExchangeMath::Gather(const ExchangePlan&, std::span<const uint64_t>, std::span<const Payload> combined) const {
  std::vector<Payload> filled;
  for (const Payload& piece : combined) {
    if (piece) filled.push_back(piece);
  }
  return Concatenate(filled);
}

ExchangeBase::ExchangeBase(ExchangePlan&& plan, const ExchangeMath& math, uint64_t bytes, int pieces)
    : plan_(std::move(plan)), math_(math), cuts_(math.Cuts(bytes, pieces)) {
  CREMA_CHECK(cuts_.size() == static_cast<size_t>(pieces) + 1 && cuts_.front() == 0 && cuts_.back() == bytes &&
              std::is_sorted(cuts_.begin(), cuts_.end()));
}

void ExchangeBase::OnMessage(int from, uint32_t stage, Payload payload) {
  CREMA_CHECK(payload);
  if (over() || !Expects(from, stage)) return;
  if (came_.emplace(from, stage).second) Take(from, stage, std::move(payload));
}

bool ExchangeBase::Expects(int from, uint32_t stage) const {
  return 0 <= from && from < size() && from != rank() && stage < stages() && Comes(from, stage);
}

bool ExchangeBase::ExpectsAny(int from) const {
  if (!Sends(from)) return false;
  for (uint32_t stage = 0; stage < stages(); ++stage) {
    if (Expects(from, stage)) return true;
  }
  return false;
}

int ExchangeBase::Filled() const {
  int filled = 0;
  for (int piece = 0; piece < pieces(); ++piece) filled += BytesOf(piece) > 0;
  return filled;
}

std::vector<Payload> ExchangeBase::CutUp(const Payload& whole) const {
  std::vector<Payload> parts;
  for (size_t i = 0; i + 1 < cuts_.size(); ++i) parts.push_back(Part(whole, cuts_[i], cuts_[i + 1]));
  return parts;
}

Payload ExchangeBase::Term(const Payload& values) {
  Payload term = math_.Term(plan_, values);
  CREMA_CHECK(!term || term->size() == values->size());
  if (!term) Fail();
  return term;
}

void ExchangeBase::Send(int to, uint32_t stage, Payload payload) {
  CREMA_CHECK(payload && stage < stages());
  messages_.push_back({to, stage, std::move(payload)});
}

void ExchangeBase::End(Payload result) {
  failed_ = !result;
  result_ = std::move(result);
}

std::unique_ptr<Exchange> MakeExchange(ExchangePlan plan, Payload values, const ExchangeMath& math,
                                       uint64_t there_from) {
  CREMA_CHECK(values && 0 <= plan.rank && plan.rank < plan.size());
  CREMA_CHECK(there_from == 0 || plan.topology == DistributedParameter::SHARDED);
  switch (plan.topology) {
    case DistributedParameter::SHARDED:
      return MakeShardedExchange(std::move(plan), std::move(values), math, there_from);
    case DistributedParameter::RING:
      return MakeRingExchange(std::move(plan), values, math);
    case DistributedParameter::TREE:
      return MakeTreeExchange(std::move(plan), values, math);
    case DistributedParameter::HALVING:
      return MakeHalvingExchange(std::move(plan), values, math);
    case DistributedParameter::STAR:
      break;
  }
  CREMA_CHECK(false) << "workers exchange nothing among themselves";
  return nullptr;
}

}  // namespace crema
