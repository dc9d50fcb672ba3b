#include "distributed/sockets.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "crema/error.h"
#include "distributed/authentication.h"
#include "distributed/frame.h"

namespace crema {

namespace {

// A few messages of each socket at a time, so that a flood on one does not starve the others, nor the clock.
constexpr int kMostAtOnce = 64;
constexpr int kMillisecondsToLinger = 1000;

void SetCommon(zmq::socket_t& socket, uint64_t most_bytes) {
  socket.set(zmq::sockopt::linger, kMillisecondsToLinger);
  socket.set(zmq::sockopt::maxmsgsize, static_cast<int64_t>(most_bytes));
  socket.set(zmq::sockopt::handshake_ivl, 10'000);
  socket.set(zmq::sockopt::tcp_keepalive, 1);
  socket.set(zmq::sockopt::tcp_keepalive_idle, 10);
  socket.set(zmq::sockopt::tcp_keepalive_intvl, 5);
  socket.set(zmq::sockopt::tcp_keepalive_cnt, 4);
  socket.set(zmq::sockopt::ipv6, 1);
}

// The bytes of a slice without a copy: the message holds on to them.
zmq::message_t MessageOf(const Slice& slice) {
  if (slice.count == 0) return zmq::message_t();
  auto held = std::make_unique<Payload>(slice.payload);
  void* const data = const_cast<std::byte*>(slice.bytes().data());  // ZeroMQ only reads what is sent
  return zmq::message_t(
      data, slice.count, [](void*, void* hint) { delete static_cast<Payload*>(hint); }, held.release());
}

bool SendParts(zmq::socket_t& socket, const std::string* route, const Outgoing& outgoing) {
  using zmq::send_flags;
  const bool with_bytes = outgoing.slice.payload != nullptr;
  try {
    if (route && !socket.send(zmq::buffer(*route), send_flags::sndmore | send_flags::dontwait)) return false;
    const send_flags more = with_bytes ? send_flags::sndmore : send_flags::none;
    if (!socket.send(zmq::buffer(EncodeFrame(outgoing.message)), more | send_flags::dontwait)) return false;
    return !with_bytes || socket.send(MessageOf(outgoing.slice), send_flags::dontwait).has_value();
  } catch (const zmq::error_t& error) {
    if (error.num() == EHOSTUNREACH || error.num() == EAGAIN) return false;
    throw EnvironmentError(std::string("ZeroMQ cannot send: ") + error.what());
  }
}

// One message with all its parts; false where there is none.
bool ReceiveParts(zmq::socket_t& socket, std::vector<zmq::message_t>& parts) {
  parts.clear();
  do {
    zmq::message_t part;
    if (!socket.recv(part, zmq::recv_flags::dontwait)) return false;
    parts.push_back(std::move(part));
  } while (parts.back().more());
  return true;
}

std::span<const std::byte> BytesOf(const zmq::message_t& part) {
  return {static_cast<const std::byte*>(part.data()), part.size()};
}

// Of the parts behind the routing id.
bool Decode(std::span<zmq::message_t> parts, ClusterMessage* message, std::span<const std::byte>* bytes) {
  if (parts.empty() || parts.size() > 2 || !DecodeFrame(BytesOf(parts[0]), message)) return false;
  if ((parts.size() == 2) != message->has_chunk()) return false;
  *bytes = parts.size() == 2 ? BytesOf(parts[1]) : std::span<const std::byte>();
  return true;
}

void Wait(std::vector<zmq::pollitem_t>& items, Milliseconds timeout, const WakeUp& wake) {
  try {
    zmq::poll(items, std::chrono::milliseconds(std::clamp<Milliseconds>(timeout, 0, 60'000)));
  } catch (const zmq::error_t& error) {
    if (error.num() != EINTR) throw;
  }
  wake.Clear();
}

// tcp://[::ffff:127.0.0.1]:5570, as sockets for both protocols call it, is tcp://127.0.0.1:5570.
std::string WithPlainAddress(const std::string& endpoint) {
  constexpr std::string_view kMapped = "tcp://[::ffff:";
  const size_t end = endpoint.find(']');
  if (!endpoint.starts_with(kMapped) || end == std::string::npos) return endpoint;
  return "tcp://" + endpoint.substr(kMapped.size(), end - kMapped.size()) + endpoint.substr(end + 1);
}

zmq::pollitem_t ItemOf(zmq::socket_t& socket) { return {socket.handle(), 0, ZMQ_POLLIN, 0}; }
zmq::pollitem_t ItemOf(const WakeUp& wake) { return {nullptr, wake.descriptor(), ZMQ_POLLIN, 0}; }

}  // namespace

WakeUp::WakeUp() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (fd_ < 0) throw EnvironmentError(std::string("no eventfd can be made: ") + std::strerror(errno));
}
WakeUp::~WakeUp() { close(fd_); }

void WakeUp::Signal() const {
  const uint64_t one = 1;
  while (write(fd_, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void WakeUp::Clear() const {
  uint64_t count;
  while (read(fd_, &count, sizeof count) < 0 && errno == EINTR) {
  }
}

ServerSockets::ServerSockets(zmq::context_t& context, uint64_t most_chunk_bytes)
    : context_(context), most_chunk_bytes_(most_chunk_bytes) {}

std::string ServerSockets::Bind(const std::string& endpoint, const KeyPair* keys) {
  zmq::socket_t socket(context_, zmq::socket_type::router);
  SetCommon(socket, std::max<uint64_t>(most_chunk_bytes_, 64 << 10) + (64 << 10));
  // Else what cannot be routed vanishes without a word.
  socket.set(zmq::sockopt::router_mandatory, 1);
  if (keys) ConfigureServer(socket, *keys);
  try {
    socket.bind(endpoint);
  } catch (const zmq::error_t& error) {
    throw EnvironmentError("cannot listen at " + endpoint + ": " + error.what() +
                           (error.num() == EADDRINUSE ? "; another program does, or did until a moment ago" : "") +
                           (error.num() == ENODEV ? "; give an address of this machine, or * for all" : ""));
  }
  sockets_.push_back(std::move(socket));
  return WithPlainAddress(sockets_.back().get(zmq::sockopt::last_endpoint));
}

void ServerSockets::Send(const Outgoing& outgoing) {
  CREMA_CHECK(!outgoing.route.empty());
  const size_t index = static_cast<unsigned char>(outgoing.route[0]);
  const std::string identity = outgoing.route.substr(1);
  if (index >= sockets_.size() || !SendParts(sockets_[index], &identity, outgoing)) ++unsent_;
}

void ServerSockets::Receive(Milliseconds timeout, const OnReceived& handler) {
  std::vector<zmq::pollitem_t> items;
  for (zmq::socket_t& socket : sockets_) items.push_back(ItemOf(socket));
  items.push_back(ItemOf(wake_));
  Wait(items, timeout, wake_);
  std::vector<zmq::message_t> parts;
  for (size_t i = 0; i < sockets_.size(); ++i) {
    for (int n = 0; n < kMostAtOnce && ReceiveParts(sockets_[i], parts); ++n) {
      ClusterMessage message;
      std::span<const std::byte> bytes;
      if (parts.size() < 2 || !Decode(std::span(parts).subspan(1), &message, &bytes)) {
        ++malformed_;
        continue;
      }
      handler(std::string(1, static_cast<char>(i)) + parts[0].to_string(), message, bytes);
    }
  }
}

WorkerSockets::WorkerSockets(zmq::context_t& context, std::string endpoint, std::optional<Keys> keys)
    : context_(context), endpoint_(std::move(endpoint)), keys_(std::move(keys)) {
  Reconnect();
}

zmq::socket_t WorkerSockets::Connect(const std::string& name) {
  zmq::socket_t socket(context_, zmq::socket_type::dealer);
  SetCommon(socket, kMostMessageBytes + (64 << 10));
  socket.set(zmq::sockopt::routing_id, name);
  // What is sent while there is no connection would come late and all at once.
  socket.set(zmq::sockopt::immediate, 1);
  socket.set(zmq::sockopt::reconnect_ivl, 200);
  socket.set(zmq::sockopt::reconnect_ivl_max, 5'000);
  if (keys_) ConfigureClient(socket, keys_->own, keys_->server_public);
  try {
    socket.connect(endpoint_);
  } catch (const zmq::error_t& error) {
    throw EnvironmentError("cannot connect to \"" + endpoint_ + "\": " + error.what() +
                           "; an endpoint looks like tcp://HOST:5570");
  }
  return socket;
}

void WorkerSockets::Reconnect() {
  // The first byte of a routing id must not be 0.
  std::random_device random;
  std::string name = "w";
  for (int i = 0; i < 4; ++i) {
    const uint32_t word = random();
    name.append(reinterpret_cast<const char*>(&word), sizeof word);
  }
  for (zmq::socket_t* socket : {&control_, &bulk_}) {
    if (*socket) socket->set(zmq::sockopt::linger, 0);
  }
  control_ = Connect(name + "c");
  bulk_ = Connect(name + "b");
}

void WorkerSockets::Send(const Outgoing& outgoing) {
  SendParts(outgoing.lane == Lane::kBulk ? bulk_ : control_, nullptr, outgoing);
}

void WorkerSockets::Receive(Milliseconds timeout, const OnReceived& handler) {
  std::vector<zmq::pollitem_t> items = {ItemOf(control_), ItemOf(bulk_), ItemOf(wake_)};
  Wait(items, timeout, wake_);
  std::vector<zmq::message_t> parts;
  for (zmq::socket_t* socket : {&control_, &bulk_}) {
    for (int n = 0; n < kMostAtOnce && ReceiveParts(*socket, parts); ++n) {
      ClusterMessage message;
      std::span<const std::byte> bytes;
      if (Decode(parts, &message, &bytes)) handler("", message, bytes);
    }
  }
}

}  // namespace crema
