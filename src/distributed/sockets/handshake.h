// What becomes of a socket's attempts to connect: ZeroMQ itself tells a program nothing when it is turned away.
#ifndef CREMA_DISTRIBUTED_SOCKETS_HANDSHAKE_H_
#define CREMA_DISTRIBUTED_SOCKETS_HANDSHAKE_H_

#include <zmq.hpp>

namespace crema {

// Watches a socket that connects over tcp:// or ipc://. Use it from that socket's thread, Read what comes, and let it
// go before the socket and when there is an outcome.
class HandshakeWatch {
 public:
  enum class Outcome {
    kPending,    // nothing yet, or the other side hung up; ZeroMQ tries again
    kLetIn,      // both sides took each other's keys, or neither has any
    kRefused,    // the other side's Authenticator does not know the key; ZeroMQ does not try again with this socket
    kDifferent,  // one side has keys and the other none, or it does not speak ZeroMQ; the same
  };

  // Before `watched` connects.
  HandshakeWatch(zmq::context_t& context, zmq::socket_t& watched);
  ~HandshakeWatch();
  HandshakeWatch(const HandshakeWatch&) = delete;
  HandshakeWatch& operator=(const HandshakeWatch&) = delete;

  // To poll: readable when there is something to Read.
  zmq::socket_t& events() { return events_; }

  // Takes note of all that has come; does not wait.
  void Read();

  // The first one that was not kPending.
  Outcome outcome() const { return outcome_; }
  // Connections that the other side closed before the end of the handshake: as one does whose key is another than
  // `server_public_key` of ConfigureClient, and one with keys while no Authenticator runs.
  int hang_ups() const { return hang_ups_; }

 private:
  zmq::socket_t& watched_;
  zmq::socket_t events_;
  Outcome outcome_ = Outcome::kPending;
  int hang_ups_ = 0;
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_SOCKETS_HANDSHAKE_H_
