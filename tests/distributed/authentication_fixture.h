// Real sockets on the loopback interface, with keys.
#ifndef CREMA_TESTS_DISTRIBUTED_AUTHENTICATION_FIXTURE_H_
#define CREMA_TESTS_DISTRIBUTED_AUTHENTICATION_FIXTURE_H_

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>
#include <zmq.hpp>

#include "crema/error.h"
#include "distributed/key_folder.h"
#include "distributed/security/authentication.h"
#include "distributed/security/self_test.h"
#include "distributed/sockets/handshake.h"
#include "errors.h"

namespace crema::testing_distributed {

// Much longer than a handshake on one machine takes; every case that waits for it also sees somebody get through.
constexpr std::chrono::milliseconds kQuiet{200};
constexpr std::chrono::milliseconds kPatience{10000};

inline bool Has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// A coordinator's context and socket, and those who connect to it.
class Authentication : public testing::Test {
 protected:
  void SetUp() override {
    server_keys_ = folder_.Make("coordinator");
    worker_keys_ = folder_.Make("worker");
    folder_.Authorize("worker");
  }

  void Start(int log_interval_ms = 60000) {
    authenticator_ = std::make_unique<Authenticator>(
        context_, folder_.authorized(),
        [this](const std::string& message) {
          const std::lock_guard lock(mutex_);
          log_.push_back(message);
        },
        log_interval_ms);
  }
  // A new socket that workers connect to.
  void Bind() {
    server_ = zmq::socket_t(context_, zmq::socket_type::router);
    server_.set(zmq::sockopt::linger, 0);
    ConfigureServer(server_, server_keys_);
    BindAsItIs();
  }
  void BindAsItIs() {
    server_.bind("tcp://127.0.0.1:*");
    endpoint_ = server_.get(zmq::sockopt::last_endpoint);
  }

  zmq::socket_t PlainClient() {
    zmq::socket_t client(clients_, zmq::socket_type::dealer);
    client.set(zmq::sockopt::linger, 0);
    return client;
  }
  zmq::socket_t Client(const KeyPair& keys, const std::string& server_key) {
    zmq::socket_t client = PlainClient();
    ConfigureClient(client, keys, server_key);
    return client;
  }
  zmq::socket_t Client(const KeyPair& keys) { return Client(keys, server_keys_.public_key); }

  // Sends through `client` and says whether it came, and from whom.
  bool Arrives(zmq::socket_t& client, std::chrono::milliseconds wait, std::string* sender = nullptr) {
    client.send(zmq::str_buffer("hello"), zmq::send_flags::dontwait);
    server_.set(zmq::sockopt::rcvtimeo, static_cast<int>(wait.count()));
    zmq::message_t identity, text;
    if (!server_.recv(identity)) return false;
    EXPECT_TRUE(server_.recv(text));
    EXPECT_EQ(text.to_string(), "hello");
    if (sender) *sender = SenderOf(text);
    return true;
  }
  bool GetsIn(zmq::socket_t client, std::string* sender = nullptr) {
    client.connect(endpoint_);
    return Arrives(client, kPatience, sender);
  }
  bool StaysOut(zmq::socket_t client) {
    client.connect(endpoint_);
    return !Arrives(client, kQuiet);
  }
  // Of connecting it; waits for one, or for so many hang-ups.
  HandshakeWatch::Outcome OutcomeOf(zmq::socket_t& client, int enough = 1000, int* hang_ups = nullptr) {
    HandshakeWatch watch(clients_, client);
    client.connect(endpoint_);
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (watch.outcome() == HandshakeWatch::Outcome::kPending && watch.hang_ups() < enough &&
           std::chrono::steady_clock::now() < end) {
      zmq::pollitem_t item{watch.events().handle(), 0, ZMQ_POLLIN, 0};
      zmq::poll(&item, 1, std::chrono::milliseconds(100));
      watch.Read();
    }
    if (hang_ups) *hang_ups = watch.hang_ups();
    return watch.outcome();
  }
  std::vector<std::string> Log() {
    const std::lock_guard lock(mutex_);
    return log_;
  }
  // Waits for that many lines.
  std::vector<std::string> Log(size_t lines) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (Log().size() < lines && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return Log();
  }
  std::string SelfTestError(int timeout_ms = 5000) {
    return ThrownBy<EnvironmentError>(
        [&] { CheckStrangersStayOut(endpoint_, server_keys_.public_key, MakeKeyPair(), timeout_ms); });
  }
  // What the handler answers, from the status on, to a request that a socket could make.
  std::vector<std::string> Ask(const std::vector<std::string>& frames) {
    zmq::socket_t socket(context_, zmq::socket_type::req);
    socket.set(zmq::sockopt::linger, 0);
    socket.set(zmq::sockopt::rcvtimeo, static_cast<int>(kPatience.count()));
    socket.connect("inproc://zeromq.zap.01");
    for (size_t i = 0; i < frames.size(); ++i) {
      socket.send(zmq::buffer(frames[i]), i + 1 < frames.size() ? zmq::send_flags::sndmore : zmq::send_flags::none);
    }
    std::vector<std::string> reply;
    zmq::message_t frame;
    do {
      if (!socket.recv(frame)) return {};
      reply.push_back(frame.to_string());
    } while (frame.more());
    EXPECT_EQ(reply.size(), 6u);
    EXPECT_EQ(reply[0], "1.0");
    EXPECT_EQ(reply[1], frames.size() > 1 ? frames[1] : "");
    return {reply.begin() + 2, reply.end()};
  }

  KeyFolder folder_;
  KeyPair server_keys_, worker_keys_;
  std::mutex mutex_;
  std::vector<std::string> log_;
  zmq::context_t context_, clients_;
  std::unique_ptr<Authenticator> authenticator_;
  zmq::socket_t server_;
  std::string endpoint_;
};

}  // namespace crema::testing_distributed

#endif  // CREMA_TESTS_DISTRIBUTED_AUTHENTICATION_FIXTURE_H_
