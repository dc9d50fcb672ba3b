// Snapshots in HDF5: what Caffe finds in them, and what is found in Caffe's.
#include "solver/snapshots/snapshot_hdf5.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/hdf5.h"
#include "crema/error.h"
#include "crema/files.h"
#include "crema/net.h"
#include "errors.h"
#include "files.h"
#include "solver/snapshots/snapshot.h"
#include "temporary_folder.h"

namespace crema {
namespace {

namespace fs = std::filesystem;

constexpr auto kHdf5 = SolverParameter::HDF5;

class Hdf5Snapshots : public ::testing::Test {
 protected:
  Hdf5Snapshots()
      : values_(24), history_{Tensor(values_.data(), {Shape{2, 3}}), Tensor(values_.data() + 6, {Shape{}})} {
    std::iota(values_.begin(), values_.end(), 0.5f);
    for (const char* name : {"ip", "group/conv", "relu"}) {
      LayerParameter* layer = model_.add_layer();
      layer->set_name(name);
      if (layer->name() == "relu") continue;
      BlobProto* blob = layer->add_blobs();
      for (const int extent : {2, 1, 3}) blob->mutable_shape()->add_dim(extent);
      for (int i = 0; i < 6; ++i) blob->add_data(static_cast<float>(i) + 0.25f);
    }
    state_.set_iter(40);
    state_.set_current_step(2);
    state_.set_solver_type("SGD");
    state_.set_random_seed(77);
  }

  void SetUp() override {
    try {
      CreateHdf5(folder_ / "probe");
    } catch (const EnvironmentError& error) {
      GTEST_SKIP() << error.what();
    }
  }

  std::string Prefix() const { return folder_ / "net"; }
  std::string Model() const { return folder_ / "net_iter_40.caffemodel.h5"; }
  std::string State() const { return folder_ / "net_iter_40.solverstate.h5"; }
  static std::string FailureOf(const std::string& path) {
    return ThrownBy<UserError>([&] { LoadState(path); });
  }

