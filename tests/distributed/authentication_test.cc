// Who gets through to a socket, with real ones on the loopback interface.
#include "distributed/authentication.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>
#include <zmq.hpp>

#include "crema/error.h"
#include "distributed/handshake.h"
#include "distributed/key_folder.h"
#include "distributed/self_test.h"

namespace crema::testing_distributed {
namespace {

using std::chrono::milliseconds;

// Much longer than a handshake on one machine takes; every case that waits for it also sees somebody get through.
constexpr milliseconds kQuiet{200};
constexpr milliseconds kPatience{10000};

bool Has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

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
  bool Arrives(zmq::socket_t& client, milliseconds wait, std::string* sender = nullptr) {
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
      zmq::poll(&item, 1, milliseconds(100));
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
    while (Log().size() < lines && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(milliseconds(2));
    return Log();
  }
  std::string SelfTestError(int timeout_ms = 5000) {
    try {
      CheckStrangersStayOut(endpoint_, server_keys_.public_key, MakeKeyPair(), timeout_ms);
    } catch (const EnvironmentError& error) {
      return error.what();
    }
    return "";
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

TEST_F(Authentication, KnownKeyGetsInUnderItsName) {
  Start();
  Bind();
  std::string sender;
  EXPECT_TRUE(GetsIn(Client(worker_keys_), &sender));
  EXPECT_EQ(sender, "worker");
  EXPECT_EQ(authenticator_->accepted(), 1u);
  EXPECT_EQ(authenticator_->refused(), 0u);
  EXPECT_TRUE(Log().empty());
}

TEST_F(Authentication, StrangersStayOut) {
  Start();
  Bind();
  const KeyPair stranger = folder_.Make("stranger");
  EXPECT_TRUE(StaysOut(Client(stranger)));
  EXPECT_EQ(authenticator_->accepted(), 0u);
  zmq::socket_t another = Client(stranger);
  EXPECT_EQ(OutcomeOf(another), HandshakeWatch::Outcome::kRefused);
  EXPECT_GE(authenticator_->refused(), 1u);
  ASSERT_EQ(Log().size(), 1u);
  EXPECT_TRUE(Has(Log()[0], "127.0.0.1") && Has(Log()[0], stranger.public_key) && Has(Log()[0], folder_.authorized()))
      << Log()[0];
  EXPECT_FALSE(Has(Log()[0], stranger.secret_key.text()));
  EXPECT_TRUE(GetsIn(Client(worker_keys_)));
}

TEST_F(Authentication, NobodyGetsInWithoutAKey) {
  Start();
  Bind();
  EXPECT_TRUE(StaysOut(PlainClient()));
  zmq::socket_t with_password = PlainClient();
  with_password.set(zmq::sockopt::plain_username, "worker");
  with_password.set(zmq::sockopt::plain_password, "worker");
  EXPECT_TRUE(StaysOut(std::move(with_password)));
  EXPECT_EQ(authenticator_->accepted(), 0u);
  EXPECT_TRUE(GetsIn(Client(worker_keys_)));
}

TEST_F(Authentication, NothingIsSaidToAServerWithAnotherKey) {
  Start();
  Bind();
  EXPECT_TRUE(StaysOut(Client(worker_keys_, worker_keys_.public_key)));
  EXPECT_EQ(authenticator_->accepted(), 0u);
  EXPECT_TRUE(GetsIn(Client(worker_keys_)));
}

TEST_F(Authentication, SocketsWithoutKeysInTheSameContextAreNotAffected) {
  Start();
  server_ = zmq::socket_t(context_, zmq::socket_type::router);
  BindAsItIs();
  std::string sender = "nobody";
  EXPECT_TRUE(GetsIn(PlainClient(), &sender));
  EXPECT_EQ(sender, "");
  EXPECT_EQ(authenticator_->accepted() + authenticator_->refused(), 0u);
}

TEST_F(Authentication, NothingIsSaidToAServerWithoutKeys) {
  server_ = zmq::socket_t(context_, zmq::socket_type::router);
  BindAsItIs();
  EXPECT_TRUE(StaysOut(Client(worker_keys_)));
  EXPECT_TRUE(GetsIn(PlainClient()));
}

TEST_F(Authentication, WhileNoHandlerRunsNobodyGetsIn) {
  Bind();
  EXPECT_TRUE(StaysOut(Client(worker_keys_)));
  EXPECT_TRUE(StaysOut(Client(folder_.Make("stranger"))));
  EXPECT_TRUE(StaysOut(PlainClient()));
  Start();
  EXPECT_TRUE(GetsIn(Client(worker_keys_)));
  authenticator_->Stop();
  EXPECT_TRUE(StaysOut(Client(worker_keys_)));
  EXPECT_TRUE(StaysOut(Client(folder_.Make("another"))));
  EXPECT_EQ(SelfTestError(), "");
}

TEST_F(Authentication, FolderIsFollowed) {
  Start();
  Bind();
  const KeyPair late = folder_.Make("late");
  EXPECT_TRUE(StaysOut(Client(late)));
  folder_.Authorize("late");
  std::string sender;
  EXPECT_TRUE(GetsIn(Client(late), &sender));
  EXPECT_EQ(sender, "late");

  zmq::socket_t standing = Client(late);
  standing.connect(endpoint_);
  EXPECT_TRUE(Arrives(standing, kPatience));
  std::filesystem::remove(folder_.authorized() + "/late.public");
  EXPECT_TRUE(StaysOut(Client(late)));
  EXPECT_TRUE(Arrives(standing, kPatience));
  EXPECT_TRUE(GetsIn(Client(worker_keys_)));
}

TEST_F(Authentication, RefusedSocketsAreSilentButNewOnesTryAgain) {
  Start();
  Bind();
  const KeyPair late = folder_.Make("late");
  zmq::socket_t client = Client(late);
  client.set(zmq::sockopt::reconnect_ivl, 10);
  EXPECT_EQ(OutcomeOf(client), HandshakeWatch::Outcome::kRefused);
  folder_.Authorize("late");
  EXPECT_FALSE(Arrives(client, kQuiet));
  EXPECT_EQ(authenticator_->refused(), 1u);
  EXPECT_TRUE(GetsIn(Client(late)));
}

TEST_F(Authentication, WatchTellsWhyNothingComesThrough) {
  Start();
  Bind();
  using Outcome = HandshakeWatch::Outcome;
  zmq::socket_t known = Client(worker_keys_), mistaken = Client(worker_keys_, worker_keys_.public_key),
                plain = PlainClient();
  EXPECT_EQ(OutcomeOf(known), Outcome::kLetIn);
  EXPECT_TRUE(Arrives(known, kPatience));
  mistaken.set(zmq::sockopt::reconnect_ivl, 10);
  int hang_ups = 0;
  EXPECT_EQ(OutcomeOf(mistaken, 3, &hang_ups), Outcome::kPending);
  EXPECT_GE(hang_ups, 3);
  plain.set(zmq::sockopt::reconnect_ivl, 10);
  EXPECT_EQ(OutcomeOf(plain), Outcome::kDifferent);
}

TEST_F(Authentication, BadFilesLetNobodyInAndAreLoggedOnce) {
  Start();
  Bind();
  folder_.Write("authorized/broken.public", "public = \"abc\"\n", 0644);
  folder_.Write("authorized/again.public", folder_.Read("worker.public"), 0644);
  const KeyPair loose = folder_.Make("loose");
  folder_.Write("authorized/loose.public", folder_.Read("loose.public"), 0666);
  EXPECT_TRUE(StaysOut(Client(loose)));
  std::string sender;
  EXPECT_TRUE(GetsIn(Client(worker_keys_), &sender));
  EXPECT_EQ(sender, "again");  // the first by name
  int broken = 0, twice = 0, writable = 0;
  for (const std::string& line : Log()) {
    broken += Has(line, "broken.public:1: error: not a key");
    twice += Has(line, "worker.public: holds the same key as again.public");
    writable += Has(line, "chmod o-w");
  }
  EXPECT_EQ(broken, 1);
  EXPECT_EQ(twice, 1);
  EXPECT_EQ(writable, 1);

  std::filesystem::rename(folder_.authorized(), folder_ / "moved");
  zmq::socket_t refused = Client(worker_keys_);
  EXPECT_EQ(OutcomeOf(refused), HandshakeWatch::Outcome::kRefused);
  int absent = 0;
  for (const std::string& line : Log()) absent += Has(line, "authorized: there is no such folder");
  EXPECT_EQ(absent, 1);
  std::filesystem::rename(folder_ / "moved", folder_.authorized());
  EXPECT_TRUE(GetsIn(Client(worker_keys_)));
}

TEST_F(Authentication, StartsWithGoodFilesOnly) {
  folder_.Write("authorized/broken.public", "public = \"abc\"\n", 0644);
  EXPECT_THROW(Start(), UserError);
  std::filesystem::remove_all(folder_.authorized());
  EXPECT_THROW(Start(), UserError);
}

TEST_F(Authentication, LogIsLimitedAndCountsWhatItHeldBack) {
  Start(300);
  const std::string key(32, 'k');
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(Ask({"1.0", "1", "crema", "10.0.0." + std::to_string(i), "", "CURVE", key})[0], "400");
  }
  EXPECT_EQ(authenticator_->refused(), 20u);
  EXPECT_LT(Log().size(), 20u);
  // What is held back comes without a further refusal.
  ASSERT_GE(Log(2).size(), 2u);
  EXPECT_TRUE(Has(Log()[0], "10.0.0.0"));
  EXPECT_TRUE(Has(Log()[1], "more before it")) << Log()[1];
}

TEST_F(Authentication, HandlerAnswersAsTheProtocolSays) {
  Start();
  using Frames = std::vector<std::string>;
  const auto ask = [&](const std::string& domain, const std::string& mechanism, const Frames& credentials) {
    Frames frames = {"1.0", "7", domain, "10.0.0.1", "", mechanism};
    frames.insert(frames.end(), credentials.begin(), credentials.end());
    return Ask(frames);
  };
  std::string key(32, '\0');
  ASSERT_NE(zmq_z85_decode(reinterpret_cast<uint8_t*>(key.data()), worker_keys_.public_key.c_str()), nullptr);
  EXPECT_EQ(ask("crema", "CURVE", {key}), (Frames{"200", "OK", "worker", ""}));
  EXPECT_EQ(ask("other", "CURVE", {key})[0], "400");
  EXPECT_EQ(ask("", "CURVE", {key})[0], "400");
  EXPECT_EQ(ask("crema", "NULL", {})[0], "400");
  EXPECT_EQ(ask("crema", "PLAIN", {"worker", "worker"})[0], "400");
  EXPECT_EQ(ask("crema", "CURVE", {})[0], "400");
  EXPECT_EQ(ask("crema", "CURVE", {key.substr(1)})[0], "400");
  EXPECT_EQ(ask("crema", "CURVE", {key, key})[0], "400");
  EXPECT_EQ(ask("crema", "CURVE", {std::string(32, '\xff')})[0], "400");
  EXPECT_EQ(Ask({"1.0"})[0], "400");
  EXPECT_EQ(Ask({"2.0", "7", "crema", "10.0.0.1", "", "CURVE", key})[0], "400");
  EXPECT_EQ(ask("crema", "CURVE", {key})[0], "200");
  EXPECT_EQ(authenticator_->accepted(), 2u);
}

TEST_F(Authentication, SelfTestPassesWhereStrangersStayOut) {
  Start();
  Bind();
  EXPECT_NO_THROW(authenticator_->SelfTest(endpoint_, server_keys_.public_key));
  EXPECT_EQ(authenticator_->accepted(), 0u);
  EXPECT_TRUE(Log().empty()) << Log()[0];
  EXPECT_TRUE(GetsIn(Client(worker_keys_)));
}

TEST_F(Authentication, SelfTestReachesSocketsThatListenEverywhere) {
  Start();
  server_ = zmq::socket_t(context_, zmq::socket_type::router);
  ConfigureServer(server_, server_keys_);
  server_.bind("tcp://0.0.0.0:*");
  endpoint_ = server_.get(zmq::sockopt::last_endpoint);
  EXPECT_NO_THROW(authenticator_->SelfTest(endpoint_, server_keys_.public_key));
}

TEST_F(Authentication, SelfTestFindsASocketWithoutADomain) {
  // Strict, so it seems, and with a handler that refuses all: but libzmq does not ask it.
  Start();
  server_ = zmq::socket_t(context_, zmq::socket_type::router);
  server_.set(zmq::sockopt::curve_server, true);
  server_.set(zmq::sockopt::curve_secretkey, server_keys_.secret_key.text());
  const int enforce = 1;
  ASSERT_EQ(zmq_setsockopt(server_.handle(), 93, &enforce, sizeof(enforce)), 0);  // ZMQ_ZAP_ENFORCE_DOMAIN
  BindAsItIs();
  EXPECT_TRUE(Has(SelfTestError(), "lets strangers in, whatever their key")) << SelfTestError();
  EXPECT_THROW(authenticator_->SelfTest(endpoint_, server_keys_.public_key), EnvironmentError);
  EXPECT_EQ(authenticator_->refused(), 0u);
}

TEST_F(Authentication, SelfTestFindsASocketWithKeysButWithoutAHandler) {
  server_ = zmq::socket_t(context_, zmq::socket_type::router);
  server_.set(zmq::sockopt::curve_server, true);
  server_.set(zmq::sockopt::curve_secretkey, server_keys_.secret_key.text());
  BindAsItIs();
  EXPECT_TRUE(Has(SelfTestError(), "whatever their key"));
}

TEST_F(Authentication, SelfTestFindsAPlainSocket) {
  server_ = zmq::socket_t(context_, zmq::socket_type::router);
  BindAsItIs();
  EXPECT_TRUE(Has(SelfTestError(), "even without a key"));
}

TEST_F(Authentication, SelfTestDoesNotPassWithoutAVerdict) {
  // The system accepts connections to it, but nobody speaks.
  const int silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof(address);
  ASSERT_EQ(bind(silent, reinterpret_cast<sockaddr*>(&address), bytes), 0);
  ASSERT_EQ(getsockname(silent, reinterpret_cast<sockaddr*>(&address), &bytes), 0);
  endpoint_ = "tcp://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  EXPECT_TRUE(Has(SelfTestError(100), "no answer within 100 ms"));  // not even listening
  ASSERT_EQ(listen(silent, 8), 0);
  EXPECT_TRUE(Has(SelfTestError(100), "no answer within 100 ms"));
  close(silent);
}

}  // namespace
}  // namespace crema::testing_distributed
