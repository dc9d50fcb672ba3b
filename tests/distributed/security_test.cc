// Which endpoints need keys, and what is said where the settings lack them.
#include "distributed/security/security.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "crema/error.h"
#include "distributed/key_folder.h"

namespace crema::testing_distributed {
namespace {

constexpr char kFar[] = "tcp://*:5570", kNear[] = "tcp://127.0.0.1:5570";

TEST(IsLocal, KnowsWhatOnlyThisMachineCanReach) {
  for (const char* endpoint :
       {"ipc:///tmp/crema", "ipc://@crema", "inproc://a", "tcp://127.0.0.1:5570", "tcp://127.255.1.2:*",
        "tcp://localhost:5570", "tcp://[::1]:5570", "tcp://127.0.0.1", "tcp://192.168.1.2:0;127.0.0.1:5570"}) {
    EXPECT_TRUE(IsLocal(endpoint)) << endpoint;
  }
  for (const char* endpoint :
       {"tcp://*:5570", "tcp://0.0.0.0:5570", "tcp://[::]:5570", "tcp://192.168.1.2:5570", "tcp://host:5570",
        "tcp://127.example.com:5570", "tcp://127.0.0.1.example.com:5570", "tcp://localhost.example.com:5570",
        "tcp://127.0.0.256:5570", "tcp://127.0.0.1:0;192.168.1.2:5570", "tcp://1127.0.0.1:5570", "tcp://eth0:5570",
        "tcp://127:5570", "tcp://[::1", "tcp://", "", "udp://127.0.0.1:5570", "pgm://127.0.0.1;239.192.1.1:5555"}) {
    EXPECT_FALSE(IsLocal(endpoint)) << endpoint;
  }
}

class Security : public testing::Test {
 protected:
  void SetUp() override {
    folder_.Make("coordinator");
    folder_.Make("worker");
    folder_.Authorize("worker");
    coordinator_.set_secret_key_file(folder_ / "coordinator.secret");
    coordinator_.set_authorized_keys_dir(folder_.authorized());
    worker_.set_secret_key_file(folder_ / "worker.secret");
    worker_.set_server_public_key_file(folder_ / "coordinator.public");
  }

  // The mistakes that CheckSecurity finds, which must be as many as `parts`, and hold these.
  void ExpectErrors(const std::string& endpoint, bool is_coordinator, const std::vector<std::string>& parts) {
    try {
      CheckSecurity(endpoint, is_coordinator ? coordinator_ : worker_, is_coordinator);
      ADD_FAILURE() << "no error";
    } catch (const UserError& error) {
      ASSERT_EQ(error.diagnostics().size(), parts.size()) << error.what();
      for (size_t i = 0; i < parts.size(); ++i) {
        EXPECT_NE(error.diagnostics()[i].ToString().find(parts[i]), std::string::npos) << error.what();
      }
    }
  }
  void ExpectCoordinatorErrors(const std::vector<std::string>& parts) { ExpectErrors(kFar, true, parts); }
  void ExpectWorkerErrors(const std::vector<std::string>& parts) { ExpectErrors("tcp://host:5570", false, parts); }