  const TemporaryFolder folder_;
  NetParameter model_;
  SolverState state_;
  std::vector<float> values_;
  std::vector<StoredHistory> history_;
};

TEST_F(Hdf5Snapshots, ComeBackAsWritten) {
  const WrittenFiles written = WriteSnapshot(Prefix(), model_, state_, history_, kHdf5);
  EXPECT_EQ(written.state_crc32, LoadState(State()).state.state_crc32());
  EXPECT_EQ(written.bytes, fs::file_size(Model()) + fs::file_size(State()));
  const LoadedState loaded = LoadState(State());
  EXPECT_TRUE(loaded.exact);
  EXPECT_EQ(loaded.model_path, Model());
  EXPECT_EQ(loaded.state.iter(), 40);
  EXPECT_EQ(loaded.state.random_seed(), 77u);
  std::fill(values_.begin(), values_.end(), 0.0f);
  RestoreHistory(loaded, "SGD", history_);
  EXPECT_EQ(values_[5], 5.5f);
  EXPECT_EQ(values_[6], 6.5f);
  const std::vector<LayerWeights> weights = ReadWeights(Model());
  ASSERT_EQ(weights.size(), 2u);
  EXPECT_EQ(weights[0].name, "group/conv");
  EXPECT_EQ(weights[0].blobs[0].shape, (Shape{2, 1, 3}));
  EXPECT_EQ(weights[0].blobs[0].data[5], 5.25f);
}

TEST_F(Hdf5Snapshots, HoldWhatCaffeLooksFor) {
  for (int i = 0; i < 6; ++i) model_.mutable_layer(0)->mutable_blobs(0)->add_diff(static_cast<float>(i));
  WriteSnapshot(Prefix(), model_, state_, history_, kHdf5);
  const auto state = OpenHdf5(State());
  EXPECT_EQ(state->ReadInteger("iter"), 40);
  EXPECT_EQ(state->ReadInteger("current_step"), 2);
  EXPECT_EQ(state->Extents("iter"), std::vector<int64_t>{1});
  EXPECT_EQ(state->ReadText("learned_net"), Model());
  EXPECT_EQ(state->Extents("history/0"), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(state->Extents("history/1"), std::vector<int64_t>{});
  const auto model = OpenHdf5(Model());
  EXPECT_EQ(model->Extents("data/group/conv/0"), (std::vector<int64_t>{2, 1, 3}));
  float diff[6];
  model->Read("diff/ip/0", diff);
  EXPECT_EQ(diff[4], 4);
}

TEST_F(Hdf5Snapshots, OfTheSameValuesAreTheSameFiles) {
  WriteSnapshot(Prefix(), model_, state_, history_, kHdf5);
  const std::string model = ReadFile(Model()), state = ReadFile(State());
  WriteSnapshot(Prefix(), model_, state_, history_, kHdf5);
  EXPECT_TRUE(model == ReadFile(Model()));
  EXPECT_TRUE(state == ReadFile(State()));
}

TEST_F(Hdf5Snapshots, OfCaffeAreTakenUp) {
  WriteModel(Model(), model_);
  {
    const auto file = CreateHdf5(State());
    file->WriteInteger("iter", 40);
    file->WriteText("learned_net", "elsewhere/net_iter_40.caffemodel.h5");
    file->WriteInteger("current_step", 1);
    for (int i = 0; i < 11; ++i) {
      const std::vector<float> values(2, static_cast<float>(i));
      file->Write("history/" + std::to_string(i), {2}, values.data());
    }
  }
  const LoadedState loaded = LoadState(State());
  EXPECT_FALSE(loaded.exact);
  EXPECT_EQ(loaded.model_path, Model());
  EXPECT_EQ(loaded.state.current_step(), 1);
  ASSERT_EQ(loaded.state.history_size(), 11);
  EXPECT_EQ(loaded.state.history(10).data(1), 10);
}

TEST_F(Hdf5Snapshots, DamageIsNoticed) {
  WriteSnapshot(Prefix(), model_, state_, history_, kHdf5);
  const std::string whole = ReadFile(State());
  const float known = 3.5f;
  const size_t at = whole.find(std::string(reinterpret_cast<const char*>(&known), sizeof known));
  ASSERT_NE(at, std::string::npos);
  std::string changed = whole;
  changed[at] ^= 1;
  std::ofstream(State(), std::ios::binary) << changed;
  EXPECT_NE(FailureOf(State()).find("its checksum does not fit"), std::string::npos) << FailureOf(State());
  std::ofstream(State(), std::ios::binary) << whole.substr(0, whole.size() / 2);
  EXPECT_NE(FailureOf(State()).find("cut short or damaged"), std::string::npos) << FailureOf(State());
  std::ofstream(State(), std::ios::binary) << whole;
  EXPECT_EQ(FailureOf(State()), "");
  std::ofstream(Model(), std::ios::binary | std::ios::app) << "x";
  EXPECT_NE(FailureOf(State()).find("not the model that"), std::string::npos) << FailureOf(State());
}

// Bits that carry nothing may change; no other may without being seen, whatever is read then.
TEST_F(Hdf5Snapshots, NoChangedBitIsTakenForAnotherState) {
  WriteSnapshot(Prefix(), model_, state_, history_, kHdf5);
  const std::string whole = ReadFile(State()), name = "crema_state";
  const size_t named = whole.find(name);
  ASSERT_NE(named, std::string::npos);
  std::vector<size_t> places;
  for (size_t at = 0; at < whole.size(); at += 5) places.push_back(at);
  for (size_t i = 0; i < name.size(); ++i) places.push_back(named + i);
  for (const size_t at : places) {
    for (const int bit : {1, 4, 0xff}) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ bit);
      std::ofstream(State(), std::ios::binary) << changed;
      try {
        const LoadedState loaded = LoadState(State());
        EXPECT_TRUE(loaded.exact) << "byte " << at;
        EXPECT_EQ(loaded.state.random_seed(), 77u) << "byte " << at;
      } catch (const std::runtime_error&) {
        EXPECT_FALSE(at >= named && at < named + name.size() && FailureOf(State()).find("amaged") == std::string::npos);
      }
    }
  }
}

// As on a full disk: what is not whole is not left in the place of a file, nor told to be written.
TEST_F(Hdf5Snapshots, WhatCannotBeWrittenIsSaid) {
  WriteSnapshot(Prefix(), model_, state_, history_, kHdf5);
  const std::string model = ReadFile(Model()), state = ReadFile(State());
  const auto largest = static_cast<rlim_t>(std::max(model.size(), state.size()));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto on_signal = std::signal(SIGXFSZ, SIG_IGN);
  int written = 0, failed = 0;
  for (rlim_t limit = largest % 64; limit <= largest; limit += 64) {
    fs::remove(Model());
    fs::remove(State());
    const rlimit small = {limit, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    bool is_whole = false;
    try {
      WriteSnapshot(Prefix(), model_, state_, history_, kHdf5);
      is_whole = true;
    } catch (const EnvironmentError&) {
      ++failed;
    }
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    written += is_whole;
    if (is_whole || fs::exists(Model())) {
      EXPECT_TRUE(ReadFile(Model()) == model) << limit;
    }
    if (is_whole || fs::exists(State())) {
      EXPECT_TRUE(ReadFile(State()) == state) << limit;
    }
  }
  std::signal(SIGXFSZ, on_signal);
  EXPECT_GT(written, 0);
  EXPECT_GT(failed, 10);
}

TEST_F(Hdf5Snapshots, ExtentsBeyondTheFileAreDamage) {
  WriteModel(Model(), model_);
  const auto state = [&](const std::function<void(Hdf5Writer&)>& more) {
    const auto file = CreateHdf5(State());
    file->WriteInteger("iter", 40);
    file->WriteText("learned_net", Model());
    more(*file);
  };
  const std::vector<float> few(8);
  state([&](Hdf5Writer& file) { file.Write("history/0", {8}, few.data()); });
  EXPECT_EQ(FailureOf(State()), "");
  // The extent stands in the file as 64 bits: of the dataset, and of what it may grow to.
  for (const uint64_t extent : {(uint64_t{1} << 32) + 4, (uint64_t{1} << 61) - 1}) {
    state([&](Hdf5Writer& file) { file.Append("history/0", {8, 1}, few.data()); });
    std::string bytes = ReadFile(State());
    const uint64_t before = 8;
    std::string found(reinterpret_cast<const char*>(&before), sizeof before), one("\1\0\0\0\0\0\0\0", 8);
    const size_t at = bytes.find(found + one);
    ASSERT_NE(at, std::string::npos);
    bytes.replace(at, sizeof extent, reinterpret_cast<const char*>(&extent), sizeof extent);
    std::ofstream(State(), std::ios::binary) << bytes;
    const std::string message = FailureOf(State());
    EXPECT_NE(message.find("amaged"), std::string::npos) << message;
  }
}

TEST_F(Hdf5Snapshots, NamesThatArePathsOfOthersAreFound) {
  EXPECT_FALSE(UnfitForHdf5({"a", "inception/1x1", "a/b", "a/0b", "0"}).has_value());
  for (const char* name : {"", "/x", "x/", "a//b", ".", "./y", "a/./b", "a/0", "a/12/b"}) {
    EXPECT_EQ(UnfitForHdf5({"a", name}), name);
  }
  EXPECT_TRUE(UnfitForHdf5({"a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a"}).has_value());
}

TEST_F(Hdf5Snapshots, OfANetWithoutParametersAreRead) {
  model_.Clear();
  WriteSnapshot(Prefix(), model_, state_, {}, kHdf5);
  EXPECT_EQ(LoadState(State()).state.iter(), 40);
  EXPECT_TRUE(ReadWeights(Model()).empty());
}

TEST_F(Hdf5Snapshots, HoldScalars) {
  const NetFile file = ParseNet(R"(
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 2 dim: 3 } } }
layer { name: "slope" type: "PReLU" bottom: "data" top: "slope"
        prelu_param { channel_shared: true filler { type: "constant" value: 0.375 } } }
)",
                                "net.prototxt");
  Net net(file, {.phase = TEST});
  WriteSnapshot(Prefix(), net.ToProto(false), state_, {}, kHdf5);
  const std::vector<LayerWeights> weights = ReadWeights(Model());
  ASSERT_EQ(weights.size(), 1u);
  EXPECT_EQ(weights[0].blobs[0].shape, Shape{});
  EXPECT_EQ(weights[0].blobs[0].data, std::vector<float>{0.375f});
  Net again(file, {.phase = TEST});
  EXPECT_EQ(again.LoadWeights(weights).copied, std::vector<std::string>{"slope"});
}

