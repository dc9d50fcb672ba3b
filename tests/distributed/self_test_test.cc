// That a coordinator notices when its socket is open to strangers.
#include "distributed/security/self_test.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "distributed/authentication_fixture.h"

namespace crema::testing_distributed {
namespace {

class SelfTest : public Authentication {};

TEST_F(SelfTest, PassesWhereStrangersStayOut) {
  Start();
  Bind();
  EXPECT_NO_THROW(authenticator_->SelfTest(endpoint_, server_keys_.public_key));
  EXPECT_EQ(authenticator_->accepted(), 0u);
  EXPECT_TRUE(Log().empty()) << Log()[0];
  EXPECT_TRUE(GetsIn(Client(worker_keys_)));
}

TEST_F(SelfTest, ReachesSocketsThatListenEverywhere) {
  Start();
  server_ = zmq::socket_t(context_, zmq::socket_type::router);
  ConfigureServer(server_, server_keys_);
  server_.bind("tcp://0.0.0.0:*");
  endpoint_ = server_.get(zmq::sockopt::last_endpoint);
  EXPECT_NO_THROW(authenticator_->SelfTest(endpoint_, server_keys_.public_key));
}

TEST_F(SelfTest, FindsASocketWithoutADomain) {
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

TEST_F(SelfTest, FindsASocketWithKeysButWithoutAHandler) {
  server_ = zmq::socket_t(context_, zmq::socket_type::router);
  server_.set(zmq::sockopt::curve_server, true);
  server_.set(zmq::sockopt::curve_secretkey, server_keys_.secret_key.text());
  BindAsItIs();
  EXPECT_TRUE(Has(SelfTestError(), "whatever their key"));
}

TEST_F(SelfTest, FindsAPlainSocket) {
  server_ = zmq::socket_t(context_, zmq::socket_type::router);
  BindAsItIs();
  EXPECT_TRUE(Has(SelfTestError(), "even without a key"));
}

TEST_F(SelfTest, DoesNotPassWithoutAVerdict) {
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
