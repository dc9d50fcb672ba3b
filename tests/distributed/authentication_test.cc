// Who gets through to a socket.
#include "distributed/security/authentication.h"

#include <gtest/gtest.h>

#include "distributed/authentication_fixture.h"

namespace crema::testing_distributed {
namespace {

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
    twice += Has(line, "worker.public: error: holds the same key as again.public");
    writable += Has(line, "chmod o-w");
  }
  EXPECT_EQ(broken, 1);
  EXPECT_EQ(twice, 1);
  EXPECT_EQ(writable, 1);

  std::filesystem::rename(folder_.authorized(), folder_ / "moved");
  zmq::socket_t refused = Client(worker_keys_);
  EXPECT_EQ(OutcomeOf(refused), HandshakeWatch::Outcome::kRefused);
  int absent = 0;
  for (const std::string& line : Log()) absent += Has(line, "authorized: error: there is no such folder");
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

}  // namespace
}  // namespace crema::testing_distributed
