// The coordinator's side of the protocol as a state machine: messages and the time go in, messages come out. It knows
// neither sockets nor clocks nor nets, so that the same code runs over ZeroMQ and in a simulator.
#ifndef CREMA_DISTRIBUTED_PROTOCOL_COORDINATOR_H_
#define CREMA_DISTRIBUTED_PROTOCOL_COORDINATOR_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "crema/distributed.pb.h"
#include "crema/observer.h"
#include "distributed/averaging/round_math.h"
#include "distributed/protocol/cluster_event.h"
#include "distributed/protocol/coordinator_options.h"
#include "distributed/protocol/exchange_detour.h"
#include "distributed/protocol/journal.h"
#include "distributed/protocol/ledger.h"
#include "distributed/protocol/outgoing.h"
#include "distributed/protocol/tournament.h"
#include "distributed/protocol/transfer.h"
#include "distributed/protocol/worker_account.h"
#include "distributed/protocol/worker_places.h"

namespace crema {

class Coordinator {
 public:
  enum class Phase { kRecovering, kWaiting, kTraining, kEnding };
  // Why training cannot go on. kEnvironment: what workers need was missing, and may be there another time. kMistake: in
  // a file or a record, which somebody has to mend. kDiverged: numbers that are not finite, so that what was learnt is
  // of no use.
  enum class Failure { kEnvironment, kMistake, kDiverged };

  // `math` and `journal` must outlive it. The start is written to the journal: throws EnvironmentError where it cannot.
  Coordinator(CoordinatorOptions options, CoordinatorStart start, RoundMath& math, Journal& journal, Milliseconds now);

  // A message that came by `route`, with the bytes behind it.
  void OnMessage(const std::string& route, const ClusterMessage& message, std::span<const std::byte> bytes,
                 Milliseconds now);
  // To be called at deadline(), and may be at any time.
  void OnTick(Milliseconds now);
  Milliseconds deadline() const { return next_tick_; }

  // What is to be sent, and what happened, since the last call.
  std::vector<Outgoing> TakeOutgoing() { return std::exchange(outgoing_, {}); }
  std::vector<ClusterEvent> TakeEvents() { return std::exchange(events_, {}); }

  // No round is opened while held.
  void Hold() { held_ = true; }
  void Release(Milliseconds now);
  // The same, for those who cannot keep up with rounds.
  void HoldBack(bool behind) {
    changed_ |= behind_ && !behind;
    behind_ = behind;
  }
  // Hold after the next round that has histories, or, where there are none to push, after the next one.
  void HoldAfterHistory() { want_history_ = hold_after_history_ = true; }
  // Ends after the open round, or now; `reason` is for the workers.
  void Drain(const std::string& reason, Milliseconds now);
  void Stop(const std::string& reason, Milliseconds now);
  // At the end: its program has no room for what is to be written, for this reason, and waits; empty: no longer.
  void WaitForRoom(const std::string& failure) {
    unwritten_ = failure;
    end_without_room_ &= !failure.empty();
  }
  // Whether somebody asked since the last call to end without it.
  bool TakeEndWithoutRoom() { return std::exchange(end_without_room_, false); }
  // Ends now, as training cannot go on.
  void Fail(const std::string& why, Milliseconds now, Failure kind = Failure::kEnvironment);
  // A worker of this name whose routes begin so is no more, as is known from elsewhere: it is not waited for.
  void Lose(const std::string& name, const std::string& route, Milliseconds now);

  Phase phase() const { return phase_; }
  // All iterations are done.
  bool completed() const { return iteration_ >= options_.max_iter; }
  // Ending, and every worker, those of a coordinator that died included, knows, or had CoordinatorOptions.dead to hear.
  bool ended() const {
    return phase_ == Phase::kEnding && ((members_.empty() && incarnations_.size() >= awaited_) || linger_over_);
  }
  // Why training could not go on; empty while it can.
  const std::string& failure() const { return failure_; }
  Failure failure_kind() const { return failure_kind_; }
  // Whether it would go on as little if it were started again.
  bool hopeless() const { return failure_kind_ != Failure::kEnvironment; }
  uint64_t version() const { return version_; }
  uint64_t iteration() const { return iteration_; }
  uint64_t carried() const { return carried_; }
  uint64_t digest() const { return digest_; }
  // Null while only workers have it: never after the end.
  const Payload& state() const { return state_; }
  const Ledger& ledger() const { return ledger_; }
  uint64_t epoch() const { return epoch_; }
  uint64_t dropped() const { return dropped_; }
  // Messages that could not be read, so that nobody has handed them over.
  void OnUnreadable(uint64_t messages) { dropped_ += messages; }
  ClusterStatus Status(Milliseconds now) const;
  // Of all who were ever ready in this epoch, in the order of places; a process that joined several times counts once.
  ClusterSummary Summary(Milliseconds now) const;

