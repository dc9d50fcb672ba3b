// Several ranks that train together against one on all their records: what tests on the CPU and on GPUs share.
#ifndef CREMA_SOLVER_DATA_PARALLEL_TEST_H_
#define CREMA_SOLVER_DATA_PARALLEL_TEST_H_

#include <cmath>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "device/communicator.h"
#include "near.h"
#include "solver/ranks/gradient_exchange.h"
#include "solver/ranks/rank_threads.h"
#include "solver/training_test.h"

namespace crema {

// Without what differs between ranks on purpose (dropout), and with layers of several buckets where `wide` is large.
inline std::string SharedNet(int batch, int wide = 16, const std::string& more_data = "", int classes = 3) {
  return R"(
name: "shared"
layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TRAIN } transform_param { scale: 0.00390625 }
        data_param { source: "train_lmdb" backend: LMDB batch_size: )" +
         std::to_string(batch) + " " + more_data + R"( } }
layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TEST }
        transform_param { scale: 0.00390625 } data_param { source: "test_lmdb" batch_size: 4 backend: LMDB } }
layer { name: "ip1" type: "InnerProduct" bottom: "data" top: "ip1" param { lr_mult: 1 } param { lr_mult: 2 decay_mult: 0 }
        inner_product_param { num_output: )" +
         std::to_string(wide) + R"( weight_filler { type: "xavier" } } }
layer { name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }
layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2" param { lr_mult: 0 } param { lr_mult: 1 }
        inner_product_param { num_output: 8 weight_filler { type: "xavier" } } }
layer { name: "tanh" type: "TanH" bottom: "ip2" top: "ip2" }
layer { name: "ip3" type: "InnerProduct" bottom: "ip2" top: "ip3"
        inner_product_param { num_output: )" +
         std::to_string(classes) + R"( weight_filler { type: "xavier" } } }
layer { name: "accuracy" type: "Accuracy" bottom: "ip3" bottom: "label" top: "accuracy" include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip3" bottom: "label" top: "loss" }
)";
}

