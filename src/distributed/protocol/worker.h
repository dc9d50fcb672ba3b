// A worker's side of the protocol as a state machine, as src/distributed/protocol/coordinator.h is the coordinator's.
// Whoever drives it builds the net and trains; it says when, from which parameters, and on which steps.
#ifndef CREMA_DISTRIBUTED_PROTOCOL_WORKER_H_
#define CREMA_DISTRIBUTED_PROTOCOL_WORKER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "distributed/exchange/exchange.h"
#include "distributed/protocol/ledger.h"
#include "distributed/protocol/outgoing.h"
#include "distributed/protocol/transfer.h"

namespace crema {

struct WorkerTiming {
  Milliseconds heartbeat = 1000, dead = 10'000, orphan = 600'000;
};

struct WorkerOptions {
  uint64_t process = 0;  // drawn; not 0
  std::string name = {};
  WorkerTiming timing = {};
  TransferOptions transfer = {};
  DistributedParameter::Topology topology = DistributedParameter::STAR;
  PeerAddress address = {};
};

// What happens to results when the parameters move on before they arrived.
class WorkerMath {
 public:
  virtual ~WorkerMath() = default;
  // The values that were trained from the state `from`, as if from the state `to`.
  virtual Payload Rebase(const Payload& values, bool with_history, const Payload& from, const Payload& to) = 0;
  // What this worker goes on from whose `values` were averaged with the state `from`; null: from the state that came of
  // it.
  virtual Payload Own(const Payload& /*values*/, const Payload& /*from*/) { return nullptr; }
  // What is sent for values that were trained from the state `from`, of version `version`; null where a value is not
  // finite.
  virtual Payload Encode(const Payload& values, const Payload& /*from*/, uint64_t /*version*/) { return values; }
  // What became of what was encoded last: part of the parameters, not, or nobody knows.
  enum class Outcome { kCommitted, kDropped, kUnknown };
  virtual void Settle(Outcome) {}
  // The state that came in this form; `last` is the one before, or null. Null where it is none.
  virtual Payload Decode(Work::Form, const Payload& sent, const Payload& /*last*/) { return sent; }

  // Throws EnvironmentError where a state that came has not the size of one.
  virtual void ExpectState(const Payload&) const {}

  // Rounds whose values workers exchange among themselves. What of `values` is exchanged; null where a value is not
  // finite.
  virtual Payload Offer(const Payload& values, bool /*with_history*/) { return values; }
  // Null: none.
  virtual const ExchangeMath* exchange() const { return nullptr; }
  // The state that comes behind `from` when this is the exchange's result; null where it is none.
  virtual Payload Conclude(const ExchangePlan&, const Payload& /*exchanged*/, bool /*with_history*/,
                           const Payload& /*from*/) {
    return nullptr;
  }
};

struct TrainTask {
  uint64_t version = 0;
  Payload state;  // parameters to start from
  uint64_t iteration = 0;
  Steps steps;
  uint64_t lease = 0;  // serial
  uint64_t stride = 0;
  bool with_history = false;
  uint32_t slot = 0;
  bool goes_on = false;  // `state` is the values of the last result, while that is under way
  bool own = false;      // `state` is what WorkerMath::Own made
};

struct TrainResult {
  uint64_t lease = 0;  // of the task
  Payload values;
  uint64_t examples = 0;
  double loss = 0, seconds = 0;
  double score = 0;  // in tournaments
  std::vector<float> outputs = {};
  std::string failure = {};  // not empty: there are no values
  bool fatal = false;        // the failure would come anywhere else, too
};

class Worker {
 public:
  enum class Phase { kJoining, kBuilding, kMember, kEnded };

  // `math` must outlive it.
  Worker(WorkerOptions options, WorkerMath& math, Milliseconds now);

  // A message of the coordinator with the bytes behind it.
  void OnMessage(const ClusterMessage& message, std::span<const std::byte> bytes, Milliseconds now);
  // A message of another worker, whose connection had this key.
  void OnPeerMessage(const std::string& public_key, const ClusterMessage& message, std::span<const std::byte> bytes,
                     Milliseconds now);
  void OnTick(Milliseconds now);
  Milliseconds deadline() const { return next_tick_; }
  std::vector<Outgoing> TakeOutgoing() { return std::exchange(outgoing_, {}); }

