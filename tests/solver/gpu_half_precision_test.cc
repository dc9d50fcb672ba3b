// Training in half precision, with a loss scale that is found while training.
#include <zlib.h>

#include <fstream>
#include <sstream>

#include "errors.h"
#include "files.h"
#include "graph/program.h"
#include "solver/gpu_training_test.h"

namespace crema {
namespace {

class GpuHalfPrecision : public GpuTraining {
 protected:
  // Gradients of a loss that is so heavy overflow until the scale is below 1; the rate makes up for it.
  static constexpr char kHeavy[] = "precision: FP16 momentum: 0.9 base_lr: 5e-8 ";
  void WeighLoss(const std::string& weight) {
    std::string net = kImagesNet;
    const std::string top = "bottom: \"label\" top: \"loss\"";
    net.insert(net.find(top) + top.size(), " loss_weight: " + weight);
    folder_.Write("net.prototxt", net);
  }

  std::string StatePath(int iteration) { return folder_ / ("snap_iter_" + std::to_string(iteration) + ".solverstate"); }
  SolverState ReadState(int iteration) {
    SolverState state;
    EXPECT_TRUE(state.ParseFromString(ReadFile(StatePath(iteration))));
    return state;
  }
  void WriteState(int iteration, SolverState state) {
    state.clear_state_crc32();
    std::string bytes = state.SerializeAsString();
    SolverState last;
    last.set_state_crc32(static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size())));
    std::ofstream(StatePath(iteration), std::ios::binary) << bytes << last.SerializeAsString();
  }
  std::unique_ptr<Solver> Resumed(int iteration, const std::string& settings, int max_iter) {
    SolverOptions options;
    options.snapshot = StatePath(iteration);
    return On(gpu_, settings, max_iter, options);
  }
  std::string Failure(Solver& solver) {
    std::string error = ThrownBy<NotFinite>([&] { solver.Train(); });
    EXPECT_NE(error, "") << "trained on";
    return error;
  }
};

TEST_F(GpuHalfPrecision, LearnsAsInF32) {
  const std::string settings = "momentum: 0.9 test_iter: 4 test_interval: 30";
  On(gpu_, settings, 30)->Train();
  const Recorder expected = recorder_;
  const auto solver = On(gpu_, settings + " precision: FP16", 30);
  const Graph& graph = solver->net().compiled().graph;
  EXPECT_GE(std::count_if(graph.order.begin(), graph.order.end(),
                          [&](int u) { return graph.unit(u).image_type == DType::kF16; }),
            4);
  solver->Train();
  EXPECT_TRUE(recorder_.overflowed.empty());
  EXPECT_LT(recorder_.iterations.back().loss, 0.5f * recorder_.iterations.front().loss);
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_NEAR(recorder_.iterations[i].loss, expected.iterations[i].loss, 3e-2) << i;
  }
  ASSERT_EQ(recorder_.tests.size(), 2u);
  EXPECT_NEAR(recorder_.tests[1].outputs[0].value, expected.tests[1].outputs[0].value, 0.07);
}

TEST_F(GpuHalfPrecision, ByEveryWayToUpdate) {
  for (const std::string settings : {"type: \"Adam\" base_lr: 0.001 momentum: 0.9 delta: 0.001", "iter_size: 3",
                                     "clip_gradients: 0.5", "clip_gradients: 0.5 iter_size: 2"}) {
    SCOPED_TRACE(settings);
    Compare("precision: FP16 " + settings, 4, 1e-2);
    if (settings.find("clip") == std::string::npos) continue;
    EXPECT_EQ(recorder_.clipped.size(), 4u);  // the last one, too
  }
}

TEST_F(GpuHalfPrecision, LeavesOutUpdatesUntilGradientsAreFinite) {
  WeighLoss("1e6");
  const auto solver = On(gpu_, kHeavy + std::string("snapshot: 3"), 40);
  const auto before = Values(solver->net(), false);
  solver->Step(3);
  EXPECT_EQ(Values(solver->net(), false), before);
  const SolverState state = ReadState(3);
  EXPECT_EQ(state.loss_scale(), 8192);
  EXPECT_EQ(state.loss_scale_updates(), 0u);
  ASSERT_GT(state.history_size(), 0);
  for (const BlobProto& history : state.history()) {
    for (const float value : history.data()) ASSERT_EQ(value, 0);
  }
  solver->Train();
  ASSERT_GT(recorder_.overflowed.size(), 3u);
  for (size_t i = 0; i < recorder_.overflowed.size(); ++i) {
    EXPECT_EQ(recorder_.overflowed[i].loss_scale, std::ldexp(32768.0f, -static_cast<int>(i)));
    EXPECT_TRUE(recorder_.overflowed[i].left_out);
    if (i < 3) {
      EXPECT_EQ(recorder_.overflowed[i].iteration, static_cast<int>(i));
    }
  }
  const float found = recorder_.overflowed.back().loss_scale;
  EXPECT_LT(found, 2);
  EXPECT_EQ(ReadState(40).loss_scale(), found);
  EXPECT_EQ(ReadState(40).loss_scale_updates() + recorder_.overflowed.size(), 40u);
  EXPECT_LT(recorder_.iterations.back().loss, 0.7f * recorder_.iterations.front().loss);
}

TEST_F(GpuHalfPrecision, TellsOfTheLastUpdate) {
  WeighLoss("1e6");
  On(gpu_, kHeavy, 2)->Train();
  EXPECT_EQ(recorder_.overflowed.size(), 2u);
}