 private:
  // Between attempts to write to a full disk.
  static constexpr Milliseconds kJournalRetry = 2000;
  // Rounds, or with CoordinatorOptions.stale leases of one worker, whose results cannot be used, until training fails.
  static constexpr uint64_t kMostFailuresInARow = 5;

  struct Member {
    explicit Member(const TransferOptions& transfer, uint64_t most) : sender(transfer), receiver(most) {}

    uint64_t id = 0, process = 0, incarnation = 0;
    std::string name, route, bulk_route;
    uint32_t slot = 0;
    bool ready = false;
    std::optional<uint64_t> version;  // of the parameters that it said it has, where those count
    uint64_t says_version = 0;        // wherever they count, with its last word
    // What else it said while this coordinator recovered: work on these steps, and the place that it had.
    std::optional<Lease> brought;
    std::optional<uint32_t> had_slot;
    uint64_t sequence = 0, bulk_sequence = 0;
    Milliseconds joined = 0, heard = 0, progressed = 0;
    uint64_t steps_in_all = 0;
    std::optional<Lease> lease, ahead;  // of the open round, and of the one behind it
    uint64_t late = 0;                  // rounds that the lease missed
    std::optional<Push> push;           // for the open round
    bool failed = false;                // the push is a failure, or cannot be used
    Payload values;                     // of it, when they have come
    bool offered = false;               // it has kept the values of it
    Milliseconds pushed = 0;            // when it was complete
    TransferSender sender;              // of states
    Work::Form form = Work::STATE;      // of the last one
    bool has_all = false;               // what never changes, too
    uint64_t has_serial = 0;            // of the newest state that it has in full
    Milliseconds delivered = 0;         // when it had that
    uint64_t committed_push = 0;
    TransferReceiver receiver;     // of pushes
    std::optional<Push> donation;  // the state that it was asked for
    PeerAddress address;
    uint64_t attempt = 0;  // exchange that it knows
    uint64_t peer_bytes_sent = 0, peer_bytes_received = 0;
    WorkerAccount account;
    // Where workers do not wait for each other.
    struct Base {
      uint64_t version = 0, iteration = 0, digest = 0, serial = 0;
    };
    Base base;              // that the lease is trained from
    uint64_t clock = 0;     // leases that it has done
    uint64_t failures = 0;  // in a row
    std::optional<Milliseconds> idle_since;

    // In tournaments: what it goes on with since the last round, null where that is the state of all; and whether it
    // has made that itself.
    Payload own_state;
    uint64_t own_digest = 0;
    bool keeps_own = false;

    void ForgetOwn() {
      own_state = nullptr;
      keeps_own = false;
    }
    bool has_result() const { return values != nullptr || offered; }
    // Values are being made that others get as they come.
    bool has_promised() const { return push && push->promised(); }
    void ForgetPush() {
      push.reset();
      values = nullptr;
      failed = offered = false;
    }
  };
  // Workers that make the next state among themselves.
  struct ExchangeUnderWay {
    uint64_t attempt = 0;
    bool with_history = false, failed = false;
    uint64_t failures = 0;                 // rounds in a row with a worker that failed
    std::vector<uint64_t> members;         // by rank
    std::map<uint64_t, uint64_t> digests;  // of the state, by those who have it
    std::map<uint64_t, uint64_t> bytes;    // that came, by member
    Milliseconds progressed = 0;
  };
  // The last state that was here, and what was committed since.
  struct Kept {
    Payload state;
    uint64_t version = 0, iteration = 0, digest = 0, next_step = 0;
    std::vector<Steps> unused;
    std::vector<JournalRecord::Commit> since;
  };
  using Members = std::map<uint64_t, Member>;

