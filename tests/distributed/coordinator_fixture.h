// A coordinator that tests speak to by hand, as the workers of tests that they are.
#ifndef CREMA_TESTS_DISTRIBUTED_COORDINATOR_FIXTURE_H_
#define CREMA_TESTS_DISTRIBUTED_COORDINATOR_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "crema/error.h"
#include "distributed/journal/digest.h"
#include "distributed/protocol/coordinator.h"
#include "distributed/protocol/protocol_version.h"
#include "distributed/simulated_training.h"

namespace crema {

inline constexpr size_t kWords = 4;

class MemoryJournal : public Journal {
 public:
  void Write(const JournalRecord& record) override {
    if (full) throw EnvironmentError("no space left on device");
    records.push_back(record);
  }
  uint64_t commits() const {
    uint64_t count = 0;
    for (const JournalRecord& record : records) count += record.has_commit();
    return count;
  }

  bool full = false;
  std::vector<JournalRecord> records;
};

struct Peer {
  std::string route;
  uint64_t process = 0, incarnation = 0, member = 0, sequence = 0;
};

class CoordinatorTest : public testing::Test {
 protected:
  CoordinatorTest() {
    options_.job = 7;
    options_.local_steps = 10;
    options_.max_iter = 100;
    options_.most_push_bytes = 100;
    options_.max_workers = 3;
    options_.transfer.chunk_bytes = 16;
  }

  void Start(CoordinatorStart start = {}) {
    if (!start.state) start.state = ParametersOf({}, kWords);
    start.digest = DigestOf(*start.state);
    math_ = std::make_unique<SimulatedRoundMath>(start.state, kWords,
                                                 options_.stale ? Simulated::kDifferences : Simulated::kParameters);
    coordinator_ = std::make_unique<Coordinator>(options_, std::move(start), *math_, journal_, now_);
  }

  // Time in which the coordinator is not held up.
  void Pass(Milliseconds time) {
    for (const Milliseconds end = now_ + time; now_ < end;) {
      now_ = std::min(end, std::max(now_ + 1, coordinator_->deadline()));
      coordinator_->OnTick(now_);
    }
  }

  // What came back to anybody.
  std::vector<Outgoing> Say(Peer& peer, ClusterMessage message, Lane lane = Lane::kControl,
                            std::span<const std::byte> bytes = {}) {
    if (!message.has_job()) message.set_job(options_.job);
    if (!message.has_epoch()) message.set_epoch(coordinator_->epoch());
    message.set_member(peer.member);
    if (!message.has_sequence()) message.set_sequence(++peer.sequence);
    coordinator_->OnMessage(peer.route + (lane == Lane::kBulk ? "/bulk" : ""), message, bytes, now_);
    return coordinator_->TakeOutgoing();
  }

  static ClusterMessage HelloOf(const Peer& peer) {
    ClusterMessage message;
    message.mutable_hello()->set_major(kProtocolMajor);
    message.mutable_hello()->set_process(peer.process);
    message.mutable_hello()->set_incarnation(peer.incarnation);
    message.mutable_hello()->set_name(peer.route);
    return message;
  }

  static ClusterMessage Beat() {
    ClusterMessage message;
    message.mutable_heartbeat()->set_ready(true);
    return message;
  }

  Peer Join(const std::string& name, uint64_t process) {
    Peer peer{name, process, 100 * process, 0, 0};
    for (const Outgoing& outgoing : Say(peer, HelloOf(peer))) {
      if (outgoing.message.has_welcome()) peer.member = outgoing.message.member();
    }
    EXPECT_NE(peer.member, 0u);
    ClusterMessage attach;
    attach.mutable_attach()->set_incarnation(peer.incarnation);
    Say(peer, attach, Lane::kBulk);
    return peer;
  }

  // The latest Work that a heartbeat brings.
  Work WorkOf(Peer& peer, const ClusterMessage& beat = Beat()) {
    Work work;
    for (const Outgoing& outgoing : Say(peer, beat)) {
      if (outgoing.route == peer.route && outgoing.message.has_work()) work = outgoing.message.work();
    }
    return work;
  }

  // ... that of a worker which exchanges values with others. digest: what it had after `attempt`; 0: nothing yet.
  Work WorkAmong(Peer& peer, uint64_t attempt = 0, uint64_t digest = 0) {
    ClusterMessage beat = Beat();
    beat.mutable_heartbeat()->mutable_address()->set_endpoint(peer.route);
    beat.mutable_heartbeat()->set_attempt(attempt);
    if (digest != 0) beat.mutable_heartbeat()->set_exchanged_digest(digest);
    return WorkOf(peer, beat);
  }

  static Steps StepsOf(const Work& work) { return {work.lease().steps().first(), work.lease().steps().count()}; }

  Payload Trained(const Work& work) {
    Tally tally = TallyOf(coordinator_->state());
    tally.Add(StepsOf(work));
    return ParametersOf(tally, kWords);
  }

  static ClusterMessage PushOf(const Work& work, uint64_t id, const Payload& values) {
    ClusterMessage message;
    Push& push = *message.mutable_push();
    push.set_id(id);
    *push.mutable_lease() = work.lease();
    push.set_version(work.version());
    push.set_examples(1);
    push.set_digest(DigestOf(*values));
    return message;
  }

  std::vector<Outgoing> SendValues(Peer& peer, uint64_t id, const Payload& values) {
    std::vector<Outgoing> all;
    TransferSender sender({.chunk_bytes = 16, .credits = 100});
    sender.Start(id, values, now_);
    sender.Poll(now_, [&](Chunk chunk, Slice slice) {
      ClusterMessage message;
      *message.mutable_chunk() = chunk;
      for (Outgoing& outgoing : Say(peer, message, Lane::kBulk, slice.bytes())) all.push_back(std::move(outgoing));
    });
    return all;
  }

  void Train(Peer& peer, const Work& work, uint64_t id) {
    const Payload values = Trained(work);
    Say(peer, PushOf(work, id, values));
    SendValues(peer, id, values);
  }

  static const Refusal* RefusalIn(const std::vector<Outgoing>& all) {
    for (const Outgoing& outgoing : all) {
      if (outgoing.message.has_refusal()) return &outgoing.message.refusal();
    }
    return nullptr;
  }

  CoordinatorOptions options_;
  MemoryJournal journal_;
  std::unique_ptr<SimulatedRoundMath> math_;
  std::unique_ptr<Coordinator> coordinator_;
  Milliseconds now_ = 1000;
};

}  // namespace crema

#endif  // CREMA_TESTS_DISTRIBUTED_COORDINATOR_FIXTURE_H_