TEST_F(GpuHalfPrecision, TriesALargerScaleAfterManyUpdates) {
  WeighLoss("1e-4");  // so that the largest scale does not overflow
  const std::string settings = "precision: FP16";
  On(gpu_, settings, 1)->Train();
  SolverState state = ReadState(1);
  EXPECT_EQ(state.loss_scale(), 65536);
  EXPECT_EQ(state.loss_scale_updates(), 1u);
  state.set_loss_scale_updates(1998);
  WriteState(1, state);
  Resumed(1, settings, 4)->Train();
  EXPECT_EQ(ReadState(4).loss_scale(), 131072);
  EXPECT_EQ(ReadState(4).loss_scale_updates(), 1u);

  state.set_loss_scale(0x1p24f);
  state.set_loss_scale_updates(1999);
  WriteState(1, state);
  Resumed(1, settings, 2)->Train();
  EXPECT_TRUE(recorder_.overflowed.empty());
  EXPECT_EQ(ReadState(2).loss_scale(), 0x1p24f);
  EXPECT_EQ(ReadState(2).loss_scale_updates(), 0u);
}

TEST_F(GpuHalfPrecision, ResumesWithTheSameBits) {
  WeighLoss("1e6");
  const std::string settings = kHeavy + std::string("snapshot: 5");
  const auto whole = On(gpu_, settings, 24);
  whole->Train();
  const auto told = recorder_.overflowed;
  for (const int at : {5, 20}) {
    const auto resumed = Resumed(at, settings, 24);
    resumed->Train();
    EXPECT_EQ(Values(resumed->net()), Values(whole->net()));
    EXPECT_EQ(recorder_.overflowed.size(), at == 5 ? told.size() - 5 : 0);
  }
}

TEST_F(GpuHalfPrecision, TakesASnapshotOfAnotherPrecision) {
  const std::string settings = "momentum: 0.9 snapshot: 2";
  On(gpu_, settings, 2)->Train();
  EXPECT_FALSE(ReadState(2).has_loss_scale());
  Resumed(2, settings + " precision: FP16", 4)->Train();
  EXPECT_EQ(ReadState(4).loss_scale(), 65536);
  Resumed(4, settings, 5)->Train();
  EXPECT_FALSE(ReadState(5).has_loss_scale());
}

TEST_F(GpuHalfPrecision, ByAScaleThatIsGiven) {
  const auto train = [&](const std::string& scale) {
    const auto solver = On(gpu_, "precision: FP16 momentum: 0.9" + scale, 6);
    solver->Train();
    EXPECT_FALSE(ReadState(6).has_loss_scale());
    return Values(solver->net());
  };
  const auto found = [&] {
    const auto solver = On(gpu_, "precision: FP16 momentum: 0.9", 6);
    solver->Train();
    return Values(solver->net());
  }();
  EXPECT_EQ(train(" loss_scale: 65536"), found);
  const auto other = train(" loss_scale: 1000");
  for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(other[i], found[i], 1e-2 * std::max(1.0f, std::fabs(found[i])));
  EXPECT_NE(other, found);
}

TEST_F(GpuHalfPrecision, StopsByAScaleThatIsTooLarge) {
  for (const int iterations : {1, 5}) {
    const auto solver = On(gpu_, "precision: FP16 loss_scale: 1e9", iterations);
    const auto before = Values(solver->net(), false);
    const std::string message = Failure(*solver);
    for (const char* part : {"iteration 0:", "loss_scale 1e+09", "Set a lower loss_scale"}) {
      EXPECT_NE(message.find(part), std::string::npos) << part << " in: " << message;
    }
    EXPECT_EQ(Values(solver->net(), false), before);
  }
}

TEST_F(GpuHalfPrecision, StopsWhereNoScaleHelps) {
  WeighLoss("1e15");
  const auto solver = On(gpu_, "precision: FP16", 60);
  const auto before = Values(solver->net(), false);
  const std::string message = Failure(*solver);
  EXPECT_NE(message.find("iteration 30: gradients are not finite with a loss scale of 6.1"), std::string::npos)
      << message;
  EXPECT_EQ(recorder_.overflowed.size(), 30u);
  EXPECT_EQ(Values(solver->net(), false), before);
}

TEST_F(GpuHalfPrecision, StopsWhereTheLossIsNotFinite) {
  const auto solver = On(gpu_, "precision: FP16 base_lr: 1e30", 5);
  const std::string message = Failure(*solver);
  EXPECT_NE(message.find("the loss is"), std::string::npos) << message;
  EXPECT_NE(message.find("65504"), std::string::npos) << message;
}

TEST_F(GpuHalfPrecision, SnapshotsHoldGradientsOfTheLossItself) {
  const auto gradients = [&](const std::string& more) {
    On(gpu_, "base_lr: 0 snapshot_diff: true " + more, 2)->Train();
    NetParameter net;
    EXPECT_TRUE(net.ParseFromString(ReadFile(folder_ / "snap_iter_2.caffemodel")));
    std::vector<float> all;
    for (const LayerParameter& layer : net.layer()) {
      for (const BlobProto& blob : layer.blobs()) all.insert(all.end(), blob.diff().begin(), blob.diff().end());
    }
    return all;
  };
  const auto expected = gradients(""), found = gradients("precision: FP16");
  ASSERT_EQ(found.size(), expected.size());
  const float largest = *std::max_element(expected.begin(), expected.end());
  EXPECT_GT(largest, 1e-3f);
  for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-2 * largest) << i;
}

TEST_F(GpuHalfPrecision, IsF32OnTheCpu) {
  const auto train = [&](const std::string& more) {
    const auto solver = On(nullptr, "momentum: 0.9" + more, 3);
    solver->Train();
    return Values(solver->net());
  };
  const auto expected = train("");
  EXPECT_EQ(train(" precision: FP16 loss_scale: 1000"), expected);
  EXPECT_NE(recorder_.notices.find("set precision: BF16 there"), std::string::npos) << recorder_.notices;
}

}  // namespace
}  // namespace crema