  // coordinator.cc: what comes in and goes out
  Member* MemberOf(const std::string& route, const ClusterMessage& message, bool bulk);
  void OnInquiry(const std::string& route, const ClusterMessage& message, Milliseconds now);
  void Drop() { ++dropped_; }
  void SendTo(Member& member, Lane lane, ClusterMessage message, Slice slice = {});
  void SendTo(const std::string& route, ClusterMessage message);
  void Refuse(const std::string& route, Refusal::Kind kind, const std::string& reason, uint64_t incarnation = 0);
  void Poll(Member& member, Milliseconds now);
  void Tell(ClusterEvent::Kind kind, std::string text);

  // coordinator_members.cc
  void OnHello(const std::string& route, const ClusterMessage& message, Milliseconds now);
  void OnHeartbeat(Member& member, const Heartbeat& heartbeat, Milliseconds now);
  void NoteMade(Member& member, const Heartbeat& heartbeat, Milliseconds now);
  void Admit(const std::string& route, const Hello& hello, Milliseconds now);
  void SendWelcome(Member& member);
  void Adopt(Member& member, const Hello& hello);
  void TakeUp(Member& member, const Lease& lease);
  bool Lost(const Hello& hello) const;
  void MakeRoom(Milliseconds now);
  void Remove(Members::iterator member, const std::string& why, Milliseconds now);
  // Where it was this coordinator that stood still (a stopped process, a slow disk), what workers sent meanwhile is
  // still to be read: nobody was silent, or late, for that long. False where it did not.
  bool ForgiveStandstill(Milliseconds now);
  void CheckLiveness(Milliseconds now);
  void Linger(Milliseconds now);
  int ReadyWorkers() const { return ready_; }

  // coordinator_commits.cc
  static Contribution ContributionOf(const Member& member);
  void FailAs(const Member& member, Milliseconds now);
  void Close(Milliseconds now);
  void Commit(const std::vector<Contribution>& contributions, Milliseconds now);
  bool Record(const std::vector<Contribution>& contributions, uint64_t digest, Milliseconds now);
  void Follow(const std::vector<Contribution>& contributions, Milliseconds now);
  void Announce(ClusterEvent event, Milliseconds now);

  // coordinator_rounds.cc
  void OnPush(Member& member, const Push& push, Milliseconds now);
  void TakeValues(Member& member, Milliseconds now);
  void Advance(Milliseconds now);
  void AdvanceRounds(Milliseconds now);
  bool MayOpen(Milliseconds now);
  void Open(Milliseconds now);
  void GiveLease(Member& member);
  bool MayClose(Milliseconds now);
  bool TooFewLeft(int leased, Milliseconds now);
  uint64_t StepsOfRound(uint64_t iteration) const;
  uint64_t StepsToStop(uint64_t iteration) const;
  bool IsStop(uint64_t iteration) const;
  bool HasHistory(uint64_t end) const;
  bool MayTrainAhead(uint64_t end) const;
  Lease NewLease(uint64_t steps);
  void ReturnLease(Member& member);
  void BeginEnding(const std::string& reason, Milliseconds now);
  void SendEnd(Member& member);
  std::vector<Member*> BySlot();

  // coordinator_stale.cc: where workers do not wait for each other
  uint64_t SlowestClock() const;
  void LeaseToAll(Milliseconds now);
  void LeaseStale(Member& member, Milliseconds now);
  void Rebase(Member& member);
  bool MayCommitStale(Milliseconds now);
  void CloseStale(Milliseconds now);
  std::vector<Contribution> TakeUntilStop();
  bool AnyLeased() const;

  // coordinator_tournament.cc
  void Meet(const std::vector<Contribution>& contributions);
  void AccountMeeting(const std::vector<Contribution>& contributions, size_t one, WorkerInRound* round);
  void GoOnApart(const std::vector<Contribution>& contributions, ClusterEvent* event, Milliseconds now);

  // coordinator_exchange.cc: rounds among workers
  bool MayExchange();
  void BeginExchange(const std::vector<Contribution>& contributions, uint64_t failures, Milliseconds now);
  void OnExchanged(Member& member, const Heartbeat& heartbeat, Milliseconds now);
  void TendExchange(Milliseconds now);
  bool IsMaking() const;
  void LeaveExchange(const Member& member);
  void GiveUpExchange(Milliseconds now);
  void CommitExchange(Milliseconds now);
  void Offer(Member& member, Work& work);

