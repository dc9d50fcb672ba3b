// What the coordinator tells people about its workers.
#include <algorithm>
#include <utility>

#include "base/printable.h"
#include "distributed/protocol/coordinator.h"

namespace crema {

namespace {

constexpr size_t kRoundsOfRate = 61;

double SecondsOf(Milliseconds time) { return static_cast<double>(time) / 1000; }

}  // namespace

// Before a commit takes leases and pushes away.
std::vector<WorkerInRound> Coordinator::AccountRound(const std::vector<Contribution>& contributions, Milliseconds now) {
  accounts_.contributions = static_cast<int>(contributions.size());
  accounts_.among_workers = round_.among_workers;
  if (accounts_.committed.size() == kRoundsOfRate) accounts_.committed.erase(accounts_.committed.begin());
  accounts_.committed.push_back(now);
  std::vector<WorkerInRound> all;
  for (Member* member : BySlot()) {
    const uint64_t sent = member->receiver.bytes_received() + member->peer_bytes_sent;
    const uint64_t received = member->sender.bytes_sent() + member->peer_bytes_received;
    const auto part = std::find_if(contributions.begin(), contributions.end(),
                                   [member](const Contribution& c) { return c.member == member->id; });
    if (part != contributions.end()) {
      all.push_back(member->account.Commit(part->push.examples(), Staleness(*member), member->ahead.has_value(), sent,
                                           received, now));
      if (options_.tournament) {
        AccountMeeting(contributions, static_cast<size_t>(part - contributions.begin()), &all.back());
      }
    } else if (member->lease && !options_.stale) {
      all.push_back(member->account.Miss(!member->failed, sent, received));
      all.back().staleness = Staleness(*member) + !member->failed;
    } else {
      continue;
    }
    all.back().member = member->id;
    all.back().place = member->slot;
    all.back().name = member->name;
  }
  return all;
}

// Rounds that were committed since the parameters that its work is made from.
uint64_t Coordinator::Staleness(const Member& member) const {
  if (!member.push || !member.push->has_trained_from()) return member.late;
  return version_ - std::min(version_, member.push->trained_from());
}

ClusterSummary::Worker Coordinator::SummaryOf(const Member& member, Milliseconds now) const {
  ClusterSummary::Worker worker;
  worker.place = member.slot;
  worker.name = member.name;
  worker.examples = member.account.examples();
  worker.rounds = member.account.rounds();
  worker.rounds_late = member.account.rounds_late();
  worker.seconds = SecondsOf(now - member.joined);
  worker.trained = member.account.trained();
  worker.waited = member.account.waited();
  worker.communicated = member.account.communicated();
  worker.bytes_sent = member.receiver.bytes_received() + member.peer_bytes_sent;
  worker.bytes_received = member.sender.bytes_sent() + member.peer_bytes_received;
  worker.score = member.account.score();
  worker.rounds_met = member.account.rounds_met();
  worker.rounds_won = member.account.rounds_won();
  if (const auto before = accounts_.gone.find(member.process); before != accounts_.gone.end()) {
    const ClusterSummary::Worker& was = before->second;
    worker.examples += was.examples;
    worker.rounds += was.rounds;
    worker.rounds_late += was.rounds_late;
    worker.seconds += was.seconds;
    worker.trained += was.trained;
    worker.waited += was.waited;
    worker.communicated += was.communicated;
    worker.bytes_sent += was.bytes_sent;
    worker.bytes_received += was.bytes_received;
    if (!worker.score) worker.score = was.score;
    worker.rounds_met += was.rounds_met;
    worker.rounds_won += was.rounds_won;
  }
  return worker;
}

void Coordinator::AccountForGone(const Member& member, Milliseconds now) {
  ClusterSummary::Worker worker = SummaryOf(member, now);
  worker.left = phase_ != Phase::kEnding;
  accounts_.gone.insert_or_assign(member.process, std::move(worker));
}

ClusterSummary Coordinator::Summary(Milliseconds now) const {
  ClusterSummary summary;
  std::map<uint64_t, ClusterSummary::Worker> all = accounts_.gone;
  for (const auto& [id, member] : members_) {
    if (member.ready) all.insert_or_assign(member.process, SummaryOf(member, now));
  }
  for (auto& [process, worker] : all) summary.workers.push_back(std::move(worker));
  std::stable_sort(summary.workers.begin(), summary.workers.end(),
                   [](const auto& a, const auto& b) { return a.place < b.place; });
  return summary;
}

ClusterStatus Coordinator::Status(Milliseconds now) const {
  ClusterStatus status;
  status.set_job(options_.job);
  status.set_epoch(epoch_);
  status.set_generation(generation_);
  status.set_version(version_);
  status.set_iteration(iteration_);
  status.set_max_iter(options_.max_iter);
  status.set_loss(loss_);
  status.set_dropped_messages(dropped_);
  status.set_phase(!unwritten_.empty()            ? "waiting for room (" + OneLine(unwritten_) + ")"
                   : phase_ == Phase::kRecovering ? "recovering"
                   : phase_ == Phase::kEnding     ? "ending"
                   : draining_                    ? "draining"
                   : waiting_since_               ? "waiting for workers"
                                                  : "training");
  status.set_topology(DistributedParameter::Topology_Name(options_.topology));
  status.set_among_workers(accounts_.among_workers);
  status.set_contributions(static_cast<uint32_t>(accounts_.contributions));
  if (accounts_.committed.size() > 1 && accounts_.committed.back() > accounts_.committed.front()) {
    const double minutes = SecondsOf(accounts_.committed.back() - accounts_.committed.front()) / 60;
    status.set_rounds_per_minute(static_cast<double>(accounts_.committed.size() - 1) / minutes);
  }
  for (const auto& [id, member] : members_) {
    ClusterStatus::Worker& worker = *status.add_worker();
    worker.set_member(id);
    worker.set_slot(member.slot);
    worker.set_name(member.name);
    worker.set_state(!member.ready                                   ? "joining"
                     : member.late > 0                               ? "late"
                     : exchange_ && member.offered                   ? "averaging"
                     : member.lease && !member.has_result() && open_ ? "training"
                                                                     : "waiting");
    const WorkerAccount& account = member.account;
    worker.set_examples(account.examples());
    const double seconds = SecondsOf(now - member.joined);
    if (seconds > 0) worker.set_examples_per_second(static_cast<double>(account.examples()) / seconds);
    worker.set_waited(account.waited());
    worker.set_communicated(account.communicated());
    worker.set_trained(account.trained());
    worker.set_present(seconds);
    worker.set_bytes_sent(member.receiver.bytes_received() + member.peer_bytes_sent);
    worker.set_bytes_received(member.sender.bytes_sent() + member.peer_bytes_received);
    worker.set_silent(SecondsOf(now - member.heard));
    worker.set_rounds(account.rounds());
    worker.set_rounds_late(account.rounds_late());
    if (account.score()) worker.set_score(*account.score());
    if (options_.tournament) {
      worker.set_rounds_met(account.rounds_met());
      worker.set_rounds_won(account.rounds_won());
    }
    if (member.lease) worker.set_staleness(Staleness(member));
    if (member.lease && open_) worker.set_round(version_ + 1);
  }
  return status;
}

}  // namespace crema
