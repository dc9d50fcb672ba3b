#include "distributed/security/self_test.h"

#include <chrono>
#include <cstring>
#include <zmq.hpp>

#include "crema/error.h"
#include "distributed/security/authentication.h"
#include "distributed/sockets/handshake.h"
#include "distributed/sockets/library.h"

namespace crema {

namespace {

using Clock = std::chrono::steady_clock;

using Outcome = HandshakeWatch::Outcome;

// Whoever hangs up so often keeps out, even if the reason is lost each time.
constexpr int kHangUps = 5;
constexpr int kRetryMs = 20;

// A connection that should come to nothing.
struct Attempt {
  explicit Attempt(zmq::context_t& context) : socket(context, zmq::socket_type::dealer), watch(context, socket) {
    socket.set(zmq::sockopt::linger, 0);
    socket.set(zmq::sockopt::reconnect_ivl, kRetryMs);
  }

  void Connect(const std::string& endpoint) {
    socket.set(zmq::sockopt::ipv6, endpoint.find('[') != std::string::npos);
    socket.connect(endpoint);
  }
  bool pending() const { return watch.outcome() == Outcome::kPending && watch.hang_ups() < kHangUps; }
  bool let_in() const { return watch.outcome() == Outcome::kLetIn; }

  zmq::socket_t socket;
  HandshakeWatch watch;
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
  Attempt with_key(context), without_key(context);
  ConfigureClient(with_key.socket, stranger, server_public_key);
  for (Attempt* attempt : {&with_key, &without_key}) attempt->Connect(Reachable(endpoint));

  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(timeout_ms);
  while (with_key.pending() || without_key.pending()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) {
      throw EnvironmentError("the self-test of " + endpoint + " got no answer within " + std::to_string(timeout_ms) +
                             " ms, so nobody knows whether strangers stay out; does a firewall block it from here?");
    }
    zmq::pollitem_t items[] = {{with_key.watch.events().handle(), 0, ZMQ_POLLIN, 0},
                               {without_key.watch.events().handle(), 0, ZMQ_POLLIN, 0}};
    try {
      zmq::poll(items, 2, left);
    } catch (const zmq::error_t& error) {
      if (error.num() == EINTR) continue;
      throw;
    }
    with_key.watch.Read();
    without_key.watch.Read();
  }
  if (with_key.let_in()) FailAsOpen(endpoint, "whatever their key");
  if (without_key.let_in()) FailAsOpen(endpoint, "even without a key");
}

}  // namespace crema