inline std::vector<float> Values(const Net& net) {
  std::vector<float> all;
  for (const Parameter& p : net.parameters()) {
    std::vector<float> values(static_cast<size_t>(p.shape.count()));
    p.CopyDataTo(values.data());
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

class DataParallel : public SmallTraining {
 protected:
  void SetUp() override { folder_.Write("net.prototxt", SharedNet(6)); }

  virtual std::vector<Device*> Devices(int ranks) { return std::vector<Device*>(ranks, &CpuDevice()); }

  struct Result {
    std::vector<float> parameters, losses;
    Recorder told;
  };
  Result Run(int ranks, const std::string& more, int max_iter, SolverOptions options = {}) {
    options.devices = Devices(ranks);
    const auto solver = Make(SolverText(more, max_iter), std::move(options));
    solver->Train();
    Result result{Values(solver->net()), {}, recorder_};
    for (const IterationEnd& iteration : recorder_.iterations) result.losses.push_back(iteration.loss);
    return result;
  }

  // The message of the exception that training ends with.
  template <typename Error>
  std::string Failure(int ranks, const std::string& more, int max_iter = 20) {
    SolverOptions options;
    options.devices = Devices(ranks);
    const auto solver = Make(SolverText(more, max_iter), std::move(options));
    parameters_before_ = Values(solver->net());
    try {
      solver->Train();
    } catch (const Error& error) {
      parameters_left_ = Values(solver->net());
      // And once more, rather than to go on with ranks that differ.
      if (ranks > 1) {
        EXPECT_THROW(solver->Step(1), Error);
      }
      return error.what();
    }
    ADD_FAILURE() << "trained on";
    return "";
  }

  // The gradients of a pass of two ranks, and in how many sums they were exchanged.
  std::pair<std::vector<float>, size_t> Exchanged(size_t bucket_bytes) {
    const std::vector<Device*> devices = Devices(2);
    const auto group = Connect(devices);
    const NetFile file = ReadNetFile(folder_ / "net.prototxt");
    std::vector<std::unique_ptr<Net>> nets;
    std::vector<std::unique_ptr<GradientExchange>> exchanges;
    for (int rank = 0; rank < 2; ++rank) {
      NetOptions options;
      options.announce_gradients = true;
      options.context = Context{devices[rank], 3, 1, rank, 2};
      nets.push_back(std::make_unique<Net>(file, options));
      exchanges.push_back(std::make_unique<GradientExchange>(*nets[rank], *devices[rank], *group[rank], bucket_bytes));
    }
    RankThreads threads(2, 1, [&] { group[0]->Abort(); });
    std::vector<std::vector<float>> gradients(2);
    threads.Run([&](int rank) {
      for (int pass = 0; pass < 2; ++pass) {
        nets[rank]->ForwardBackward(exchanges[rank].get(), [&] { exchanges[rank]->Finish(); });
      }
      for (const Parameter& p : std::as_const(*nets[rank]).parameters()) {
        if (!p.grad.defined()) continue;
        std::vector<float> plain(static_cast<size_t>(p.shape.count()));
        p.CopyGradTo(plain.data());
        gradients[rank].insert(gradients[rank].end(), plain.begin(), plain.end());
      }
    });
    EXPECT_EQ(gradients[0], gradients[1]);
    EXPECT_EQ(exchanges[0]->sums(), exchanges[1]->sums());
    return {gradients[0], exchanges[0]->sums()};
  }

  void ExpectSumsInBuckets() {
    // Two layers that share their weights, whose gradient is whole with the lower one, and one parameter that is fixed.
    std::string net = SharedNet(6, 8);
    const std::string fixed = R"(top: "ip2" param { lr_mult: 0 } param { lr_mult: 1 })";
    net.replace(net.find(fixed), fixed.size(), R"(top: "ip2" param { lr_mult: 0 } param { name: "b" })");
    net.insert(net.find("layer { name: \"ip3\""), R"(
layer { name: "more" type: "InnerProduct" bottom: "ip2" top: "more" param { name: "w" } param { name: "b" }
        inner_product_param { num_output: 8 weight_filler { type: "xavier" } } }
layer { name: "again" type: "InnerProduct" bottom: "more" top: "again" param { name: "w" } param { name: "c" }
        inner_product_param { num_output: 8 } }
)");
    const size_t ip3 = net.find("bottom: \"ip2\" top: \"ip3\"");
    net.replace(ip3, 13, "bottom: \"again\"");
    folder_.Write("net.prototxt", net);
    const auto whole = Exchanged(size_t{1} << 30);
    EXPECT_EQ(whole.second, 1u);
    for (const size_t bytes : {1, 40, 300}) {
      const auto parts = Exchanged(bytes);
      EXPECT_GT(parts.second, 2u) << bytes;
      EXPECT_EQ(parts.first, whole.first) << bytes;
    }
  }

  void ExpectRecurrentLayersToBeginAnew() {
    folder_.Write("net.prototxt", kRecurrentNet);
    const std::string settings = "momentum: 0.9 snapshot: 3 test_iter: 2 test_interval: 2";
    const Result whole = Run(2, settings, 6);
    EXPECT_NE(whole.told.notices.find("recurrent layer \"lstm\""), std::string::npos) << whole.told.notices;
    EXPECT_NE(whole.told.notices.find("each of 2 ranks takes one batch in 2"), std::string::npos);
    SolverOptions options;
    options.snapshot = folder_ / "snap_iter_3.solverstate";
    EXPECT_EQ(Run(2, settings, 6, options).parameters, whole.parameters);
    const std::string notices = Run(1, settings, 6, options).told.notices;
    EXPECT_NE(notices.find("no state of recurrent layer \"lstm\" of the train net that fits: it starts with zeros"),
              std::string::npos)
        << notices;
  }

  void ExpectOtherMasks() {
    folder_.Write("net.prototxt", kSmallNet);
    NetFile file = ReadNetFile(folder_ / "net.prototxt");
    std::vector<std::vector<bool>> dropped;
    for (int rank = 0; rank < 2; ++rank) {
      NetOptions options;
      options.search_folders = {folder_ / ""};
      options.keep_all = true;
      options.context = Context{Devices(2)[rank], 3, 0, rank, 2};
      Net net(file, options);
      net.set_data_position("data", rank == 0 ? 7 : 0);  // then both see the same records
      net.Forward();
      const Tensor top = net.blob("ip1");
      auto& zeros = dropped.emplace_back();
      for (int64_t i = 0; i < top.count(); ++i) zeros.push_back(top.f32()[i] == 0);
    }
    EXPECT_NE(dropped[0], dropped[1]);
  }

  void ExpectNamesTheRecordOfABadLabel() {
    std::set<int> in_share_of;
    for (int batch = 1; batch <= 4; ++batch) {
      SCOPED_TRACE(batch);
      folder_.Write("net.prototxt", SharedNet(batch, 16, "", 2));
      const std::string alone = Failure<UserError>(1, "base_lr: 0");
      EXPECT_NE(alone.find("label 2 is outside the 2 classes"), std::string::npos) << alone;
      const size_t record = alone.find("record \"");
      ASSERT_NE(record, std::string::npos) << alone;
      in_share_of.insert(std::stoi(alone.substr(record + 8)) / batch % 2);
      EXPECT_EQ(Failure<UserError>(2, "base_lr: 0.5"), alone);
    }
    EXPECT_EQ(in_share_of.size(), 2u);
    // At once: no parameter has changed.
    folder_.Write("net.prototxt", SharedNet(20, 16, "", 2));
    for (const std::string iter_size : {"", " iter_size: 2"}) {
      Failure<UserError>(2, "base_lr: 0.5" + iter_size);
      EXPECT_EQ(parameters_left_, parameters_before_) << iter_size;
    }
  }

  void ExpectStopsWhereTheLossIsNotFinite() {
    folder_.Write("net.prototxt", kSmallNet);
    const std::string message = Failure<EnvironmentError>(2, "base_lr: 1e30");
    EXPECT_NE(message.find("the loss is"), std::string::npos) << message;
    EXPECT_NE(message.find("The first values that are not finite: "), std::string::npos) << message;
  }

  void ExpectStopsWhereTheLossOfOneRankIsNotFinite() {
    // The first rank's records are dark, the second one's so bright that numbers overflow.
    WriteDarkThenBright(folder_ / "uneven_lmdb", 6);
    std::string net = SharedNet(6);
    net.replace(net.find("scale: 0.00390625"), 17, "scale: 1e38");
    net.replace(net.find("train_lmdb"), 10, "uneven_lmdb");
    folder_.Write("net.prototxt", net);
    for (const std::string settings : {"", "iter_size: 2"}) {
      const std::string message = Failure<EnvironmentError>(2, settings);
      EXPECT_NE(message.find("iteration 0: the loss is"), std::string::npos) << message;
      EXPECT_NE(message.find("The first values that are not finite: layer \"data\""), std::string::npos) << message;
      EXPECT_NE(message.find("top \"data\", record \""), std::string::npos) << message;
      EXPECT_NE(message.find("They come so from the data: mend it"), std::string::npos) << message;
      EXPECT_EQ(message.find("Lower base_lr"), std::string::npos) << message;
      EXPECT_EQ(parameters_left_, parameters_before_) << settings;
    }
  }

  // Two ranks against one that sums over two batches; `limit`: clip_gradients of the mean of both.
  void CompareWithSumOverTwo(const std::string& settings, int iterations, double tolerance, double limit = 0) {
    const auto clip = [&](double of) { return limit > 0 ? " clip_gradients: " + std::to_string(of) : ""; };
    const Result alone = Run(1, settings + " iter_size: 2" + clip(2 * limit), iterations);
    const Result both = Run(2, settings + clip(limit), iterations);
    ExpectSame(both.parameters, alone.parameters, tolerance);
    ExpectSame(both.losses, alone.losses, tolerance);
    EXPECT_EQ(both.told.clipped.size(), alone.told.clipped.size());
    EXPECT_EQ(both.told.order, alone.told.order);
    EXPECT_EQ(both.told.starts.at(0).ranks, 2);
  }
  static void ExpectSame(const std::vector<float>& got, const std::vector<float>& wanted, double tolerance) {
    if (tolerance > 0) return ExpectNear(wanted, got, tolerance, "values");
    EXPECT_EQ(got, wanted);
  }

  std::vector<float> parameters_before_, parameters_left_;
};

// Ends training.
class Thrower : public Observer {
 public:
  void OnIteration(const IterationEnd& end) override {
    if (end.iteration == 2) throw std::runtime_error("enough");
  }
  void OnDisplay(const Display& display) override {
    if (display.iteration == in_display) throw std::runtime_error("enough");
  }
  int in_display = -1;
};

}  // namespace crema

#endif  // CREMA_SOLVER_DATA_PARALLEL_TEST_H_