  KeyFolder folder_;
  DistributedParameter::Security coordinator_, worker_;
};

TEST_F(Security, KeysProtectEveryEndpoint) {
  for (const char* endpoint : {"tcp://host:5570", kNear, "ipc:///tmp/crema"}) {
    EXPECT_EQ(CheckSecurity(endpoint, coordinator_, true), Protection::kKeys);
    EXPECT_EQ(CheckSecurity(endpoint, worker_, false), Protection::kKeys);
  }
  EXPECT_EQ(CheckSecurity(kFar, coordinator_, true), Protection::kKeys);
}

TEST_F(Security, WhatIsNoEndpointIsSaidFirst) {
  DistributedParameter::Security open;
  open.set_allow_plaintext(true);
  const auto mistake = [&](const std::string& endpoint, bool is_coordinator) {
    try {
      CheckSecurity(endpoint, open, is_coordinator);
    } catch (const UserError& error) {
      return error.diagnostics().front().message;
    }
    return std::string();
  };
  for (const char* endpoint :
       {"", "node0", "node0:5570", "tcp://", "tcp://node0", "tcp://:5570", "tcp://node0:", "tcp://node0:65536",
        "tcp://node0:-1", "tcp://node0:55x", "tcp://::1:5570", "udp://node0:5570", "ipc://", "http://node0:5570"}) {
    for (const bool is_coordinator : {true, false}) {
      EXPECT_NE(mistake(endpoint, is_coordinator).find("is no endpoint"), std::string::npos) << endpoint;
    }
  }
  EXPECT_EQ(mistake("node0:5570", false), "\"node0:5570\" is no endpoint; write tcp://node0:5570");
  for (const char* endpoint : {"tcp://node0:5570", "tcp://[::1]:65535", "tcp://192.0.2.1:1", "ipc:///tmp/crema",
                               "inproc://a", "tcp://192.168.1.2:0;node0:5570"}) {
    for (const bool is_coordinator : {true, false}) EXPECT_EQ(mistake(endpoint, is_coordinator), "") << endpoint;
  }
  // Nobody can be reached there.
  for (const char* endpoint : {"tcp://*:5570", "tcp://127.0.0.1:*", "tcp://127.0.0.1:0"}) {
    EXPECT_EQ(mistake(endpoint, true), "") << endpoint;
    EXPECT_NE(mistake(endpoint, false), "") << endpoint;
  }
}

TEST_F(Security, LocalEndpointsNeedNone) {
  EXPECT_EQ(CheckSecurity(kNear, {}, true), Protection::kNone);
  EXPECT_EQ(CheckSecurity(kNear, {}, false), Protection::kNone);
}

TEST_F(Security, OthersNeedKeysOrLeave) {
  coordinator_.Clear();
  worker_.Clear();
  ExpectCoordinatorErrors({"secret_key_file and authorized_keys_dir are missing; run `crema keygen"});
  ExpectWorkerErrors({"--secret_key and --server_key are missing; run `crema keygen"});
  coordinator_.set_allow_plaintext(true);
  worker_.set_allow_plaintext(true);
  EXPECT_EQ(CheckSecurity(kFar, coordinator_, true), Protection::kNone);
  EXPECT_EQ(CheckSecurity("tcp://host:5570", worker_, false), Protection::kNone);
  EXPECT_NE(PlaintextWarning(kFar).find(kFar), std::string::npos);
}

TEST_F(Security, HalfOfTheKeysIsNotEnough) {
  coordinator_.clear_authorized_keys_dir();
  ExpectCoordinatorErrors({"authorized_keys_dir is missing"});
  ExpectErrors(kNear, true, {"authorized_keys_dir is missing"});
  coordinator_.clear_secret_key_file();
  coordinator_.set_authorized_keys_dir(folder_.authorized());
  ExpectCoordinatorErrors({"secret_key_file is missing"});
  worker_.clear_server_public_key_file();
  ExpectWorkerErrors({"--server_key is missing"});
  worker_.clear_secret_key_file();
  worker_.set_server_public_key_file(folder_ / "coordinator.public");
  ExpectWorkerErrors({"--secret_key is missing"});
}

TEST_F(Security, ContradictionsAreErrors) {
  coordinator_.set_allow_plaintext(true);
  coordinator_.set_server_public_key_file(folder_ / "coordinator.public");
  ExpectCoordinatorErrors({"allow_plaintext contradicts the keys", "server_public_key_file is for workers"});
  worker_.set_authorized_keys_dir(folder_.authorized());
  ExpectWorkerErrors({"authorized_keys_dir is for the coordinator"});
}

TEST_F(Security, FilesMustBeGood) {
  ASSERT_EQ(chmod((folder_ / "coordinator.secret").c_str(), 0644), 0);
  folder_.Write("authorized/b.public", "nothing", 0644);
  folder_.Write("authorized/notes.txt", "anything", 0644);
  ExpectCoordinatorErrors({"chmod 600", "b.public:1: error: expected"});
  worker_.set_server_public_key_file(folder_ / "absent.public");
  ExpectWorkerErrors({"absent.public: error: there is no such file"});
  worker_.set_server_public_key_file(folder_ / "worker.public");
  ExpectWorkerErrors({"worker.public: error: is to be the coordinator's key, but belongs to"});
}

TEST_F(Security, FolderMustHoldKeysAndBeSafe) {
  std::filesystem::remove(folder_.authorized() + "/worker.public");
  ExpectCoordinatorErrors({"authorized: error: holds no .public file"});
  folder_.Authorize("worker");
  ASSERT_EQ(chmod(folder_.authorized().c_str(), 0777), 0);
  ExpectCoordinatorErrors({"chmod o-w"});
  coordinator_.set_authorized_keys_dir(folder_ / "absent");
  ExpectCoordinatorErrors({"absent: error: there is no such folder"});
  coordinator_.set_authorized_keys_dir(folder_ / "worker.public");
  ExpectCoordinatorErrors({"is not a folder"});
}

}  // namespace
}  // namespace crema::testing_distributed
