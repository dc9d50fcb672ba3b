#include "distributed/sockets/socket_messages.h"

#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>

#include "crema/error.h"

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace crema {

namespace {

constexpr int kMillisecondsToSend = 1000;

// Within a process the receiver reads what the sender wrote. libzmq puts the one before the other, but as it is not
// instrumented the thread sanitizer does not see how.
#if defined(__SANITIZE_THREAD__)
void HandOver(void* data) { __tsan_release(data); }
void TakeOver(void* data) { __tsan_acquire(data); }
#else
void HandOver(void*) {}
void TakeOver(void*) {}
#endif

// The bytes of a slice without a copy: the message holds on to them.
zmq::message_t MessageOf(const Slice& slice) {
  if (slice.count == 0) return zmq::message_t();
  auto held = std::make_unique<Payload>(slice.payload);
  void* const data = const_cast<std::byte*>(slice.bytes().data());  // ZeroMQ only reads what is sent
  HandOver(data);
  return zmq::message_t(
      data, slice.count, [](void*, void* hint) { delete static_cast<Payload*>(hint); }, held.release());
}

std::span<const std::byte> BytesOf(const zmq::message_t& part) {
  return {static_cast<const std::byte*>(part.data()), part.size()};
}

// tcp://[::ffff:127.0.0.1]:5570, as sockets for both protocols call it, is tcp://127.0.0.1:5570.
std::string WithPlainAddress(const std::string& endpoint) {
  constexpr std::string_view kMapped = "tcp://[::ffff:";
  const size_t end = endpoint.find(']');
  if (!endpoint.starts_with(kMapped) || end == std::string::npos) return endpoint;
  return "tcp://" + endpoint.substr(kMapped.size(), end - kMapped.size()) + endpoint.substr(end + 1);
}

}  // namespace

void SetCommonOptions(zmq::socket_t& socket, uint64_t most_bytes) {
  socket.set(zmq::sockopt::linger, kMillisecondsToSend);
  socket.set(zmq::sockopt::maxmsgsize, static_cast<int64_t>(most_bytes));
  socket.set(zmq::sockopt::handshake_ivl, 10'000);
  socket.set(zmq::sockopt::tcp_keepalive, 1);
  socket.set(zmq::sockopt::tcp_keepalive_idle, 10);
  socket.set(zmq::sockopt::tcp_keepalive_intvl, 5);
  socket.set(zmq::sockopt::tcp_keepalive_cnt, 4);
  socket.set(zmq::sockopt::ipv6, 1);
}

std::string ListenAt(zmq::socket_t& socket, const std::string& endpoint) {
  try {
    socket.bind(endpoint);
  } catch (const zmq::error_t& error) {
    throw EnvironmentError(
        "cannot listen at " + endpoint + ": " + error.what() +
        (error.num() == EADDRINUSE ? "; another program does, or did until a moment ago" : "") +
        (error.num() == ENODEV
             ? "; give an address of this machine in numbers, the name of one of its networks (lo), or * for all"
             : ""));
  }
  return WithPlainAddress(socket.get(zmq::sockopt::last_endpoint));
}

bool SendParts(zmq::socket_t& socket, const std::string* identity, const Outgoing& outgoing) {
  using zmq::send_flags;
  const bool with_bytes = outgoing.slice.payload != nullptr;
  try {
    if (identity && !socket.send(zmq::buffer(*identity), send_flags::sndmore | send_flags::dontwait)) return false;
    const send_flags more = with_bytes ? send_flags::sndmore : send_flags::none;
    if (!socket.send(zmq::buffer(EncodeFrame(outgoing.message)), more | send_flags::dontwait)) return false;
    return !with_bytes || socket.send(MessageOf(outgoing.slice), send_flags::dontwait).has_value();
  } catch (const zmq::error_t& error) {
    if (error.num() == EHOSTUNREACH || error.num() == EAGAIN) return false;
    throw EnvironmentError(std::string("ZeroMQ cannot send: ") + error.what());
  }
}

bool ReceiveParts(zmq::socket_t& socket, std::vector<zmq::message_t>& parts) {
  parts.clear();
  do {
    zmq::message_t part;
    if (!socket.recv(part, zmq::recv_flags::dontwait)) return false;
    TakeOver(part.data());
    parts.push_back(std::move(part));
  } while (parts.back().more());
  return true;
}

bool DecodeParts(std::span<zmq::message_t> parts, ClusterMessage* message, std::span<const std::byte>* bytes) {
  if (parts.empty() || parts.size() > 2 || !DecodeFrame(BytesOf(parts[0]), message)) return false;
  if ((parts.size() == 2) != message->has_chunk()) return false;
  *bytes = parts.size() == 2 ? BytesOf(parts[1]) : std::span<const std::byte>();
  return true;
}

zmq::pollitem_t ItemOf(zmq::socket_t& socket) { return {socket.handle(), 0, ZMQ_POLLIN, 0}; }

}  // namespace crema
