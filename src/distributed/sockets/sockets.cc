#include "distributed/sockets/sockets.h"

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
#include "distributed/security/authentication.h"

namespace crema {

namespace {

void Wait(std::vector<zmq::pollitem_t>& items, Milliseconds timeout, const WakeUp& wake) {
  try {
    zmq::poll(items, std::chrono::milliseconds(std::clamp<Milliseconds>(timeout, 0, 60'000)));
  } catch (const zmq::error_t& error) {
    if (error.num() != EINTR) throw;
  }
  wake.Clear();
}

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
  SetCommonOptions(socket, std::max<uint64_t>(most_chunk_bytes_, 64 << 10) + (64 << 10));
  // Else what cannot be routed vanishes without a word.
  socket.set(zmq::sockopt::router_mandatory, 1);
  if (keys) ConfigureServer(socket, *keys);
  constexpr std::string_view kLocalhost = "tcp://localhost:";  // ZeroMQ listens at addresses only
  const bool local = endpoint.starts_with(kLocalhost);
  const std::string bound =
      ListenAt(socket, local ? "tcp://127.0.0.1:" + endpoint.substr(kLocalhost.size()) : endpoint);
  sockets_.push_back(std::move(socket));
  return bound;
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
      if (parts.size() < 2 || !DecodeParts(std::span(parts).subspan(1), &message, &bytes)) {
        ++malformed_;
        continue;
      }
      handler(RoutesOf(i) + parts[0].to_string(), message, bytes);
    }
  }
}

WorkerSockets::WorkerSockets(zmq::context_t& context, std::string endpoint, std::optional<Keys> keys,
                             Unconnected unconnected)
    : context_(context), endpoint_(std::move(endpoint)), keys_(std::move(keys)), unconnected_(unconnected) {
  Reconnect();
}

zmq::socket_t WorkerSockets::Connect(const std::string& name) {
  zmq::socket_t socket(context_, zmq::socket_type::dealer);
  SetCommonOptions(socket, kMostSocketBytes);
  socket.set(zmq::sockopt::routing_id, name);
  socket.set(zmq::sockopt::immediate, unconnected_ == Unconnected::kDropped ? 1 : 0);
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

void WorkerSockets::SetPeers(std::span<const PeerAddress> peers) {
  if (peers_) peers_->SetPeers(peers);
}

void WorkerSockets::Send(const Outgoing& outgoing) {
  if (outgoing.lane == Lane::kPeer) {
    if (peers_) peers_->Send(outgoing);
    return;
  }
  SendParts(outgoing.lane == Lane::kBulk ? bulk_ : control_, nullptr, outgoing);
}

void WorkerSockets::Receive(Milliseconds timeout, const OnReceived& handler) {
  std::vector<zmq::pollitem_t> items = {ItemOf(control_), ItemOf(bulk_), ItemOf(wake_)};
  if (peers_) items.push_back(peers_->item());
  Wait(items, timeout, wake_);
  std::vector<zmq::message_t> parts;
  for (zmq::socket_t* socket : {&control_, &bulk_}) {
    for (int n = 0; n < kMostAtOnce && ReceiveParts(*socket, parts); ++n) {
      ClusterMessage message;
      std::span<const std::byte> bytes;
      if (DecodeParts(parts, &message, &bytes)) handler("", message, bytes);
    }
  }
  if (peers_) peers_->Receive(handler);
}

}  // namespace crema
