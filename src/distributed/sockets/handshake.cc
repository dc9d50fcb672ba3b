#include "distributed/sockets/handshake.h"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>

#include "crema/error.h"

namespace crema {

HandshakeWatch::HandshakeWatch(zmq::context_t& context, zmq::socket_t& watched)
    : watched_(watched), events_(context, zmq::socket_type::pair) {
  static std::atomic<int> next{0};
  const std::string endpoint = "inproc://crema.handshake." + std::to_string(next++);
  events_.set(zmq::sockopt::linger, 0);
  if (zmq_socket_monitor(watched_.handle(), endpoint.c_str(),
                         ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                             ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH) != 0) {
    throw EnvironmentError(std::string("cannot watch a connection: ") + zmq_strerror(zmq_errno()));
  }
  try {
    events_.connect(endpoint);
  } catch (...) {
    zmq_socket_monitor(watched_.handle(), nullptr, 0);
    throw;
  }
}

// libzmq would block when it has an event and nobody to tell it.
HandshakeWatch::~HandshakeWatch() { zmq_socket_monitor(watched_.handle(), nullptr, 0); }

void HandshakeWatch::Read() {
  zmq::message_t event, address;
  while (events_.recv(event, zmq::recv_flags::dontwait)) {
    if (!events_.recv(address)) return;
    uint16_t number = 0;
    if (event.size() < sizeof(number)) continue;
    std::memcpy(&number, event.data(), sizeof(number));
    if (number == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL) ++hang_ups_;
    if (outcome_ != Outcome::kPending) continue;
    if (number == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) outcome_ = Outcome::kLetIn;
    if (number == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH) outcome_ = Outcome::kRefused;
    if (number == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL) outcome_ = Outcome::kDifferent;
  }
}

}  // namespace crema
