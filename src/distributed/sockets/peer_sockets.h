// Connections between workers: one socket where others come in, and one to each of them. What goes out never comes back
// on the same connection.
#ifndef CREMA_DISTRIBUTED_SOCKETS_PEER_SOCKETS_H_
#define CREMA_DISTRIBUTED_SOCKETS_PEER_SOCKETS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <zmq.hpp>

#include "distributed/security/authentication.h"
#include "distributed/security/keys.h"
#include "distributed/security/known_keys.h"
#include "distributed/sockets/handshake.h"
#include "distributed/sockets/private_folder.h"
#include "distributed/sockets/socket_messages.h"

namespace crema {

struct PeerOptions {
  // Where this worker reaches the coordinator: others of that coordinator's workers are expected to reach this one on
  // the same way.
  std::string coordinator;
  // HOST or HOST:PORT by which others reach this machine where it cannot know that, behind an address translation for
  // one; then it listens at all its addresses, at that port. Empty: what AddressTowards(coordinator) says, at any port;
  // at ipc:// coordinators a socket in a private folder, at inproc:// ones a name in the same context.
  std::string announced = {};
  // With them only peers get in, which have keys, too.
  std::optional<KeyPair> keys = {};
  // Else there must be keys where other machines can connect.
  bool allow_plaintext = false;
};

// Used by one thread, but for address() and the counters' readers, which may see old values.
class PeerSockets {
 public:
  // Listens; there may be one with keys for each context. Throws UserError where keys are missing or `announced` makes
  // no sense; EnvironmentError where it cannot listen, does not know at which address, or strangers get in.
  PeerSockets(zmq::context_t& context, PeerOptions options);

  // What others are to be told.
  const PeerAddress& address() const { return address_; }

  // Those who are here from now on; connections to all others end, and with keys nothing from them is let through any
  // more. This one may be among them. Whatever makes no sense is counted and is no peer.
  void SetPeers(std::span<const PeerAddress> peers);

  // `outgoing.route` is a peer's endpoint. Waits for its connection if there is none yet; what cannot be kept until
  // then, or is for nobody, is dropped and counted.
  void Send(const Outgoing& outgoing);

  // To poll: readable when there may be something to Receive.
  zmq::pollitem_t item() { return ItemOf(inlet_); }
  // Hands over what has come, without waiting. The route is "p" and, with keys, the public key of the sender.
  void Receive(const OnReceived& handler);

  uint64_t malformed() const { return malformed_; }
  uint64_t unsent() const { return unsent_; }
  // Addresses that are none, or to which no socket can be connected.
  uint64_t bad_peers() const { return bad_peers_; }
  // Messages of those who are no peers any more, and connections of those who are none.
  uint64_t refused() const { return strangers_ + (authenticator_ ? authenticator_->refused() : 0); }

 private:
  struct Peer {
    std::string public_key;  // empty without keys
    zmq::socket_t socket;    // empty until something is sent
    std::optional<Milliseconds> connected;
    std::unique_ptr<HandshakeWatch> watch;  // until it is let in; refers to the socket
  };

  std::string Listen();
  bool IsPeer(const PeerAddress& address) const;
  // Whether its socket is of no use any more, and it is time for another.
  bool IsOver(Peer& peer);
  bool Connect(const std::string& endpoint, Peer& peer);

  zmq::context_t& context_;
  const PeerOptions options_;
  std::unique_ptr<PrivateFolder> folder_;
  const std::shared_ptr<KeySet> known_ = std::make_shared<KeySet>();
  std::unique_ptr<Authenticator> authenticator_;  // with keys
  zmq::socket_t inlet_;
  PeerAddress address_;
  std::map<std::string, Peer> peers_;  // by endpoint
  uint64_t malformed_ = 0, unsent_ = 0, bad_peers_ = 0, strangers_ = 0;
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_SOCKETS_PEER_SOCKETS_H_
