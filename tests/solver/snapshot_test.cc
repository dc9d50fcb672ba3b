#include "solver/snapshots/snapshot.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <cstring>
#include <functional>
#include <numeric>

#include "errors.h"
#include "files.h"
#include "solver/writable_folder.h"
#include "source_folder.h"

namespace crema {
namespace {

namespace fs = std::filesystem;

class Snapshots : public testing::Test {
 protected:
  Snapshots() : values_(24), history_{Tensor(values_.data(), {Shape{2, 3}}), Tensor(values_.data() + 6, {Shape{18}})} {
    std::iota(values_.begin(), values_.end(), 0.5f);
    LayerParameter* layer = model_.add_layer();
    layer->set_name("ip");
    BlobProto* blob = layer->add_blobs();
    blob->mutable_shape()->add_dim(300000);
    for (int i = 0; i < 300000; ++i) blob->add_data(static_cast<float>(i));
  }

  SolverState State(int iteration) const {
    SolverState state;
    state.set_iter(iteration);
    state.set_current_step(2);
    state.set_solver_type("SGD");
    state.set_random_seed(77);
    return state;
  }
  std::string Prefix() const { return folder_ / "net"; }
  void Write(int iteration) { WriteSnapshot(Prefix(), model_, State(iteration), history_); }
  std::string FailureOf(const std::string& path) {
    return ThrownBy<UserError>([&] { LoadState(path); });
  }
  bool Newest(LoadedState* newest) {
    notices_.clear();
    return LoadNewestState(
        Prefix(), [this](const Diagnostic& d) { notices_ += d.ToString() + "\n"; }, newest);
  }

