// The protocol's messages over ZeroMQ. A coordinator has a ROUTER for each endpoint, a worker two DEALERs, one for each
// lane, so that control is not held up by bytes. No ZeroMQ heartbeats: they cut connections on which a large message
// takes long; the protocol has its own.
#ifndef CREMA_DISTRIBUTED_SOCKETS_SOCKETS_H_
#define CREMA_DISTRIBUTED_SOCKETS_SOCKETS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>
#include <zmq.hpp>

#include "distributed/protocol/outgoing.h"
#include "distributed/security/keys.h"
#include "distributed/sockets/peer_sockets.h"
#include "distributed/sockets/socket_messages.h"

namespace crema {

// Ends a wait from any thread.
class WakeUp {
 public:
  WakeUp();
  ~WakeUp();
  WakeUp(const WakeUp&) = delete;
  WakeUp& operator=(const WakeUp&) = delete;

  void Signal() const;
  void Clear() const;
  int descriptor() const { return fd_; }

 private:
  int fd_ = -1;
};

// Used by one thread, but for Wake and the counters' readers, which may see old values.
class ServerSockets {
 public:
  // Messages with more bytes behind them than this are refused by the socket.
  ServerSockets(zmq::context_t& context, uint64_t most_chunk_bytes);

  // Listens there, too, at 127.0.0.1 where that is "tcp://localhost:PORT"; with keys only those whom the context's
  // Authenticator knows get in. Returns the endpoint as it is: with its port where that was left to the system. Throws
  // EnvironmentError.
  std::string Bind(const std::string& endpoint, const KeyPair* keys);
  // How the routes begin of those who came by the socket that was bound as the `index`-th, from 0.
  static std::string RoutesOf(size_t index) { return std::string(1, static_cast<char>(index)); }
  // What cannot be sent at once, or to nobody, is dropped and counted: the protocol makes good for it.
  void Send(const Outgoing& outgoing);
  // Waits until something comes, for at most `timeout` ms or until Wake; hands over what is there.
  void Receive(Milliseconds timeout, const OnReceived& handler);
  void Wake() const { wake_.Signal(); }

  uint64_t malformed() const { return malformed_; }
  uint64_t unsent() const { return unsent_; }

 private:
  zmq::context_t& context_;
  const uint64_t most_chunk_bytes_;
  std::vector<zmq::socket_t> sockets_;
  WakeUp wake_;
  uint64_t malformed_ = 0, unsent_ = 0;
};

// What did not get through between this worker and others so far.
struct PeerLosses {
  uint64_t malformed = 0;  // messages that cannot be read
  uint64_t unsent = 0;     // messages for those who are no peers any more, or take nothing
  uint64_t bad_peers = 0;  // addresses that are none, or to which no socket can be connected
  uint64_t early = 0;      // Worker::early_dropped
};

// Used by one thread, but for Wake.
class WorkerSockets {
 public:
  struct Keys {
    KeyPair own;
    std::string server_public;
  };

  // What becomes of messages while there is no connection: those to the coordinator would come late and all at once,
  // those that it sent last are of one that is no more.
  enum class Unconnected { kDropped, kKept };

  // Connects in the background, again and again. Throws EnvironmentError where the endpoint is no endpoint.
  WorkerSockets(zmq::context_t& context, std::string endpoint, std::optional<Keys> keys,
                Unconnected unconnected = Unconnected::kDropped);

  // From now on other workers are spoken with, too.
  void AddPeers(std::unique_ptr<PeerSockets> peers) { peers_ = std::move(peers); }

  // Drops the connections to the coordinator, and with them who this was, and makes new ones.
  void Reconnect();
  // Says who else may be sent to, and be heard.
  void SetPeers(std::span<const PeerAddress> peers);
  void Send(const Outgoing& outgoing);
  // The route is empty for the coordinator's messages; PeerSockets::Receive says what it is for the others'.
  void Receive(Milliseconds timeout, const OnReceived& handler);
  void Wake() const { wake_.Signal(); }
  // All but `early`.
  PeerLosses losses() const {
    return peers_ ? PeerLosses{peers_->malformed(), peers_->unsent(), peers_->bad_peers(), 0} : PeerLosses{};
  }

 private:
  zmq::socket_t Connect(const std::string& name);

  zmq::context_t& context_;
  const std::string endpoint_;
  const std::optional<Keys> keys_;
  const Unconnected unconnected_;
  zmq::socket_t control_, bulk_;
  std::unique_ptr<PeerSockets> peers_;
  WakeUp wake_;
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_SOCKETS_SOCKETS_H_