TEST_F(Hdf5Snapshots, OtherFilesAreNamed) {
  WriteModel(Model(), model_);
  EXPECT_NE(FailureOf(Model()).find("these are the weights of a net"), std::string::npos) << FailureOf(Model());
  {
    const auto file = CreateHdf5(State());
    file->WriteInteger("other", 1);
  }
  EXPECT_NE(FailureOf(State()).find("no .solverstate.h5"), std::string::npos) << FailureOf(State());
  WriteSnapshot(Prefix(), model_, state_, history_, kHdf5);
  try {
    ReadWeights(State());
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("--snapshot"), std::string::npos) << error.what();
  }
}

TEST_F(Hdf5Snapshots, TheNewestOfBothFormatsIsFound) {
  const auto newest = [&](SnapshotFormat preferred = SolverParameter::BINARYPROTO) {
    LoadedState loaded;
    LoadNewestState(
        Prefix(), [](const Diagnostic&) {}, &loaded, preferred);
    return fs::path(loaded.state_path).filename().string();
  };
  WriteSnapshot(Prefix(), model_, state_, history_, kHdf5);
  EXPECT_EQ(newest(), "net_iter_40.solverstate.h5");
  WriteSnapshot(Prefix(), model_, state_, history_);
  EXPECT_EQ(newest(), "net_iter_40.solverstate");
  EXPECT_EQ(newest(kHdf5), "net_iter_40.solverstate.h5");
  state_.set_iter(50);
  WriteSnapshot(Prefix(), model_, state_, history_, kHdf5);
  EXPECT_EQ(newest(), "net_iter_50.solverstate.h5");
  std::ofstream(folder_ / "net_iter_50.solverstate.h5") << "x";
  EXPECT_EQ(newest(), "net_iter_40.solverstate");
}

}  // namespace
}  // namespace crema
