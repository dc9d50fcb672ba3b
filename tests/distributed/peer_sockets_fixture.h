// Workers' sockets on this machine, and others that speak to them.
#ifndef CREMA_TESTS_DISTRIBUTED_PEER_SOCKETS_FIXTURE_H_
#define CREMA_TESTS_DISTRIBUTED_PEER_SOCKETS_FIXTURE_H_

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>
#include <zmq.hpp>

#include "distributed/protocol/environment.h"
#include "distributed/security/authentication.h"
#include "distributed/sockets/frame.h"
#include "distributed/sockets/peer_sockets.h"

namespace crema::testing_distributed {

// Much longer than anything here takes where it comes to something, and where it does not.
constexpr Milliseconds kPeerPatience = 10'000, kPeerQuiet = 300;

constexpr char kLoopback[] = "tcp://127.0.0.1:5570", kIpc[] = "ipc:///nowhere/coordinator";

struct Received {
  std::string route;
  uint64_t number = 0;
  Bytes bytes;
};

// A worker as far as its peers know it.
class Node {
 public:
  explicit Node(PeerOptions options) : keys_(options.keys), sockets_(context_, std::move(options)) {}

  PeerSockets& sockets() { return sockets_; }
  const PeerAddress& address() const { return sockets_.address(); }
  const KeyPair& keys() const { return *keys_; }
  std::string route() const { return "p" + address().public_key(); }

  void Know(const std::vector<const Node*>& peers) {
    std::vector<PeerAddress> addresses;
    for (const Node* peer : peers) addresses.push_back(peer->address());
    sockets_.SetPeers(addresses);
  }
  void Send(const std::string& endpoint, uint64_t number, const Payload& payload = nullptr, uint64_t offset = 0) {
    Outgoing outgoing{.route = endpoint, .lane = Lane::kPeer, .message = {}, .slice = {}};
    if (payload) {
      outgoing.message.mutable_chunk()->set_transfer(number);
      outgoing.slice = {payload, offset, payload->size() - offset};
    } else {
      outgoing.message.mutable_chunk_received()->set_transfer(number);
    }
    sockets_.Send(outgoing);
  }
  void Send(const Node& to, uint64_t number, const Payload& payload = nullptr, uint64_t offset = 0) {
    Send(to.address().endpoint(), number, payload, offset);
  }
  // Takes what comes until there are so many, or nothing more for `patience`.
  const std::vector<Received>& Await(size_t count, Milliseconds patience = kPeerPatience) {
    for (Milliseconds end = Now() + patience; received_.size() < count && Now() < end;) {
      const size_t before = received_.size();
      Receive();
      if (received_.size() > before) end = Now() + patience;
    }
    return received_;
  }
  // Takes what comes until so many messages and connections were refused. Returns how many were.
  uint64_t AwaitRefused(uint64_t count) {
    for (const Milliseconds end = Now() + kPeerPatience; sockets_.refused() < count && Now() < end;) Receive();
    return sockets_.refused();
  }
  // Forgets what came.
  void Clear() { received_.clear(); }

 private:
  void Receive() {
    zmq::pollitem_t item = sockets_.item();
    zmq::poll(&item, 1, std::chrono::milliseconds(20));
    sockets_.Receive([this](const std::string& route, const ClusterMessage& message, std::span<const std::byte> bytes) {
      received_.push_back(
          {route, message.chunk().transfer() | message.chunk_received().transfer(), Bytes(bytes.begin(), bytes.end())});
    });
  }

  std::optional<KeyPair> keys_;
  zmq::context_t context_;
  PeerSockets sockets_;
  std::vector<Received> received_;
};

inline Payload PayloadOf(size_t count, uint8_t first) {
  auto bytes = std::make_shared<Bytes>(count);
  for (size_t i = 0; i < count; ++i) (*bytes)[i] = static_cast<std::byte>(first + i * 7);
  return bytes;
}

inline PeerOptions Keyed(const std::string& coordinator = kLoopback) {
  return {.coordinator = coordinator, .keys = MakeKeyPair()};
}

inline int PortOf(const std::string& endpoint) { return std::stoi(endpoint.substr(endpoint.rfind(':') + 1)); }

// Sends until something comes of it.
inline bool Reaches(Node& from, Node& to, uint64_t number, Milliseconds patience = kPeerPatience) {
  for (const Milliseconds end = Now() + patience; Now() < end;) {
    to.Clear();  // else what came before would be all that is waited for
    from.Send(to, number);
    for (const Received& received : to.Await(1, 100)) {
      if (received.number == number && received.route == from.route()) return true;
    }
  }
  return false;
}

// A socket that is no PeerSockets, and what it sends.
class Outsider {
 public:
  explicit Outsider(const KeyPair* keys = nullptr, const std::string& server_key = "")
      : socket_(context_, zmq::socket_type::dealer) {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::reconnect_ivl, 20);
    if (keys) ConfigureClient(socket_, *keys, server_key);
  }
  void Connect(const std::string& endpoint) { socket_.connect(endpoint); }
  void Send(const std::vector<std::string>& parts) {
    for (size_t i = 0; i < parts.size(); ++i) {
      socket_.send(zmq::buffer(parts[i]), (i + 1 < parts.size() ? zmq::send_flags::sndmore : zmq::send_flags::none) |
                                              zmq::send_flags::dontwait);
    }
  }

 private:
  zmq::context_t context_;
  zmq::socket_t socket_;
};

inline std::string FrameOf(uint64_t number, bool with_bytes) {
  ClusterMessage message;
  if (with_bytes) {
    message.mutable_chunk()->set_transfer(number);
  } else {
    message.mutable_chunk_received()->set_transfer(number);
  }
  return EncodeFrame(message);
}

}  // namespace crema::testing_distributed

#endif  // CREMA_TESTS_DISTRIBUTED_PEER_SOCKETS_FIXTURE_H_