  WritableFolder folder_;
  NetParameter model_;
  std::vector<float> values_;
  std::vector<StoredHistory> history_;
  std::string notices_;
};

TEST_F(Snapshots, WhatCannotBeReadIsNotCalledDamaged) {
  Write(40);
  fs::remove(ModelPath(Prefix(), 40));
  fs::create_directory(ModelPath(Prefix(), 40));
  const std::string failure = ThrownBy<EnvironmentError>([&] { LoadState(StatePath(Prefix(), 40)); });
  EXPECT_NE(failure.find(ModelPath(Prefix(), 40) + ": cannot be read: "), std::string::npos) << failure;
}

TEST_F(Snapshots, ComeBackAsWritten) {
  const uint64_t bytes = WriteSnapshot(Prefix(), model_, State(40), history_).bytes;
  EXPECT_EQ(bytes, fs::file_size(ModelPath(Prefix(), 40)) + fs::file_size(StatePath(Prefix(), 40)));
  const LoadedState loaded = LoadState(folder_ / "net_iter_40.solverstate");
  EXPECT_TRUE(loaded.exact);
  EXPECT_EQ(loaded.model_path, folder_ / "net_iter_40.caffemodel");
  EXPECT_EQ(loaded.state.iter(), 40);
  EXPECT_EQ(loaded.state.current_step(), 2);
  EXPECT_EQ(loaded.state.random_seed(), 77u);

  std::vector<float> copy(24);
  RestoreHistory(loaded, "SGD", {Tensor(copy.data(), {Shape{2, 3}}), Tensor(copy.data() + 6, {Shape{18}})});
  EXPECT_EQ(copy, values_);
  NetParameter model;
  ASSERT_TRUE(model.ParseFromString(ReadFile(loaded.model_path)));
  EXPECT_EQ(model.SerializeAsString(), model_.SerializeAsString());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 2) << "temporary files are left";
}

TEST_F(Snapshots, AreFoundBesideTheStateAfterAMove) {
  Write(40);
  WritableFolder other;
  for (const char* name : {"net_iter_40.caffemodel", "net_iter_40.solverstate"}) {
    fs::rename(folder_ / name, other / name);
  }
  EXPECT_EQ(LoadState(other / "net_iter_40.solverstate").model_path, other / "net_iter_40.caffemodel");
  // A stranger under the old name does not get in the way.
  folder_.Write("net_iter_40.caffemodel", "something else");
  EXPECT_EQ(LoadState(other / "net_iter_40.solverstate").model_path, other / "net_iter_40.caffemodel");
}

TEST_F(Snapshots, WithoutTheirModelSayWhereItWasLookedFor) {
  Write(40);
  fs::remove(ModelPath(Prefix(), 40));
  EXPECT_NE(FailureOf(StatePath(Prefix(), 40)).find("nor at " + ModelPath(Prefix(), 40)), std::string::npos);
}

TEST_F(Snapshots, ModelsOfAnotherRunAreNoticed) {
  Write(40);
  std::string model = ReadFile(ModelPath(Prefix(), 40));
  model[model.size() / 2] ^= 1;
  folder_.Write("net_iter_40.caffemodel", model);
  EXPECT_NE(FailureOf(StatePath(Prefix(), 40)).find("another checksum"), std::string::npos);
  folder_.Write("net_iter_40.caffemodel", model.substr(0, 1000));
  EXPECT_NE(FailureOf(StatePath(Prefix(), 40)).find("it has 1000 bytes"), std::string::npos);
}

TEST_F(Snapshots, EveryTruncationIsNoticed) {
  Write(40);
  const std::string state = ReadFile(StatePath(Prefix(), 40));
  for (size_t bytes = 0; bytes < state.size(); ++bytes) {
    folder_.Write("cut.solverstate", state.substr(0, bytes));
    EXPECT_NE(FailureOf(folder_ / "cut.solverstate"), "") << bytes << " of " << state.size() << " bytes";
  }
}

TEST_F(Snapshots, EveryFlippedBitIsNoticed) {
  Write(40);
  const std::string state = ReadFile(StatePath(Prefix(), 40));
  for (size_t at = 0; at < state.size(); ++at) {
    std::string damaged = state;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
    folder_.Write("flipped.solverstate", damaged);
    EXPECT_NE(FailureOf(folder_ / "flipped.solverstate"), "") << "byte " << at << " of " << state.size();
  }
}

// Whoever can write a file can compute its checksum.
TEST_F(Snapshots, WhatNoRunWritesIsRefused) {
  const auto expect = [&](const std::function<void(SolverState*)>& damage, const std::string& message) {
    SolverState state = State(40);
    damage(&state);
    WriteSnapshot(Prefix(), model_, state, history_);
    const std::string said = FailureOf(StatePath(Prefix(), 40));
    EXPECT_NE(said.find("damaged: its " + message), std::string::npos) << message << ": " << said;
  };
  expect([](SolverState* state) { state->mutable_best()->set_value(NAN); }, "best.value is no number (NaN)");
  expect([](SolverState* state) { state->mutable_best()->set_iteration(41); },
         "best.iteration is 41, but its iteration is 40");
  expect([](SolverState* state) { state->mutable_best()->set_lost_iteration(-1); }, "best.lost_iteration is -1");
  expect([](SolverState* state) { state->set_current_step(-2); }, "current_step is -2");
  expect([](SolverState* state) { state->set_iter_last_event(-2); }, "iter_last_event is -2");
  expect([](SolverState* state) { state->add_recent_loss(NAN); }, "recent_loss[0] is no number");
  expect([](SolverState* state) { state->set_loss_scale(0); }, "loss_scale is 0");
  expect([](SolverState* state) { state->add_ema()->add_data(NAN); }, "ema[0].data is no number");
  expect([](SolverState* state) { state->add_data_position()->set_records(uint64_t{1} << 60); },
         "position of data layer \"\" counts 1152921504606846976 records");
  expect([](SolverState* state) { state->add_data_position()->set_records_before(1); },
         "position of data layer \"\" counts earlier epochs wrongly");
  values_[3] = NAN;
  expect([](SolverState*) {}, "history[0].data is no number");
  // Caffe's have no checksum.
  SolverState caffe;
  caffe.set_iter(-1);
  caffe.set_learned_net(ModelPath(Prefix(), 40));
  EXPECT_NE(FailureOf(folder_.Write("caffe.solverstate", caffe.SerializeAsString())).find("its iteration is -1"),
            std::string::npos);
}

TEST_F(Snapshots, FilesOfOtherKindsAreNamed) {
  Write(40);
  const std::string swapped = FailureOf(ModelPath(Prefix(), 40));
  EXPECT_NE(swapped.find("these are the weights of a net"), std::string::npos) << swapped;
  EXPECT_NE(swapped.find("resume from " + StatePath(Prefix(), 40)), std::string::npos) << swapped;
  fs::copy(ModelPath(Prefix(), 40), folder_ / "renamed.bin");
  EXPECT_NE(FailureOf(folder_ / "renamed.bin").find("--weights"), std::string::npos);
  const std::string text = FailureOf(folder_.Write("solver.prototxt", "base_lr: 0.01\n"));
  EXPECT_NE(text.find("not a .solverstate"), std::string::npos) << text;
  EXPECT_NE(FailureOf(folder_ / "absent").find("absent: error: there is no such file"), std::string::npos);
}

TEST_F(Snapshots, HistoryOfAnotherNetOrSolverTypeIsRefused) {
  Write(40);
  const LoadedState loaded = LoadState(StatePath(Prefix(), 40));
  std::vector<float> copy(24);
  const Tensor first(copy.data(), {Shape{2, 3}}), second(copy.data() + 6, {Shape{18}});
  const auto failure = [&](const std::string& type, const std::vector<StoredHistory>& history) {
    return ThrownBy<UserError>([&] { RestoreHistory(loaded, type, history); });
  };
  EXPECT_NE(failure("Adam", {first, second}).find("written by solver type \"SGD\""), std::string::npos);
  EXPECT_NE(failure("SGD", {first}).find("holds 2 history blobs"), std::string::npos);
  const std::string shapes = failure("SGD", {first.Reshaped({3, 2}), second});
  EXPECT_NE(shapes.find("history blob 0 has shape 2x3"), std::string::npos) << shapes;
  EXPECT_NE(shapes.find("shape 3x2"), std::string::npos) << shapes;
}

TEST_F(Snapshots, AutoTakesTheNewestWholeOne) {
  LoadedState newest;
  EXPECT_FALSE(Newest(&newest));
  for (const int iteration : {9, 10, 100}) Write(iteration);
  folder_.Write("net_iter_7000.solverstate.tmp.1", "");
  folder_.Write("net_iter_x8000.solverstate", "");
  folder_.Write("network_iter_9000.solverstate", "");
  ASSERT_TRUE(Newest(&newest));
  EXPECT_EQ(newest.state.iter(), 100);
  EXPECT_EQ(notices_, "");

  folder_.Write("net_iter_100.caffemodel", "damaged");
  fs::resize_file(StatePath(Prefix(), 10), 30);
  ASSERT_TRUE(Newest(&newest));
  EXPECT_EQ(newest.state.iter(), 9);
  EXPECT_NE(notices_.find("net_iter_100.caffemodel: error: damaged"), std::string::npos) << notices_;
  EXPECT_NE(notices_.find("net_iter_10.solverstate"), std::string::npos) << notices_;
}

TEST_F(Snapshots, AFullDiskLeavesThePreviousOneIntact) {
  Write(40);
  const std::string model = ReadFile(ModelPath(Prefix(), 40)), state = ReadFile(StatePath(Prefix(), 40));
  values_[0] = -1;
  model_.mutable_layer(0)->mutable_blobs(0)->set_data(0, -1);

  // A limit on file sizes fails like a full disk: in the middle of a write.
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small = {600000, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string failure = ThrownBy<EnvironmentError>([&] { Write(40); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);

  EXPECT_NE(failure.find("net_iter_40.caffemodel"), std::string::npos) << failure;
  EXPECT_EQ(ReadFile(ModelPath(Prefix(), 40)), model);
  EXPECT_EQ(ReadFile(StatePath(Prefix(), 40)), state);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 2) << "temporary files are left";
  EXPECT_EQ(LoadState(StatePath(Prefix(), 40)).state.iter(), 40);
}

TEST_F(Snapshots, NoModelStaysWhoseStateFindsNoRoom) {
  values_.resize(50000);
  history_ = {Tensor(values_.data(), {Shape{50000}})};
  model_.mutable_layer(0)->clear_blobs();
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small = {100000, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  for (const SnapshotFormat format : {SolverParameter::BINARYPROTO, SolverParameter::HDF5}) {
    setrlimit(RLIMIT_FSIZE, &small);
    ThrownBy<EnvironmentError>([&] { WriteSnapshot(Prefix(), model_, State(40), history_, format); });
    setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_TRUE(fs::is_empty(folder_.path())) << format;
  }
  std::signal(SIGXFSZ, handler);
}

TEST(CaffeSnapshots, AreRead) {
  const fs::path folder = fs::path(CorpusFolder()) / "training";
  if (!fs::exists(folder)) GTEST_SKIP() << "no corpus at " << folder;
  const LoadedState loaded = LoadState((folder / "adam_fixed/snap_iter_30.solverstate").string());
  EXPECT_FALSE(loaded.exact);
  EXPECT_EQ(loaded.state.iter(), 30);
  EXPECT_EQ(loaded.state.history_size(), 16);
  // learned_net names a path of the machine that trained.
  EXPECT_EQ(loaded.model_path, (folder / "adam_fixed/snap_iter_30.caffemodel").string());
}

}  // namespace
}  // namespace crema
