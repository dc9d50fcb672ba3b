#include "distributed/self_test.h"

#include <chrono>
#include <cstring>
#include <zmq.hpp>

#include "crema/error.h"
#include "distributed/authentication.h"
#include "distributed/library.h"

namespace crema {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kFailures =
    ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;

enum class Outcome { kOpen, kRefused, kLetIn };

// One connection, and what becomes of its handshake.
class Attempt {
 public:
  Attempt(zmq::context_t& context, const std::string& name)
      : socket_(context, zmq::socket_type::dealer), monitor_(context, zmq::socket_type::pair) {
    socket_.set(zmq::sockopt::linger, 0);
    monitor_.set(zmq::sockopt::linger, 0);
    const std::string endpoint = "inproc://" + name;
    if (zmq_socket_monitor(socket_.handle(), endpoint.c_str(),
                           ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED | kFailures) != 0) {
      throw EnvironmentError(std::string("cannot watch a socket: ") + zmq_strerror(zmq_errno()));
    }
    monitor_.connect(endpoint);
  }

  zmq::socket_t& socket() { return socket_; }
  zmq::socket_t& monitor() { return monitor_; }
  Outcome outcome() const { return outcome_; }

  void Connect(const std::string& endpoint) {
    socket_.set(zmq::sockopt::ipv6, endpoint.find('[') != std::string::npos);
    socket_.connect(endpoint);
  }

  // Of one event that has come.
  void Note() {
    zmq::message_t event, address;
    if (!monitor_.recv(event) || !monitor_.recv(address) || outcome_ != Outcome::kOpen) return;
    uint16_t number = 0;
    std::memcpy(&number, event.data(), sizeof(number));
    outcome_ = number == ZMQ_EVENT_HANDSHAKE_SUCCEEDED ? Outcome::kLetIn : Outcome::kRefused;
  }

 private:
  zmq::socket_t socket_, monitor_;
  Outcome outcome_ = Outcome::kOpen;
};

// The address at which a socket that listens on every one is reached from here.
std::string Reachable(std::string endpoint) {
  for (const auto& [all, own] : {std::pair{"tcp://0.0.0.0:", "tcp://127.0.0.1:"}, {"tcp://[::]:", "tcp://[::1]:"}}) {
    if (endpoint.starts_with(all)) return endpoint.replace(0, std::strlen(all), own);
  }
  return endpoint;
}

std::string LibraryName() {
  const LibraryFacts facts = DescribeLibrary();
  return "libzmq " + std::to_string(facts.major) + "." + std::to_string(facts.minor) + "." +
         std::to_string(facts.patch);
}

[[noreturn]] void FailAsOpen(const std::string& endpoint, const std::string& how) {
  throw EnvironmentError("the self-test of " + endpoint + " found it open: this " + LibraryName() +
                         " lets strangers in, " + how +
                         "; nothing was started. Install libzmq 4.3.4 as your system ships it, and report this");
}

}  // namespace

void CheckStrangersStayOut(const std::string& endpoint, const std::string& server_public_key, const KeyPair& stranger,
                           int timeout_ms) {
  zmq::context_t context;
  Attempt with_key(context, "with_key"), without_key(context, "without_key");
  ConfigureClient(with_key.socket(), stranger, server_public_key);
  for (Attempt* attempt : {&with_key, &without_key}) attempt->Connect(Reachable(endpoint));

  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(timeout_ms);
  while (with_key.outcome() == Outcome::kOpen || without_key.outcome() == Outcome::kOpen) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) {
      throw EnvironmentError("the self-test of " + endpoint + " got no answer within " + std::to_string(timeout_ms) +
                             " ms, so nobody knows whether strangers stay out; does a firewall block it from here?");
    }
    zmq::pollitem_t items[] = {{with_key.monitor().handle(), 0, ZMQ_POLLIN, 0},
                               {without_key.monitor().handle(), 0, ZMQ_POLLIN, 0}};
    try {
      zmq::poll(items, 2, left);
    } catch (const zmq::error_t& error) {
      if (error.num() == EINTR) continue;
      throw;
    }
    if (items[0].revents) with_key.Note();
    if (items[1].revents) without_key.Note();
  }
  if (with_key.outcome() == Outcome::kLetIn) FailAsOpen(endpoint, "whatever their key");
  if (without_key.outcome() == Outcome::kLetIn) FailAsOpen(endpoint, "even without a key");
}

}  // namespace crema
