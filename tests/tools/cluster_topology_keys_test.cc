// Workers with keys that exchange their values among themselves, and strangers at a worker's own port.
#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "tools/cluster_training.h"
#include "tools/patterns.h"
#include "tools/tcp_relay.h"

namespace crema::testing_tools {
namespace {

namespace fs = std::filesystem;

// Where others reach a worker, as its log tells.
std::string AddressOf(Running& worker) {
  worker.WaitFor("Other workers reach this one at ");
  worker.WaitFor("Joined in place ");
  const auto addresses = FindAll(worker.Err(), R"(Other workers reach this one at (\S+)\n)");
  return addresses.empty() ? "" : addresses.front();
}

class TopologyKeys : public ::testing::Test {
 protected:
  static constexpr int kIterations = 300;

  TopologyKeys()
      : whole_(kShardedSteps + "local_workers: 3", {.max_iter = kIterations}),
        folder_(
            kShardedSteps + "security { secret_key_file: \"coordinator.secret\" authorized_keys_dir: \"authorized\" }",
            {.max_iter = kIterations}) {
    EXPECT_EQ(whole_.Run().exit_code, 0);
    fs::create_directory(folder_ / "authorized");
    for (const std::string name : {"coordinator", "a", "b", "c"}) {
      EXPECT_EQ(RunProgram({"crema", "keygen", "--output=" + name}, folder_.setting()).exit_code, 0);
      if (name != "coordinator") fs::copy(folder_ / (name + ".public"), folder_ / ("authorized/" + name + ".public"));
    }
  }

  std::unique_ptr<Running> Join(const std::string& endpoint, const std::string& name) const {
    return folder_.Join(endpoint, name, {"--secret_key=" + name + ".secret", "--server_key=coordinator.public"});
  }

  ClusterFolder whole_, folder_;
};

TEST_F(TopologyKeys, WorkersWithKeysExchangeAndStrangersAtTheirPortsHarmNothing) {
  const unsigned seed = std::random_device{}();
  std::mt19937 random(seed);
  const auto noise = [&](size_t count) {
    std::string bytes(count, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    return bytes;
  };
  std::string endpoint;
  const auto coordinator = folder_.Coordinate(3, &endpoint);
  std::unique_ptr<Running> workers[] = {Join(endpoint, "a"), Join(endpoint, "b"), nullptr};
  const std::string address = AddressOf(*workers[0]);
  ASSERT_NE(address, "") << workers[0]->Err();
  const int port = PortOf(address);
  // ZMTP 3.1 of a stranger without keys, which gets the greeting of CURVE and then nothing.
  std::string greeting("\xFF\0\0\0\0\0\0\0\x01\x7F\x03\x01NULL", 16);
  greeting.resize(64, '\0');
  const std::string ready = std::string("\4\x1C", 2) + std::string("\5READY\13Socket-Type\0\0\0\6DEALER", 28);
  {
    const Connection stranger(port);
    stranger.Send(greeting + ready);
    const std::string got = stranger.Receive(300);
    EXPECT_LE(got.size(), 64u);
    EXPECT_EQ(got.find("READY"), std::string::npos);
  }
  std::vector<Connection> lasting;
  for (int i = 0; i < 200; ++i) {
    if (i == 50) workers[2] = Join(endpoint, "c");
    // Half of them while training goes on.
    if (i == 100) {
      ASSERT_TRUE(coordinator->WaitFor(", lr = ")) << coordinator->Err();
    }
    Connection connection(port);
    if (!connection.open()) {
      EXPECT_GT(i, 100) << workers[0]->Err();
      break;
    }
    const size_t count = random() % 300;
    connection.Send(i % 3 == 0 ? noise(count) : i % 3 == 1 ? greeting + noise(count) : greeting + ready + noise(count));
    if (i % 10 == 0) lasting.push_back(std::move(connection));
  }
  const Finished run = coordinator->Wait();
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_FALSE(run.Says("could not exchange")) << run.err;
  EXPECT_FALSE(run.Says("was not heard of")) << run.err;
  for (const auto& worker : workers) {
    const Finished left = worker->Wait();
    EXPECT_EQ(left.exit_code, 0) << left.err;
    EXPECT_FALSE(left.Says(" 0.00 MB sent to")) << left.err;
  }
  EXPECT_TRUE(SameModel(whole_, folder_, kIterations)) << "seed " << seed << "\n" << run.err;
  EXPECT_EQ(AuditJournal(folder_, kIterations).mistake, "");
}

}  // namespace
}  // namespace crema::testing_tools
