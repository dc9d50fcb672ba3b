// Whoever else reaches a coordinator's port while it trains: nothing of it counts, and training goes on to the same
// bits.
#include <gtest/gtest.h>

#include <csignal>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <zmq.hpp>

#include "distributed/protocol/protocol_version.h"
#include "distributed/sockets/frame.h"
#include "distributed/sockets/sockets.h"
#include "tools/cluster_training.h"
#include "tools/patterns.h"
#include "tools/tcp_relay.h"

namespace crema::testing_tools {
namespace {

// ZMTP 3.1: signature, version, mechanism NULL, filler.
std::string Greeting() {
  std::string greeting("\xFF\0\0\0\0\0\0\0\x01\x7F\x03\x01NULL", 16);
  greeting.resize(64, '\0');
  return greeting;
}

// The READY command of a DEALER.
std::string Ready() {
  const std::string body("\5READY\13Socket-Type\0\0\0\6DEALER", 5 + 1 + 12 + 4 + 6);
  return std::string("\4") + static_cast<char>(body.size()) + body;
}

// One frame of ZMTP.
std::string Frame(const std::string& bytes, bool more = false) {
  std::string frame(1, static_cast<char>(2 | (more ? 1 : 0)));
  for (int shift = 56; shift >= 0; shift -= 8) frame += static_cast<char>(bytes.size() >> shift);
  return frame + bytes;
}

std::string Noise(std::mt19937& random, size_t count) {
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

class ClusterStrangers : public ::testing::Test {
 protected:
  static constexpr int kIterations = 1000;

  // What training comes to when nobody disturbs it.
  static const ClusterFolder& Undisturbed() {
    static const ClusterFolder* const folder = [] {
      auto* made = new ClusterFolder("local_steps: 5 local_workers: 2", {.max_iter = kIterations});
      EXPECT_EQ(made->Run().exit_code, 0);
      return made;
    }();
    return *folder;
  }
  static void TearDownTestSuite() { delete &Undisturbed(); }

  ClusterStrangers() : folder_("local_steps: 5 dead_ms: 60000", {.max_iter = kIterations}) {
    coordinator_ = folder_.Coordinate(2, &endpoint_);
    port_ = PortOf(endpoint_);
    relay_ = std::make_unique<TcpRelay>(port_);
    // One of two, so that training begins when the test says so.
    one_ = folder_.Join(relay_->endpoint(), "one");
    EXPECT_TRUE(coordinator_->WaitFor("worker one joined")) << coordinator_->Err();
  }

  void Begin() { two_ = folder_.Join(endpoint_, "two"); }

  // To its end: as if nobody had been there.
  void Finish() {
    if (!two_) Begin();
    const Finished run = coordinator_->Wait();
    EXPECT_EQ(run.exit_code, 0) << run.signal << "\n" << run.err;
    EXPECT_EQ(one_->Wait().exit_code, 0) << one_->Err();
    EXPECT_EQ(two_->Wait().exit_code, 0) << two_->Err();
    EXPECT_TRUE(SameModel(Undisturbed(), folder_, kIterations)) << run.err;
    EXPECT_EQ(AuditJournal(folder_, kIterations).mistake, "");
  }

  int Dropped() {
    const Finished status = folder_.Ask("status", endpoint_);
    const auto counts = FindAll(status.out, R"((\d+) messages dropped)");
    return counts.empty() ? -1 : std::stoi(counts.front());
  }

  ClusterFolder folder_;
  std::string endpoint_;
  int port_ = 0;
  std::unique_ptr<Running> coordinator_, one_, two_;
  std::unique_ptr<TcpRelay> relay_;
};

TEST_F(ClusterStrangers, AThousandConnectionsOfRandomBytes) {
  const unsigned seed = std::random_device{}();
  std::mt19937 random(seed);
  std::vector<Connection> lasting;
  for (int i = 0; i < 1000; ++i) {
    if (i == 500) Begin();
    Connection connection(port_);
    if (!connection.open()) {
      // It took no notice, and is done.
      EXPECT_GT(i, 600) << coordinator_->Err();
      break;
    }
    const size_t count = random() % 300;
    switch (i % 5) {
      case 0:
        connection.Send(Noise(random, count));
        break;
      case 1:
        connection.Send(Greeting().substr(0, random() % 64));
        break;
      case 2:
        connection.Send(Greeting() + Noise(random, count));
        break;
      case 3:
        connection.Send(Greeting() + Ready().substr(0, random() % 28));
        break;
      default:
        connection.Send(Greeting() + Ready() + Noise(random, count));
    }
    if (i % 10 == 0) lasting.push_back(std::move(connection));
  }
  Finish();
}

TEST_F(ClusterStrangers, FramesOfGarbageAreDroppedAndCounted) {
  std::mt19937 random(5);
  const int before = Dropped();
  ASSERT_GE(before, 0);
  Connection connection(port_);
  connection.Send(Greeting() + Ready());
  EXPECT_NE(connection.Receive(200).find("READY"), std::string::npos) << "no greeting that ZeroMQ takes";
  ClusterMessage message;
  message.mutable_hello()->set_major(kProtocolMajor);
  const std::string sound = EncodeFrame(message);
  int sent = 0;
  for (int i = 0; i < 200; ++i) {
    std::string frame = i % 2 == 0 ? Noise(random, random() % 100) : sound;
    // One byte off, cut off, or with something behind.
    if (i % 6 == 1) frame[random() % frame.size()] ^= 1;
    if (i % 6 == 3) frame.resize(random() % frame.size());
    if (i % 6 == 5) frame += '\0';
    connection.Send(Frame(frame));
    ++sent;
  }
  // More parts than a message has.
  for (int i = 0; i < 10; ++i) connection.Send(Frame(sound, true));
  connection.Send(Frame(""));
  ++sent;
  connection.Receive(200);
  EXPECT_EQ(Dropped(), before + sent);
  Begin();
  for (int i = 0; i < 500; ++i) connection.Send(Frame(Noise(random, random() % 2000), i % 3 == 0));
  Finish();
}

TEST_F(ClusterStrangers, FramesThatAnnounceTooMuchEndTheirConnection) {
  for (int i = 0; i < 20; ++i) {
    Connection connection(port_);
    std::string frame("\2\0\0\0\0\0\0\0\0", 9);
    frame[1 + i % 6] = '\x7F';
    connection.Send(Greeting() + Ready() + frame + std::string(1000, 'x'));
    connection.Receive(i == 0 ? 300 : 0);
  }
  // A length of 2^63 and more.
  Connection connection(port_);
  connection.Send(Greeting() + Ready() + std::string("\2\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 9) + "x");
  Finish();
}

TEST_F(ClusterStrangers, WellFormedMessagesOfOthersAreDropped) {
  const int before = Dropped();
  zmq::context_t context;
  WorkerSockets sockets(context, endpoint_, std::nullopt);
  uint64_t sequence = uint64_t{1} << 40;
  int sent = 0;
  const auto payload = std::make_shared<Bytes>(1000);
  const auto send = [&](uint64_t job, uint64_t epoch, uint64_t member, const std::function<void(ClusterMessage&)>& fill,
                        bool bytes = false) {
    Outgoing outgoing;
    outgoing.message.set_job(job);
    outgoing.message.set_epoch(epoch);
    outgoing.message.set_member(member);
    outgoing.message.set_sequence(++sequence);
    fill(outgoing.message);
    if (bytes) outgoing.slice = {payload, 0, payload->size()};
    sockets.Send(outgoing);
    ++sent;
  };
  // What this stranger may know: it joins, and never says that it is ready.
  uint64_t job = 0, epoch = 0, member = 0;
  const auto hello = [&](ClusterMessage& message) {
    message.mutable_hello()->set_major(kProtocolMajor);
    message.mutable_hello()->set_process(77);
    message.mutable_hello()->set_incarnation(78);
    message.mutable_hello()->set_name("stranger");
    // All steps to itself, if it could.
    message.mutable_hello()->set_version(0);
    message.mutable_hello()->set_digest(5);
    message.mutable_hello()->mutable_lease()->set_serial(1);
    message.mutable_hello()->mutable_lease()->mutable_steps()->set_count(1'000'000);
  };
  for (int i = 0; i < 100 && member == 0; ++i) {
    send(0, 0, 0, hello);
    sockets.Receive(50, [&](const std::string&, const ClusterMessage& message, std::span<const std::byte>) {
      if (!message.has_welcome()) return;
      job = message.job();
      epoch = message.epoch();
      member = message.member();
    });
  }
  ASSERT_NE(member, 0u);
  Begin();
  sent = 0;
  for (int i = 0; i < 300; ++i) {
    for (const uint64_t of_job : {job, job + 1}) {
      // The members before it are the real workers.
      for (const uint64_t of_member : {member - 1, uint64_t{0}, uint64_t{999}}) {
        send(of_job, epoch, of_member, [&](ClusterMessage& message) { message.mutable_leave()->set_reason("gone"); });
        send(of_job, epoch, of_member, [&](ClusterMessage& message) {
          message.mutable_push()->set_id(1000);
          message.mutable_push()->set_version(static_cast<uint64_t>(i / 30));
          message.mutable_push()->mutable_lease()->set_serial((epoch << 40) + 1);
          message.mutable_push()->set_failure("of a stranger");
          message.mutable_push()->set_fatal(true);
        });
        send(of_job, epoch - 1, of_member,
             [&](ClusterMessage& message) { message.mutable_heartbeat()->set_ready(true); });
      }
    }
    // Its own, of a size that no push has.
    send(
        job, epoch, member,
        [&](ClusterMessage& message) {
          message.mutable_chunk()->set_transfer(static_cast<uint64_t>(i) + 1);
          message.mutable_chunk()->set_total(uint64_t{1} << 60);
        },
        true);
    sockets.Receive(2, [](const std::string&, const ClusterMessage&, std::span<const std::byte>) {});
  }
  for (int i = 0; i < 20; ++i) {
    sockets.Receive(10, [](const std::string&, const ClusterMessage&, std::span<const std::byte>) {});
  }
  // ... if training is not over by now.
  const int dropped = Dropped();
  if (dropped >= 0) {
    EXPECT_GT(dropped, before + sent / 2);
  }
  // Else the coordinator waits dead_ms at the end for it to know.
  send(job, epoch, member, [](ClusterMessage& message) { message.mutable_leave()->set_reason("seen enough"); });
  Finish();
  EXPECT_EQ(coordinator_->Err().find("of a stranger"), std::string::npos);
  EXPECT_EQ(coordinator_->Err().find("left: gone"), std::string::npos);
}

TEST_F(ClusterStrangers, ARecordedSessionThatIsSentAgainCountsForNothing) {
  Begin();
  ASSERT_TRUE(coordinator_->WaitFor("Iteration 20, lr")) << coordinator_->Err();
  // So that training is not over too early.
  two_->Signal(SIGSTOP);
  // To the byte, and under a name of its own, as ZeroMQ knows no second one of the same.
  std::vector<std::string> recorded = relay_->Sent();
  ASSERT_GE(recorded.size(), 2u);
  const auto replay = [&](bool renamed) {
    std::vector<Connection> connections;
    for (std::string bytes : recorded) {
      const size_t name = bytes.find("Identity");
      ASSERT_NE(name, std::string::npos);
      if (renamed) bytes[name + 8 + 4 + 3] ^= 0x55;
      const size_t greeting = Greeting().size(), ready = 2 + static_cast<unsigned char>(bytes[greeting + 1]);
      connections.emplace_back(port_);
      const Connection& connection = connections.back();
      // One by one, as ZeroMQ takes them.
      connection.Send(bytes.substr(0, greeting));
      EXPECT_NE(connection.Receive(200).find("NULL"), std::string::npos);
      connection.Send(bytes.substr(greeting, ready));
      connection.Receive(50);
      connection.Send(bytes.substr(greeting + ready));
    }
    for (const Connection& connection : connections) connection.Receive(50);
  };
  replay(false);
  const int before = Dropped();
  ASSERT_GE(before, 0);
  replay(true);
  // The messages of both connections came to the coordinator.
  int dropped = before;
  for (int i = 0; i < 20 && dropped >= 0 && dropped < before + 10; ++i) dropped = Dropped();
  EXPECT_GE(dropped, before + 10);
  two_->Signal(SIGCONT);
  Finish();
}

}  // namespace
}  // namespace crema::testing_tools
