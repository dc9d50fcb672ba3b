// Workers that speak with one another over real sockets of this machine.
#include "distributed/sockets/peer_sockets.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "crema/error.h"
#include "distributed/peer_sockets_fixture.h"
#include "distributed/sockets/sockets.h"

namespace crema::testing_distributed {
namespace {

class EachWay : public testing::TestWithParam<std::tuple<std::string, bool>> {
 protected:
  PeerOptions Options() const {
    const auto& [coordinator, with_keys] = GetParam();
    if (with_keys) return Keyed(coordinator);
    return {.coordinator = coordinator};
  }
};

TEST_P(EachWay, MessagesArriveWholeAndInOrder) {
  Node a(Options()), b(Options()), c(Options());
  const std::vector<const Node*> all = {&a, &b, &c};  // each gets itself, too
  for (Node* node : {&a, &b, &c}) node->Know(all);
  const Payload large = PayloadOf(3 << 20, 1), small = PayloadOf(100, 2), none = PayloadOf(0, 0);
  for (uint64_t i = 0; i < 20; ++i) {
    a.Send(b, 4 * i, large, i);
    a.Send(b, 4 * i + 1, small, 100 - i);
    a.Send(b, 4 * i + 2, none);
    a.Send(b, 4 * i + 3);
  }
  a.Send(c, 1000, small);
  b.Send(a, 1001, large);
  c.Send(a, 1002);

  const std::vector<Received>& got = b.Await(80);
  ASSERT_EQ(got.size(), 80u);
  for (uint64_t i = 0; i < 80; ++i) {
    EXPECT_EQ(got[i].number, i);
    EXPECT_EQ(got[i].route, a.route());
    const Payload& sent = i % 4 == 0 ? large : i % 4 == 1 ? small : none;
    const uint64_t offset = i % 4 == 0 ? i / 4 : i % 4 == 1 ? 100 - i / 4 : 0;
    EXPECT_TRUE(std::equal(got[i].bytes.begin(), got[i].bytes.end(), sent->begin() + static_cast<ptrdiff_t>(offset),
                           sent->end()))
        << i;
  }
  ASSERT_EQ(c.Await(1).size(), 1u);
  EXPECT_EQ(c.Await(1)[0].number, 1000u);
  EXPECT_EQ(c.Await(1)[0].bytes, *small);
  ASSERT_EQ(a.Await(2).size(), 2u);
  const bool b_first = a.Await(2)[0].number == 1001;
  EXPECT_EQ(a.Await(2)[b_first ? 0 : 1].route, b.route());
  EXPECT_EQ(a.Await(2)[b_first ? 0 : 1].bytes, *large);
  EXPECT_EQ(a.Await(2)[b_first ? 1 : 0].route, c.route());
  for (Node* node : {&a, &b, &c}) {
    EXPECT_EQ(node->sockets().malformed() + node->sockets().unsent() + node->sockets().bad_peers(), 0u);
  }
}

TEST_P(EachWay, WhatIsSentBeforeTheOtherKnowsThisOneWaits) {
  Node a(Options()), b(Options());
  a.Know({&b});
  a.Send(b, 1);
  a.Send(b, 2, PayloadOf(50, 3));
  if (std::get<bool>(GetParam())) {
    EXPECT_GE(b.AwaitRefused(1), 1u);
    EXPECT_TRUE(b.Await(1, kPeerQuiet).empty());
  }
  b.Know({&a});
  ASSERT_EQ(b.Await(2).size(), 2u);
  EXPECT_EQ(b.Await(2)[1].bytes.size(), 50u);
}

TEST_P(EachWay, OneThatComesBackElsewhereIsReachedThere) {
  Node a(Options());
  auto b = std::make_unique<Node>(Options());
  a.Know({b.get()});
  b->Know({&a});
  EXPECT_TRUE(Reaches(a, *b, 1));
  const std::string before = b->address().endpoint();
  b = std::make_unique<Node>(Options());
  ASSERT_NE(b->address().endpoint(), before);
  b->Know({&a});
  a.Send(before, 2);  // to nobody
  a.Know({b.get()});
  EXPECT_TRUE(Reaches(a, *b, 3));
  EXPECT_TRUE(Reaches(*b, a, 4));
  const uint64_t unsent = a.sockets().unsent();
  a.Send(before, 5);
  EXPECT_EQ(a.sockets().unsent(), unsent + 1);
  a.Know({});
  a.Send(*b, 6);
  EXPECT_EQ(a.sockets().unsent(), unsent + 2);
}

INSTANTIATE_TEST_SUITE_P(PeerSockets, EachWay,
                         testing::Combine(testing::Values(kLoopback, kIpc), testing::Values(false, true)),
                         [](const testing::TestParamInfo<EachWay::ParamType>& info) {
                           return std::string(std::get<0>(info.param) == kIpc ? "Ipc" : "Tcp") +
                                  (std::get<1>(info.param) ? "WithKeys" : "");
                         });

TEST(PeerSockets, StrangersStayOut) {
  Node a(Keyed()), b(Keyed()), c(Keyed());
  for (Node* node : {&a, &b, &c}) node->Know({&a, &b});
  const std::string endpoint = a.address().endpoint(), key = a.address().public_key();
  const KeyPair unknown = MakeKeyPair();
  Outsider without_key, with_unknown(&unknown, key), with_mistaken(&b.keys(), b.address().public_key());
  for (Outsider* outsider : {&without_key, &with_unknown, &with_mistaken}) {
    outsider->Connect(endpoint);
    outsider->Send({FrameOf(7, false)});
  }
  c.Send(a, 8);
  EXPECT_GE(a.AwaitRefused(2), 2u);
  EXPECT_TRUE(a.Await(1, kPeerQuiet).empty());
  EXPECT_TRUE(Reaches(b, a, 9));
  a.Clear();
  // The key alone is what counts.
  Outsider with_key(&b.keys(), key);
  with_key.Connect(endpoint);
  with_key.Send({FrameOf(10, false)});
  ASSERT_EQ(a.Await(1).size(), 1u);
  EXPECT_EQ(a.Await(1)[0].number, 10u);
  EXPECT_EQ(a.sockets().malformed(), 0u);
}

TEST(PeerSockets, WhoIsAPeerNoMoreIsHeardNoMore) {
  Node a(Keyed()), b(Keyed()), c(Keyed());
  for (Node* node : {&a, &b, &c}) node->Know({&a, &b, &c});
  EXPECT_TRUE(Reaches(b, a, 1));
  EXPECT_TRUE(Reaches(c, a, 2));
  a.Clear();
  a.Know({&c});
  const uint64_t refused = a.sockets().refused();
  b.Send(a, 3);  // on the connection that stands
  EXPECT_GE(a.AwaitRefused(refused + 1), refused + 1);
  EXPECT_TRUE(a.Await(1, kPeerQuiet).empty());
  EXPECT_EQ(a.sockets().refused(), refused + 1);
  Outsider again(&b.keys(), a.address().public_key());
  again.Connect(a.address().endpoint());
  again.Send({FrameOf(4, false)});
  EXPECT_GE(a.AwaitRefused(refused + 2), refused + 2);
  EXPECT_TRUE(a.Await(1, kPeerQuiet).empty());
  EXPECT_TRUE(Reaches(c, a, 5));
  a.Clear();
  a.Know({&b, &c});
  ASSERT_EQ(a.Await(1).size(), 1u);  // of the connection that was kept out until now
  EXPECT_EQ(a.Await(1)[0].number, 4u);
  EXPECT_TRUE(Reaches(b, a, 6));
}

TEST(PeerSockets, AnotherKeyAtTheSameEndpointIsAnotherPeer) {
  Node a(Keyed()), b(Keyed());
  b.Know({&a});
  PeerAddress mistaken = b.address();
  mistaken.set_public_key(MakeKeyPair().public_key);
  a.sockets().SetPeers({{mistaken}});
  a.Send(b, 1);
  EXPECT_TRUE(b.Await(1, kPeerQuiet).empty());
  a.Know({&b});
  a.Send(b, 2);
  ASSERT_EQ(b.Await(1).size(), 1u);
  EXPECT_EQ(b.Await(1)[0].number, 2u);
}

TEST(PeerSockets, AddressesThatAreNoneAreCounted) {
  Node with_keys(Keyed()), without_keys({.coordinator = kIpc});
  const std::string key = MakeKeyPair().public_key;
  const auto address = [](const std::string& endpoint, const std::string& public_key) {
    PeerAddress address;
    address.set_endpoint(endpoint);
    address.set_public_key(public_key);
    return address;
  };
  const std::vector<PeerAddress> bad = {PeerAddress(),
                                        address("", key),
                                        address("127.0.0.1:5570", key),
                                        address("inproc://zeromq.zap.01", key),
                                        address("pgm://eth0;239.192.1.1:5555", key),
                                        address("tcp://" + std::string(10'000, 'a') + ":1", key),
                                        address(std::string("ipc://a\0b", 9), key),
                                        address("tcp://127.0.0.1:5571", ""),
                                        address("tcp://127.0.0.1:5572", "key"),
                                        address("tcp://127.0.0.1:5573", std::string(40, ' ')),
                                        address("tcp://127.0.0.1:5574", std::string(40, '\xff'))};
  with_keys.sockets().SetPeers(bad);
  EXPECT_EQ(with_keys.sockets().bad_peers(), bad.size());
  for (const PeerAddress& peer : bad) with_keys.Send(peer.endpoint(), 1);
  EXPECT_EQ(with_keys.sockets().unsent(), bad.size());

  // Nothing goes out as plain text to one that expects keys.
  without_keys.sockets().SetPeers({{address("tcp://127.0.0.1:5570", key)}});
  EXPECT_EQ(without_keys.sockets().bad_peers(), 1u);
  // Nor is a peer what only this process could reach.
  without_keys.sockets().SetPeers({{address("inproc://coordinator/1", "")}});
  EXPECT_EQ(without_keys.sockets().bad_peers(), 2u);

  // These look like some.
  std::vector<PeerAddress> worse;
  for (const char* endpoint :
       {"tcp://", "tcp://:", "tcp://127.0.0.1", "tcp://127.0.0.1:", "tcp://127.0.0.1:99999", "tcp://127.0.0.1:*",
        "tcp://*:5570", "tcp://[::1:5570", "tcp://;;:1", "ipc://", "tcp://a b:5570", "tcp://nowhere.invalid:5570"}) {
    worse.push_back(address(endpoint, ""));
  }
  worse.push_back(address("ipc://" + std::string(200, 'a'), ""));
  without_keys.sockets().SetPeers(worse);
  for (const PeerAddress& peer : worse) without_keys.Send(peer.endpoint(), 1);
  EXPECT_GE(without_keys.sockets().bad_peers(), 5u);
  EXPECT_GE(without_keys.sockets().unsent(), 5u);

  // Of two that are the same, the first.
  Node b({.coordinator = kLoopback});
  const uint64_t before = without_keys.sockets().bad_peers();
  without_keys.sockets().SetPeers({{b.address(), b.address(), PeerAddress()}});
  EXPECT_EQ(without_keys.sockets().bad_peers(), before + 2);
  EXPECT_TRUE(Reaches(without_keys, b, 5));
}

TEST(PeerSockets, MoreThanThereCanBeSocketsHarmNobody) {
  Node a({.coordinator = kIpc}), b({.coordinator = kLoopback});
  std::vector<PeerAddress> many(1500);
  for (size_t i = 0; i < many.size(); ++i) many[i].set_endpoint("tcp://127.0.0.1:" + std::to_string(20'000 + i));
  a.sockets().SetPeers(many);
  for (const PeerAddress& peer : many) a.Send(peer.endpoint(), 1);
  EXPECT_GT(a.sockets().bad_peers(), 0u);
  a.Know({&b});
  EXPECT_TRUE(Reaches(a, b, 2));
}

TEST(PeerSockets, GarbageHarmsNobody) {
  for (const bool with_keys : {false, true}) {
    Node a(with_keys ? Keyed() : PeerOptions{.coordinator = kLoopback}),
        b(with_keys ? Keyed() : PeerOptions{.coordinator = kLoopback});
    a.Know({&b});
    b.Know({&a});
    std::vector<int> open;
    for (int i = 0; i < 20; ++i) {
      const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_in address = {};
      address.sin_family = AF_INET;
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      address.sin_port = htons(static_cast<uint16_t>(PortOf(a.address().endpoint())));
      ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
      // As ZMTP would begin, or not; one just stays silent.
      std::string bytes = i % 2 ? std::string("\xff\0\0\0\0\0\0\0\x01\x7f\x03\0", 12) : std::string();
      for (int k = 0; k < 5000 * (i % 5); ++k) bytes.push_back(static_cast<char>(k * (i + 3) + (k >> 8)));
      EXPECT_GE(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL), bytes.empty() ? 0 : 1);
      open.push_back(fd);
    }
    EXPECT_TRUE(a.Await(1, kPeerQuiet).empty());
    EXPECT_TRUE(Reaches(b, a, 1));
    for (const int fd : open) close(fd);
    EXPECT_TRUE(Reaches(b, a, 2));
    EXPECT_TRUE(Reaches(a, b, 3));
  }
}

TEST(PeerSockets, MalformedMessagesAreCountedAndDropped) {
  Node a({.coordinator = kLoopback});
  Outsider outsider;
  outsider.Connect(a.address().endpoint());
  std::string broken = FrameOf(1, false);
  broken.back() ^= 1;
  outsider.Send({""});
  outsider.Send({"CRMA"});
  outsider.Send({broken});
  outsider.Send({FrameOf(1, true)});            // bytes are missing
  outsider.Send({FrameOf(1, false), "bytes"});  // bytes behind what has none
  outsider.Send({FrameOf(1, true), "bytes", "and more"});
  outsider.Send({"", "", "", ""});
  outsider.Send({FrameOf(2, true), "bytes"});
  ASSERT_EQ(a.Await(1).size(), 1u);
  EXPECT_EQ(a.Await(1)[0].number, 2u);
  EXPECT_EQ(a.Await(1)[0].route, "p");
  EXPECT_EQ(a.sockets().malformed(), 7u);
}

TEST(PeerSockets, SendingNeverWaits) {
  Node a({.coordinator = kIpc});
  PeerAddress nobody;
  nobody.set_endpoint("tcp://127.0.0.1:1");
  a.sockets().SetPeers({{nobody}});
  const Payload payload = PayloadOf(1 << 20, 1);
  const Milliseconds begin = Now();
  for (uint64_t i = 0; i < 5000; ++i) a.Send(nobody.endpoint(), i, payload);
  EXPECT_LT(Now() - begin, 5000);
  EXPECT_GE(a.sockets().unsent(), 3000u);
  EXPECT_LE(payload.use_count(), 2000);
  a.sockets().SetPeers({});
}

TEST(PeerSockets, ABetterOneAtTheSameEndpointIsFoundAgain) {
  Node a(Keyed());
  const KeyPair keys = MakeKeyPair();
  std::string endpoint;
  PeerAddress peer;
  peer.set_public_key(keys.public_key);
  {
    // It has no keys: ZeroMQ gives such connections up for good.
    zmq::context_t context;
    zmq::socket_t plain(context, zmq::socket_type::router);
    plain.set(zmq::sockopt::linger, 0);
    plain.bind("tcp://127.0.0.1:*");
    endpoint = plain.get(zmq::sockopt::last_endpoint);
    peer.set_endpoint(endpoint);
    a.sockets().SetPeers({{peer}});
    a.Send(endpoint, 1);
    EXPECT_TRUE(a.Await(1, kPeerQuiet).empty());
    zmq::message_t message;
    EXPECT_FALSE(plain.recv(message, zmq::recv_flags::dontwait));
  }
  Node b({.coordinator = kLoopback, .announced = "127.0.0.1:" + std::to_string(PortOf(endpoint)), .keys = keys});
  ASSERT_EQ(b.address().endpoint(), endpoint);
  b.Know({&a});
  EXPECT_TRUE(Reaches(a, b, 2));
}

TEST(ServerSockets, ListenAtLocalhost) {
  zmq::context_t context;
  ServerSockets server(context, 1 << 20);
  EXPECT_TRUE(server.Bind("tcp://localhost:*", nullptr).starts_with("tcp://127.0.0.1:"));
}

TEST(PeerSockets, AWorkerHearsCoordinatorAndPeersInOneWait) {
  zmq::context_t server_context, context;
  ServerSockets server(server_context, 1 << 20);
  const std::string endpoint = server.Bind("tcp://127.0.0.1:*", nullptr);
  auto peers = std::make_unique<PeerSockets>(context, PeerOptions{.coordinator = endpoint, .keys = MakeKeyPair()});
  const PeerAddress address = peers->address();
  WorkerSockets worker(context, endpoint, std::nullopt);
  worker.AddPeers(std::move(peers));
  Node other(Keyed());
  other.sockets().SetPeers({{address}});
  worker.SetPeers({{other.address()}});

  std::vector<std::string> routes;
  const auto await = [&](size_t count) {
    for (const Milliseconds end = Now() + kPeerPatience; routes.size() < count && Now() < end;) {
      worker.Receive(100, [&](const std::string& route, const ClusterMessage& message, std::span<const std::byte>) {
        EXPECT_EQ(message.has_work(), route.empty());
        routes.push_back(route);
      });
    }
  };
  // The coordinator answers whatever it hears.
  const auto speak = [&] {
    bool heard = false;
    for (const Milliseconds end = Now() + kPeerPatience; !heard && Now() < end;) {
      Outgoing heartbeat{.route = "", .lane = Lane::kControl, .message = {}, .slice = {}};
      heartbeat.message.mutable_heartbeat();
      worker.Send(heartbeat);
      server.Receive(100, [&](const std::string& route, const ClusterMessage&, std::span<const std::byte>) {
        if (heard) return;
        heard = true;
        Outgoing work{.route = route, .lane = Lane::kControl, .message = {}, .slice = {}};
        work.message.mutable_work();
        server.Send(work);
      });
    }
    EXPECT_TRUE(heard);
  };
  speak();
  await(1);
  ASSERT_EQ(routes.size(), 1u);
  EXPECT_EQ(routes[0], "");
  other.Send(address.endpoint(), 1);
  await(2);
  ASSERT_EQ(routes.size(), 2u);
  EXPECT_EQ(routes[1], other.route());
  // Connections to peers have nothing to do with the one to the coordinator.
  worker.Reconnect();
  other.Send(address.endpoint(), 2, PayloadOf(1000, 1));
  await(3);
  ASSERT_EQ(routes.size(), 3u);
  EXPECT_EQ(routes[2], other.route());
  Outgoing outgoing{.route = other.address().endpoint(), .lane = Lane::kPeer, .message = {}, .slice = {}};
  outgoing.message.mutable_chunk_received()->set_transfer(3);
  worker.Send(outgoing);
  ASSERT_EQ(other.Await(1).size(), 1u);
  EXPECT_EQ(other.Await(1)[0].route, "p" + address.public_key());
  routes.clear();
  speak();
  await(1);
  ASSERT_EQ(routes.size(), 1u);
  EXPECT_EQ(routes[0], "");
}

}  // namespace
}  // namespace crema::testing_distributed