  // Once, when the coordinator said what is to be trained: then OnBuilt is waited for.
  std::optional<Welcome> TakeWelcome() { return std::exchange(welcome_, std::nullopt); }
  // States have at most so many bytes; other workers reach this one at `address`.
  void OnBuilt(uint64_t most_state_bytes, const WorkerTiming& timing, const TransferOptions& transfer,
               DistributedParameter::Topology topology, PeerAddress address, Milliseconds now);
  // What to train now, once; OnTrained is then waited for.
  std::optional<TrainTask> TakeTask();
  // Whether the task's result is still of use.
  bool Wanted(uint64_t lease) const {
    return phase_ != Phase::kEnded && training_ &&
           ((lease_ && lease_->serial() == lease) || (ahead_ && ahead_->serial() == lease));
  }
  // The task's values, which are still being made: bytes from `there_from` on are there, and not changed any more. They
  // are promised where other workers are to have them, and go to these as they come; what comes of it is due at once,
  // at the next tick. OnTrained then brings the same values. Not for tasks with a history.
  void OnMaking(uint64_t lease, const Payload& values, uint64_t examples, uint64_t there_from, Milliseconds now);
  // Steps of the task that are done: tells the coordinator that this worker is alive.
  void OnProgress(uint64_t steps_of_task);
  // Without values and failure: the task was broken off, and may be given again.
  void OnTrained(TrainResult result, Milliseconds now);
  // Tells the coordinator and ends.
  void Leave(const std::string& reason, Milliseconds now);

  // With whom to be connected from now on, once each time that this changes.
  std::optional<std::vector<PeerAddress>> TakePeers() { return std::exchange(peers_, std::nullopt); }

  // True once each time that nothing was heard for so long that connections should be made anew.
  bool TakeReconnect() { return std::exchange(reconnect_, false); }

  Phase phase() const { return phase_; }
  // While joining: why the coordinator has no place for it yet; it goes on asking. Empty where that was not said.
  const std::string& no_place() const { return no_place_; }
  bool ended() const { return phase_ == Phase::kEnded; }
  // The coordinator said that training is over; else why this worker ended.
  bool completed() const { return completed_; }
  const std::string& end_reason() const { return end_reason_; }
  // The coordinator said that training could not go on.
  bool training_failed() const { return training_failed_; }
  // ... and could not if it were started again.
  bool hopeless() const { return hopeless_; }
  // It ended because it was refused or lost the coordinator.
  bool failed() const { return failed_; }
  uint64_t version() const { return version_; }
  uint64_t digest() const { return digest_; }
  const Payload& state() const { return state_; }
  // Payload bytes to and from other workers.
  uint64_t peer_bytes_sent() const;
  uint64_t peer_bytes_received() const;
  // Workers that spoke of an exchange before this one knew of it, and for whom there was no room: they ask again.
  uint64_t early_dropped() const { return early_dropped_; }

  // So many of them are remembered.
  static constexpr size_t kMostEarly = 1 << 14;

 private:
  struct Result : TrainResult {
    bool with_history = false;
    uint64_t version = 0;  // that it was trained from
    Payload from;
  };

  // Values of the task before they are a result.
  struct Making {
    Payload values;
    uint64_t examples = 0, there_from = 0;
  };

  // A round among workers.
  struct ExchangeUnderWay {
    uint64_t attempt = 0;
    Payload making;                          // what it began with, while that is not all there
    std::vector<ExchangeOrder::Peer> peers;  // by rank
    ExchangePlan plan;
    bool with_history = false;
    std::unique_ptr<PeerTransfers> transfers;
    bool over = false;
    Payload state;  // that came of it
    uint64_t digest = 0;
    std::string failure;
  };
  // What another worker said of an exchange that this one does not know yet.
  struct Early {
    uint64_t attempt = 0;
    bool is_there = false, asks = false;
  };

