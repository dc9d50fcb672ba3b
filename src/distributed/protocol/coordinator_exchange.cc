// Rounds whose values stay among the workers: this says who takes part, and commits what they all have in the end.
#include <algorithm>
#include <utility>

#include "base/listed.h"
#include "base/printable.h"
#include "distributed/protocol/coordinator.h"

namespace crema {

bool Coordinator::MayExchange() {
  if (options_.topology == DistributedParameter::STAR || detour_.Includes(version_)) return false;
  for (const auto& [id, member] : members_) {
    if (!member.ready || !member.address.endpoint().empty()) continue;
    if (!std::exchange(warned_addresses_, true)) {
      Tell(ClusterEvent::Kind::kWarning, "worker " + member.name +
                                             " has no address for other workers: all values go through the "
                                             "coordinator, as with topology STAR");
    }
    return false;
  }
  return true;
}

void Coordinator::BeginExchange(const std::vector<Contribution>& contributions, uint64_t failures, Milliseconds now) {
  ExchangeUnderWay exchange;
  exchange.attempt = ++last_attempt_;
  exchange.failures = failures;
  exchange.progressed = now;
  exchange.with_history = round_.with_history;
  for (const Contribution& c : contributions) {
    exchange.members.push_back(c.member);
    exchange.with_history &= c.push.with_history();
  }
  exchange_ = std::move(exchange);
  for (const uint64_t id : exchange_->members) {
    members_.at(id).account.OnExchange(now);
    SendWork(members_.at(id));
  }
}

// What a worker is to know about a round among workers.
void Coordinator::Offer(Member& member, Work& work) {
  work.set_keep_values(true);
  // Whoever is late may be part of a round that has histories.
  work.set_with_history(options_.history_always || options_.history_every > 0);
  if (!exchange_) return;
  const std::vector<uint64_t>& members = exchange_->members;
  const auto place = std::find(members.begin(), members.end(), member.id);
  if (place == members.end()) return;
  work.set_with_history(exchange_->with_history);
  ExchangeOrder& order = *work.mutable_exchange();
  order.set_attempt(exchange_->attempt);
  if (member.attempt == exchange_->attempt) return;
  order.set_rank(static_cast<uint32_t>(place - members.begin()));
  for (const uint64_t id : members) {
    const Member& other = members_.at(id);
    ExchangeOrder::Peer& peer = *order.add_peer();
    peer.set_member(id);
    *peer.mutable_address() = other.address;
    peer.set_examples(other.push->examples());
  }
}

void Coordinator::OnExchanged(Member& member, const Heartbeat& heartbeat, Milliseconds now) {
  const std::vector<uint64_t>& members = exchange_->members;
  if (heartbeat.attempt() != exchange_->attempt ||
      std::find(members.begin(), members.end(), member.id) == members.end()) {
    return;
  }
  uint64_t& bytes = exchange_->bytes[member.id];
  if (heartbeat.exchanged_bytes() > bytes) {
    bytes = heartbeat.exchanged_bytes();
    exchange_->progressed = now;
  }
  if (!heartbeat.exchange_failure().empty() && !exchange_->failed) {
    exchange_->failed = changed_ = true;
    Tell(ClusterEvent::Kind::kWarning, "worker " + member.name + ": " + OneLine(heartbeat.exchange_failure()));
  }
  if (heartbeat.has_exchanged_digest() && exchange_->digests.emplace(member.id, heartbeat.exchanged_digest()).second) {
    exchange_->progressed = now;
    member.account.OnDelivered(now);
    changed_ = true;
  }
}

// Whether somebody's values are not all there yet.
bool Coordinator::IsMaking() const {
  return std::any_of(exchange_->members.begin(), exchange_->members.end(),
                     [this](uint64_t id) { return members_.at(id).has_promised(); });
}

// Nothing comes of it when one of those who take part is out.
void Coordinator::LeaveExchange(const Member& member) {
  if (!exchange_ || std::count(exchange_->members.begin(), exchange_->members.end(), member.id) == 0) return;
  exchange_.reset();
  changed_ = true;
}

void Coordinator::TendExchange(Milliseconds now) {
  const ExchangeUnderWay& exchange = *exchange_;
  const bool making = IsMaking();
  // Who died is found out before that.
  const bool stuck = !making && now - exchange.progressed >= options_.dead + 2 * options_.heartbeat;
  if (exchange.digests.size() == exchange.members.size() && !making) {
    const uint64_t digest = exchange.digests.begin()->second;
    const bool agree = std::all_of(exchange.digests.begin(), exchange.digests.end(),
                                   [&](const auto& other) { return other.second == digest; });
    if (agree) return CommitExchange(now);
    Tell(ClusterEvent::Kind::kWarning, "workers came to different parameters from the same values");
    GiveUpExchange(now);
  } else if (exchange.failed || stuck) {
    GiveUpExchange(now);
  }
}

void Coordinator::GiveUpExchange(Milliseconds now) {
  std::vector<std::string> without;
  for (const uint64_t id : exchange_->members) {
    if (exchange_->digests.count(id) == 0) without.push_back(members_.at(id).name);
  }
  exchange_.reset();
  changed_ = true;
  const uint64_t detour = detour_.OnFailure(version_);
  if (detour == 0) return;
  Tell(ClusterEvent::Kind::kWarning,
       "workers could not exchange their values (" +
           (without.empty() ? "they disagree" : Listed(without) + " lack some") + "): the next " +
           std::to_string(detour) + " rounds go through the coordinator. Can all workers reach each other's ports?");
  round_.among_workers = false;
  for (auto& [id, member] : members_) {
    if (member.offered || member.has_promised()) member.ForgetPush();
    if (member.ready) SendWork(member);
  }
  if (!state_) Want(now);
}

void Coordinator::CommitExchange(Milliseconds now) {
  std::vector<Contribution> contributions;
  for (const uint64_t id : exchange_->members) {
    const Member& member = members_.at(id);
    contributions.push_back({id, member.slot, StepsOf(member.lease->steps()), *member.push, nullptr});
  }
  round_.with_history = exchange_->with_history;
  if (!Record(contributions, exchange_->digests.begin()->second, now)) return;
  failures_in_a_row_ = exchange_->failures;
  detour_.OnSuccess();
  exchange_.reset();
  state_ = difference_ = nullptr;
  Follow(contributions, now);
}

}  // namespace crema
