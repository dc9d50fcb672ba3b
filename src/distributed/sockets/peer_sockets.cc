#include "distributed/sockets/peer_sockets.h"

#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "crema/error.h"
#include "distributed/protocol/environment.h"
#include "distributed/security/security.h"
#include "distributed/sockets/own_address.h"

namespace crema {

namespace {

constexpr int kMillisecondsToLinger = 200;
constexpr size_t kLongestEndpoint = 300;
// Nothing comes back on these.
constexpr int kMostAnswers = 1, kMostAnswerBytes = 1024;
// A connection that takes nothing any more is made anew, but not more often than this. It is one whose other side is
// stuck, or which ZeroMQ gave up because what answered there spoke something else.
constexpr Milliseconds kPatience = 2'000;

constexpr std::string_view kIpc = "ipc://";

bool IsInproc(std::string_view endpoint) { return endpoint.starts_with(kInproc); }

}  // namespace

PeerSockets::PeerSockets(zmq::context_t& context, PeerOptions options)
    : context_(context), options_(std::move(options)), inlet_(context, zmq::socket_type::router) {
  SetCommonOptions(inlet_, kMostSocketBytes);
  if (options_.keys) {
    authenticator_ = std::make_unique<Authenticator>(context_, known_, [](const std::string&) {});
    ConfigureServer(inlet_, *options_.keys);
    address_.set_public_key(options_.keys->public_key);
  }
  address_.set_endpoint(Listen());
}

std::string PeerSockets::Listen() {
  NamedAddress named;
  std::string where;
  if (!options_.announced.empty()) {
    named = ParseNamedAddress(options_.announced);
    where = "tcp://*:" + (named.port ? std::to_string(named.port) : "*");
  } else if (IsInproc(options_.coordinator)) {
    where = options_.coordinator + "/" + std::to_string(Draw());
  } else if (options_.coordinator.starts_with(kIpc)) {
    folder_ = std::make_unique<PrivateFolder>();
    where = std::string(kIpc) + folder_->socket();
  } else if (options_.coordinator.starts_with(kTcp)) {
    where = std::string(kTcp) + AddressTowards(options_.coordinator) + ":*";
  } else {
    throw UserError(
        "workers that train with one another need a coordinator at an endpoint like tcp://HOST:5570, not \"" +
        options_.coordinator + "\"");
  }
  if (!options_.keys && !options_.allow_plaintext && !IsLocal(where)) {
    throw UserError("other machines could connect to this worker at " + where +
                    ", but it has no keys; give --secret_key and --server_key (`crema keygen --help` tells how), or "
                    "--allow_plaintext, with which anybody who can reach it can read and change what is learned");
  }
  const std::string bound = ListenAt(inlet_, where);
  if (authenticator_) authenticator_->SelfTest(bound, options_.keys->public_key);
  if (options_.announced.empty()) return bound;
  return std::string(kTcp) + named.host + bound.substr(bound.rfind(':'));
}

bool PeerSockets::IsPeer(const PeerAddress& address) const {
  const std::string& endpoint = address.endpoint();
  // Within a process nobody is reached in another way.
  const bool reachable =
      IsInproc(address_.endpoint()) ? IsInproc(endpoint) : endpoint.starts_with(kTcp) || endpoint.starts_with(kIpc);
  return endpoint.size() <= kLongestEndpoint && reachable && endpoint.find('\0') == std::string::npos &&
         (options_.keys ? IsKey(address.public_key()) : address.public_key().empty());
}

void PeerSockets::SetPeers(std::span<const PeerAddress> peers) {
  std::map<std::string, Peer> before = std::exchange(peers_, {});
  std::set<std::string> keys;
  for (const PeerAddress& address : peers) {
    if (!IsPeer(address)) {
      ++bad_peers_;
      continue;
    }
    keys.insert(address.public_key());
    if (address.endpoint() == address_.endpoint()) continue;
    if (peers_.contains(address.endpoint())) {
      ++bad_peers_;
      continue;
    }
    const auto same = before.find(address.endpoint());
    if (same != before.end() && same->second.public_key == address.public_key()) {
      peers_.insert(before.extract(same));
    } else {
      peers_[address.endpoint()].public_key = address.public_key();
    }
  }
  known_->Set(std::move(keys));
  if (authenticator_) authenticator_->Recheck();
}

bool PeerSockets::IsOver(Peer& peer) {
  if (!peer.watch) return false;
  peer.watch->Read();
  const HandshakeWatch::Outcome outcome = peer.watch->outcome();
  if (outcome == HandshakeWatch::Outcome::kLetIn) peer.watch = nullptr;
  return outcome == HandshakeWatch::Outcome::kRefused || outcome == HandshakeWatch::Outcome::kDifferent;
}

bool PeerSockets::Connect(const std::string& endpoint, Peer& peer) {
  peer.connected = Now();
  peer.watch = nullptr;
  try {
    peer.socket = zmq::socket_t(context_, zmq::socket_type::dealer);
    SetCommonOptions(peer.socket, kMostAnswerBytes);
    peer.socket.set(zmq::sockopt::rcvhwm, kMostAnswers);
    peer.socket.set(zmq::sockopt::linger, kMillisecondsToLinger);
    peer.socket.set(zmq::sockopt::connect_timeout, 5'000);
    peer.socket.set(zmq::sockopt::reconnect_ivl, 50);
    peer.socket.set(zmq::sockopt::reconnect_ivl_max, 2'000);
    if (options_.keys) ConfigureClient(peer.socket, *options_.keys, peer.public_key);
    // Within a process there is none.
    if (!IsInproc(endpoint)) peer.watch = std::make_unique<HandshakeWatch>(context_, peer.socket);
    peer.socket.connect(endpoint);
    return true;
  } catch (const std::exception&) {
    peer.watch = nullptr;
    peer.socket = zmq::socket_t();
    ++bad_peers_;
    return false;
  }
}

void PeerSockets::Send(const Outgoing& outgoing) {
  const auto at = peers_.find(outgoing.route);
  if (at == peers_.end()) {
    ++unsent_;
    return;
  }
  Peer& peer = at->second;
  if (peer.socket && !IsOver(peer) && SendParts(peer.socket, nullptr, outgoing)) return;
  // Within a process a peer that is gone does not come back under its name, and one that is there loses nothing.
  const bool final = peer.socket && IsInproc(at->first);
  const bool anew = !peer.connected || (!final && Now() - *peer.connected >= kPatience);
  if (!anew || !Connect(at->first, peer) || !SendParts(peer.socket, nullptr, outgoing)) ++unsent_;
}

void PeerSockets::Receive(const OnReceived& handler) {
  // Else events would pile up that nobody wants to know.
  for (auto& [endpoint, peer] : peers_) IsOver(peer);
  std::vector<zmq::message_t> parts;
  for (int n = 0; n < kMostAtOnce && ReceiveParts(inlet_, parts); ++n) {
    ClusterMessage message;
    std::span<const std::byte> bytes;
    if (parts.size() < 2 || !DecodeParts(std::span(parts).subspan(1), &message, &bytes)) {
      ++malformed_;
      continue;
    }
    const std::string sender = SenderOf(parts[1]);
    // Its key was taken back after it connected.
    if (options_.keys && !known_->NameOf(sender)) {
      ++strangers_;
      continue;
    }
    handler("p" + sender, message, bytes);
  }
}

}  // namespace crema
