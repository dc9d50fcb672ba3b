// Workers that are threads of one process and speak with one another by a context that they share.
#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <zmq.hpp>

#include "distributed/peer_sockets_fixture.h"
#include "distributed/protocol/environment.h"
#include "distributed/sockets/sockets.h"

namespace crema::testing_distributed {
namespace {

constexpr char kCoordinator[] = "inproc://coordinator";

Outgoing ChunkTo(const PeerSockets& peer, uint64_t number, const Payload& payload, uint64_t offset) {
  Outgoing outgoing{.route = peer.address().endpoint(), .lane = Lane::kPeer, .message = {}, .slice = {}};
  outgoing.message.mutable_chunk()->set_transfer(number);
  outgoing.slice = {payload, offset, payload->size() - offset};
  return outgoing;
}

// Transfers, and where their bytes lie, of the next `count` messages.
std::vector<std::pair<uint64_t, const std::byte*>> Take(PeerSockets& sockets, size_t count,
                                                        Milliseconds patience = kPeerPatience) {
  std::vector<std::pair<uint64_t, const std::byte*>> taken;
  for (const Milliseconds end = Now() + patience; taken.size() < count && Now() < end;) {
    zmq::pollitem_t item = sockets.item();
    zmq::poll(&item, 1, std::chrono::milliseconds(20));
    sockets.Receive([&](const std::string& route, const ClusterMessage& message, std::span<const std::byte> bytes) {
      EXPECT_EQ(route, "p");
      taken.emplace_back(message.chunk().transfer(), bytes.data());
    });
  }
  return taken;
}

TEST(InprocPeers, GetValuesWithoutACopy) {
  zmq::context_t context;
  PeerSockets a(context, {.coordinator = kCoordinator}), b(context, {.coordinator = kCoordinator});
  EXPECT_NE(a.address().endpoint(), b.address().endpoint());
  const std::vector<PeerAddress> both = {a.address(), b.address()};
  a.SetPeers(both);
  b.SetPeers(both);
  const Payload payload = PayloadOf(1 << 20, 3);
  for (uint64_t i = 0; i < 10; ++i) {
    a.Send(ChunkTo(b, i, payload, i * 100));
    b.Send(ChunkTo(a, 50 + i, payload, i));
  }
  const auto to_b = Take(b, 10), to_a = Take(a, 10);
  ASSERT_EQ(to_b.size(), 10u);
  ASSERT_EQ(to_a.size(), 10u);
  for (uint64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(to_b[i], std::make_pair(i, payload->data() + i * 100));
    EXPECT_EQ(to_a[i], std::make_pair(50 + i, payload->data() + i));
  }
  EXPECT_EQ(a.bad_peers() + a.unsent() + b.bad_peers() + b.unsent(), 0u);
  EXPECT_EQ(payload.use_count(), 1) << "what was delivered is let go";
}

TEST(InprocPeers, CoordinatorsGetValuesWithoutACopy) {
  zmq::context_t context;
  ServerSockets server(context, 1 << 20);
  ASSERT_EQ(server.Bind(kCoordinator, nullptr), kCoordinator);
  WorkerSockets worker(context, kCoordinator, std::nullopt);
  const Payload payload = PayloadOf(1 << 20, 5);
  Outgoing outgoing;
  outgoing.lane = Lane::kBulk;
  outgoing.message.mutable_chunk()->set_transfer(7);
  outgoing.slice = {payload, 10, 1000};
  worker.Send(outgoing);
  std::string route;
  for (const Milliseconds end = Now() + kPeerPatience; route.empty() && Now() < end;) {
    server.Receive(20, [&](const std::string& from, const ClusterMessage& message, std::span<const std::byte> bytes) {
      EXPECT_EQ(message.chunk().transfer(), 7u);
      EXPECT_EQ(bytes.data(), payload->data() + 10);
      EXPECT_EQ(bytes.size(), 1000u);
      route = from;
    });
  }
  ASSERT_FALSE(route.empty());
  // And back; and once more when the worker has given these connections up.
  outgoing.route = route;
  server.Send(outgoing);
  const std::byte* got = nullptr;
  const auto receive = [&](Milliseconds patience) {
    got = nullptr;
    for (const Milliseconds end = Now() + patience; !got && Now() < end;) {
      worker.Receive(
          20, [&](const std::string&, const ClusterMessage&, std::span<const std::byte> bytes) { got = bytes.data(); });
    }
  };
  receive(kPeerPatience);
  EXPECT_EQ(got, payload->data() + 10);
  worker.Reconnect();
  server.Send(outgoing);
  receive(kPeerQuiet);
  EXPECT_EQ(got, nullptr) << "that was for who it was before";
  outgoing.route.clear();
  worker.Send(outgoing);
  std::string again;
  for (const Milliseconds end = Now() + kPeerPatience; again.empty() && Now() < end;) {
    server.Receive(20,
                   [&](const std::string& from, const ClusterMessage&, std::span<const std::byte>) { again = from; });
  }
  EXPECT_NE(again, "");
  EXPECT_NE(again, route);
}

// Nor do they hold up the end of the context.
TEST(InprocPeers, ThatAreGoneAreNotWaitedFor) {
  zmq::context_t context;
  PeerSockets a(context, {.coordinator = kCoordinator});
  const Payload payload = PayloadOf(1 << 10, 1);
  std::vector<PeerAddress> peers = {a.address()};
  PeerAddress gone_at_once;
  {
    PeerSockets b(context, {.coordinator = kCoordinator}), c(context, {.coordinator = kCoordinator});
    gone_at_once = c.address();
    peers.push_back(b.address());
    peers.push_back(c.address());
    a.SetPeers(peers);
    a.Send(ChunkTo(b, 1, payload, 0));
    ASSERT_EQ(Take(b, 1).size(), 1u);
  }
  Outgoing outgoing;
  outgoing.lane = Lane::kPeer;
  outgoing.message.mutable_chunk()->set_transfer(1);
  outgoing.slice = {payload, 0, 10};
  outgoing.route = peers[1].endpoint();
  while (a.unsent() == 0) a.Send(outgoing);
  outgoing.route = gone_at_once.endpoint();
  a.Send(outgoing);
  // Another one under a name of its own.
  PeerSockets d(context, {.coordinator = kCoordinator});
  peers = {a.address(), d.address()};
  a.SetPeers(peers);
  a.Send(ChunkTo(d, 2, payload, 0));
  EXPECT_EQ(Take(d, 1).size(), 1u);
}

TEST(InprocPeers, AreOfThisProcessOnly) {
  zmq::context_t context;
  PeerSockets a(context, {.coordinator = kCoordinator});
  std::vector<PeerAddress> bad(3);
  bad[0].set_endpoint("tcp://127.0.0.1:5570");
  bad[1].set_endpoint("ipc:///nowhere/peer");
  bad[2].set_endpoint("inproc://" + std::string(400, 'a'));
  a.SetPeers(bad);
  EXPECT_EQ(a.bad_peers(), 3u);
}

}  // namespace
}  // namespace crema::testing_distributed