  // coordinator_keeping.cc: where the state is
  void Want(Milliseconds now);
  bool HasState(const Member& member) const { return member.ready && member.has_serial == state_serial_; }
  void TendKeeping(Milliseconds now);
  void TakeDonation(Member& member, Milliseconds now);
  void Keep();
  void LoseState(Milliseconds now);
  void GoBack();

  // coordinator_accounts.cc: for people
  std::vector<WorkerInRound> AccountRound(const std::vector<Contribution>& contributions, Milliseconds now);
  ClusterSummary::Worker SummaryOf(const Member& member, Milliseconds now) const;
  void AccountForGone(const Member& member, Milliseconds now);
  uint64_t Staleness(const Member& member) const;

  // coordinator_states.cc
  void SendState(Member& member, Milliseconds now);
  void SendAnew(Member& member, Milliseconds now);
  void NoteDelivered(Member& member, Milliseconds now);
  void SendWork(Member& member);

  // coordinator_recovery.cc
  void Recover(Milliseconds now);
  bool NobodyHasTheLast() const;
  void TakeRecovered(Member& member, Payload state, Milliseconds now);
  bool VoidAfter(uint64_t version, uint64_t iteration, Milliseconds now);
  void RollBack(const std::string& why, Milliseconds now);
  void GoOn(Milliseconds now);
  void Disbelieve(Member& member);

  const CoordinatorOptions options_;
  RoundMath& math_;
  Journal& journal_;
  const uint64_t epoch_;

  Phase phase_ = Phase::kWaiting;
  uint64_t version_ = 0, iteration_ = 0, digest_ = 0, generation_ = 0;
  uint64_t carried_ = 0, next_carried_ = 0;  // steps, of so many workers
  int carried_of_ = 0;
  uint64_t center_ = 0;                 // version that all began from, whatever they had
  Payload state_, difference_, whole_;  // the latter two only where they are wanted
  uint64_t state_serial_ = 0;           // of state_
  Ledger ledger_;
  Members members_;
  std::set<uint64_t> incarnations_;  // ever seen: one that comes again is replayed
  WorkerPlaces places_{options_.max_workers};
  int ready_ = 0;  // members
  uint64_t last_member_ = 0, last_lease_ = 0, sequence_ = 0;
  bool changed_ = true;  // since Advance last looked
  Milliseconds next_tick_ = 0;

  Pairing pairing_;  // of the round that is committed
  std::optional<ExchangeUnderWay> exchange_;
  uint64_t last_attempt_ = 0;
  ExchangeDetour detour_;
  bool warned_addresses_ = false;
  Kept kept_;
  bool wanted_ = false;                  // the state is
  std::optional<ClusterEvent> pending_;  // waits for it
  std::optional<std::string> end_when_here_;
  Milliseconds wanted_since_ = 0;

  bool open_ = false;
  Round round_;
  Milliseconds opened_ = 0, retry_ = 0, ending_since_ = 0;
  Milliseconds patient_since_ = 0;             // opened_, but for the time that this stood still
  bool stood_still_ = false;                   // when it last looked who is alive
  std::optional<Milliseconds> waiting_since_;  // for enough workers
  bool started_ = false;                       // the first round of this process was opened
  bool held_ = false, behind_ = false, want_history_ = false, hold_after_history_ = false, draining_ = false,
       hurried_ = false, told_lingering_ = false, linger_over_ = false, told_waiting_ = false;
  std::string end_reason_, failure_;
  std::string unwritten_;
  bool end_without_room_ = false;
  uint64_t stopped_by_ = 0;  // the sequence of the last Inquiry that asked to stop
  Failure failure_kind_ = Failure::kEnvironment;
  double loss_ = 0;
  uint64_t failures_in_a_row_ = 0;

  std::vector<JournalRecord::Commit> lost_;
  Milliseconds recovering_since_ = 0;
  size_t awaited_ = 0;  // workers of the last one's last round, as long as they may not have found this one yet
  uint64_t donor_ = 0;  // member that was asked for the state; 0: none

  ClusterAccounts accounts_;
  std::vector<Outgoing> outgoing_;
  std::vector<ClusterEvent> events_;
  uint64_t dropped_ = 0;
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_PROTOCOL_COORDINATOR_H_
