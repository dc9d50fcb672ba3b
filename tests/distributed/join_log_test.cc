// What a worker's log tells of others whose messages are lost.
#include "distributed/sockets/join_log.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "distributed/peer_sockets_fixture.h"
#include "distributed/sockets/worker_service.h"

namespace crema {
namespace {

using testing_distributed::FrameOf;
using testing_distributed::kLoopback;
using testing_distributed::kPeerPatience;
using testing_distributed::Outsider;

TEST(JoinLog, TellsOfEachLossOnceAndOfAllAtTheEnd) {
  std::vector<std::string> lines;
  JoinLog log("tcp://there:5570", [&](const std::string& line) { lines.push_back(line); });
  log.Tell({});
  log.Summarize({});
  EXPECT_TRUE(lines.empty());

  PeerLosses losses = {.malformed = 1, .unsent = 0, .bad_peers = 0, .early = 0};
  log.Tell(losses);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("A message from another worker cannot be read"), std::string::npos) << lines[0];
  losses = {.malformed = 7, .unsent = 3, .bad_peers = 1, .early = 2};
  log.Tell(losses);
  log.Tell(losses);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_NE(lines[1].find("an address to which this one cannot connect"), std::string::npos) << lines[1];
  EXPECT_NE(lines[2].find("could not be sent"), std::string::npos) << lines[2];
  EXPECT_NE(lines[3].find("they ask again"), std::string::npos) << lines[3];
  log.Summarize(losses);
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[4],
            "Between this worker and others: 7 messages that cannot be read, 3 messages that could not be sent, 1 "
            "address that is of no use and 2 questions that came too early and were dropped");
}

TEST(JoinLog, LossesOfSocketsAreKnown) {
  zmq::context_t context;
  class Math : public WorkerMath {
   public:
    Payload Rebase(const Payload& values, bool, const Payload&, const Payload&) override { return values; }
  } math;
  auto peers = std::make_unique<PeerSockets>(context, PeerOptions{.coordinator = kLoopback});
  const std::string endpoint = peers->address().endpoint();
  PeerAddress nowhere;
  nowhere.set_endpoint("nowhere");
  peers->SetPeers({{nowhere}});
  WorkerService service({.process = 9, .name = "w"}, math,
                        std::make_unique<WorkerSockets>(context, "tcp://127.0.0.1:1", std::nullopt));
  EXPECT_EQ(service.losses().bad_peers, 0u);
  service.AddPeers(std::move(peers));
  Outsider outsider;
  outsider.Connect(endpoint);
  outsider.Send({"CRMA"});
  outsider.Send({FrameOf(1, true)});  // bytes are missing
  for (const Milliseconds end = Now() + kPeerPatience; service.losses().malformed < 2 && Now() < end;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(service.losses().malformed, 2u);
  EXPECT_EQ(service.losses().bad_peers, 1u);
}

}  // namespace
}  // namespace crema