  void Send(Lane lane, ClusterMessage message, Slice slice = {});
  void SendHello(Milliseconds now);
  void SendHeartbeat(Milliseconds now);
  void SendPush();
  void Poll(Milliseconds now);
  void Join(Milliseconds now);
  void OnRefusal(const Refusal& refusal, Milliseconds now);
  void OnWelcome(const ClusterMessage& message, Milliseconds now);
  void OnWork(const Work& work, Milliseconds now);
  void Advance(Milliseconds now);
  void TakeState();
  bool HasAnnounced(uint64_t lease) const;
  bool MayPromise() const;
  void Settle();
  void KeepOwn();
  void StartPush(Milliseconds now);
  void Promise(Milliseconds now);
  void StartDonation(Milliseconds now);

  // worker_exchange.cc
  void TendExchange(Milliseconds now);
  void BeginExchange(Milliseconds now);
  void EndExchange();
  void GoOnWithValues(Milliseconds now);
  void TakeFromPeer(const std::string& public_key, const ClusterMessage& message, std::span<const std::byte> bytes,
                    Milliseconds now);
  void TakeEarly(const std::string& public_key, const ClusterMessage& message);
  void RepeatEarly(Milliseconds now);
  void SendToPeers();
  void Conclude(Milliseconds now);
  void End(const std::string& reason, bool failed);

  WorkerOptions options_;
  WorkerMath& math_;
  Phase phase_ = Phase::kJoining;
  bool built_ = false, welcomed_ = false, reconnect_ = false, completed_ = false, failed_ = false,
       training_failed_ = false, hopeless_ = false;
  std::string end_reason_, no_place_;
  uint64_t job_ = 0, epoch_ = 0, member_ = 0, incarnation_ = 0, incarnations_ = 0;
  uint64_t sequence_ = 0, heard_sequence_ = 0, heard_bulk_sequence_ = 0;
  Milliseconds next_tick_ = 0, heard_ = 0, heartbeat_ = 0, hello_ = 0, backoff_ = 0, reconnected_ = 0;
  std::optional<Welcome> welcome_;
  Welcome terms_;  // the first one, by which this trains

  uint64_t version_ = 0, digest_ = 0;
  Payload state_;
  std::optional<Work> work_;            // the latest
  std::optional<Lease> lease_, ahead_;  // ahead_: to go on with when lease_ is done
  uint32_t slot_ = 0;
  bool has_slot_ = false;
  bool training_ = false;  // a task was taken and its result has not come
  uint64_t steps_of_task_ = 0, steps_before_ = 0;
  Result task_;  // what the result of the task will be
  std::optional<Making> making_;
  std::optional<Result> result_, ahead_result_;
  std::optional<Result> beginning_;  // where lease_ begins, which was to be trained ahead and is late
  Payload own_;                      // parameters of its own, if it has such
  uint64_t own_version_ = 0;         // that they go with
  Payload pushed_;                   // by it, and the coordinator wants it to go on from there
  std::optional<Push> push_;         // the last one
  std::optional<Push> donation_;     // the state that the coordinator asked for
  uint64_t last_push_ = 0;
  TransferSender sender_;
  TransferReceiver receiver_{0};
  std::unique_ptr<ExchangeUnderWay> exchange_;
  std::map<std::pair<std::string, uint64_t>, Early> early_;  // by public key and member; of each the newest
  uint64_t early_dropped_ = 0;
  uint64_t last_attempt_ = 0, peer_bytes_sent_ = 0, peer_bytes_received_ = 0;
  struct Acquaintance {
    PeerAddress address;
    uint64_t attempt = 0;  // the last one that it was in
    std::shared_ptr<TransferPace> pace = std::make_shared<TransferPace>();
  };
  std::map<std::string, Acquaintance> acquaintances_;  // by endpoint
  std::optional<std::vector<PeerAddress>> peers_;
  std::vector<Outgoing> outgoing_;
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_PROTOCOL_WORKER_H_
