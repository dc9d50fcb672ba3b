// Nets on a GPU: the values of nets on the CPU, pass after pass, replayed or not.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>

#include "crema/error.h"
#include "crema/net.h"
#include "device/gpu.h"
#include "graph/program.h"
#include "ops/operations.h"

namespace crema {
namespace {

constexpr char kGpuNet[] = R"(
name: "small"
layer { type: "Input" name: "in" top: "data" top: "label"
        input_param { shape { dim: 4 dim: 3 dim: 9 dim: 8 } shape { dim: 4 } } }
layer { type: "Convolution" name: "c1" bottom: "data" top: "c1"
        convolution_param { num_output: 20 kernel_size: 3 weight_filler { type: "msra" } } }
layer { type: "BatchNorm" name: "n1" bottom: "c1" top: "n1" }
layer { type: "Scale" name: "s1" bottom: "n1" top: "n1" scale_param { bias_term: true } }
layer { type: "ReLU" name: "r1" bottom: "n1" top: "n1" }
layer { type: "Convolution" name: "c2" bottom: "n1" top: "c2"
        convolution_param { num_output: 20 kernel_size: 3 pad: 1 weight_filler { type: "msra" } } }
layer { type: "BatchNorm" name: "n2" bottom: "c2" top: "c2" batch_norm_param { scale_bias: true eps: 0.5 } }
layer { type: "Eltwise" name: "e" bottom: "c2" bottom: "n1" top: "e" }
layer { type: "LRN" name: "l" bottom: "e" top: "l" }
layer { type: "Dropout" name: "d" bottom: "l" top: "l" }
layer { type: "InnerProduct" name: "ip" bottom: "l" top: "ip"
        inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
layer { type: "SoftmaxWithLoss" name: "loss" bottom: "ip" bottom: "label" top: "loss" })";

class GpuNet : public testing::Test {
 protected:
  void SetUp() override {
    try {
      gpu_ = &OpenGpu(0);
    } catch (const EnvironmentError& error) {
      GTEST_SKIP() << error.what();
    }
  }

  static NetOptions On(Device& device, NetOptions options = {}) {
    options.context.device = &device;
    options.context.seed = 3;
    return options;
  }

  // Images lie as on a GPU in f32: what Dropout drops depends on it.
  static NetOptions OnCpu(NetOptions options = {}) {
    options.skip_passes = {"choose_layouts"};
    return On(CpuDevice(), std::move(options));
  }

  static void WriteInputs(Net& net, int turn) {
    const std::vector<NetInput> inputs = net.inputs();
    for (int64_t i = 0; i < inputs[0].value.count(); ++i) {
      inputs[0].value.f32()[i] = std::sin(0.37f * static_cast<float>(i + turn));
    }
    if (inputs.size() < 2) return;
    for (int64_t i = 0; i < inputs[1].value.count(); ++i) {
      inputs[1].value.f32()[i] = static_cast<float>((i + turn) % 5);
    }
  }

  // Passes with other inputs each time; the losses and the sums of squares of the gradients must agree.
  static void Compare(Net& cpu, Net& gpu, int passes, bool backward, double tolerance) {
    for (int turn = 0; turn < passes; ++turn) {
      SCOPED_TRACE("pass " + std::to_string(turn));
      for (Net* net : {&cpu, &gpu}) {
        WriteInputs(*net, turn);
        net->ClearGradients();
      }
      const float expected = cpu.Forward(), got = gpu.Forward();
      EXPECT_NEAR(got, expected, tolerance * std::max(1.0f, std::fabs(expected)));
      const auto outputs = cpu.outputs(), on_gpu = gpu.outputs();
      for (size_t o = 0; o < outputs.size(); ++o) {
        for (int64_t i = 0; i < outputs[o].value.count(); ++i) {
          EXPECT_NEAR(on_gpu[o].value.value(i), outputs[o].value.value(i), tolerance);
        }
      }
      if (!backward) continue;
      cpu.Backward();
      gpu.Backward();
      for (size_t p = 0; p < std::as_const(cpu).parameters().size(); ++p) {
        const Parameter &a = std::as_const(cpu).parameters()[p], &b = std::as_const(gpu).parameters()[p];
        if (!a.grad.defined()) continue;
        std::vector<float> wanted(static_cast<size_t>(a.shape.count())), found(wanted.size());
        a.CopyGradTo(wanted.data());
        b.CopyGradTo(found.data());
        float largest = 0;
        for (const float value : wanted) largest = std::max(largest, std::fabs(value));
        for (size_t i = 0; i < wanted.size(); ++i) {
          ASSERT_NEAR(found[i], wanted[i], tolerance * std::max(1e-2f, largest)) << a.name() << " " << i;
        }
      }
    }
  }

  Gpu* gpu_ = nullptr;
};

TEST_F(GpuNet, TrainsAsOnTheCpu) {
  Net cpu(ParseNet(kGpuNet, "net.prototxt"), OnCpu()), gpu(ParseNet(kGpuNet, "net.prototxt"), On(*gpu_));
  Compare(cpu, gpu, 4, true, 2e-4);
}

// A graph that is replayed must not draw the same again. There are graphs of nets that learn.
TEST_F(GpuNet, DrawsAnchorsAndRegionsAnewAsOnTheCpu) {
  constexpr char kTargets[] = R"(
layer { type: "Input" name: "in" top: "scores" top: "objects" top: "info" top: "regions"
        input_param { shape { dim: 1 dim: 12 dim: 6 dim: 8 } shape { dim: 2 dim: 5 } shape { dim: 1 dim: 3 }
                      shape { dim: 40 dim: 5 } } }
layer { type: "AnchorTarget" name: "a" bottom: "scores" bottom: "objects" bottom: "info"
        top: "a_label" top: "a_offset" top: "a_inside" top: "a_outside"
        anchor_target_param { feat_stride: 8 base_size: 8 scale: 1 scale: 2 batch_size: 12 } }
layer { type: "ProposalTarget" name: "p" bottom: "regions" bottom: "objects"
        top: "p_region" top: "p_label" top: "p_offset" top: "p_inside" top: "p_outside"
        proposal_target_param { num_classes: 3 batch_size: 8 } }
layer { type: "InnerProduct" name: "ip" bottom: "p_region" top: "ip"
        inner_product_param { num_output: 3 weight_filler { type: "gaussian" std: 0.01 } } }
layer { type: "SoftmaxWithLoss" name: "loss" bottom: "ip" bottom: "p_label" top: "loss" })";
  const std::vector<float> objects = {3, 5, 20, 24, 1, 30, 10, 60, 40, 2}, info = {48, 64, 1};
  Net cpu(ParseNet(kTargets, "net.prototxt"), On(CpuDevice())), gpu(ParseNet(kTargets, "net.prototxt"), On(*gpu_));
  std::vector<float> before;
  for (int turn = 0; turn < 5; ++turn) {
    SCOPED_TRACE("pass " + std::to_string(turn));
    for (Net* net : {&cpu, &gpu}) {
      const std::vector<NetInput> inputs = net->inputs();
      std::copy(objects.begin(), objects.end(), inputs[1].value.f32());
      std::copy(info.begin(), info.end(), inputs[2].value.f32());
      for (int i = 0; i < 40; ++i) {
        const auto x = static_cast<float>(i % 8 * 5), y = static_cast<float>(i / 8 * 4);
        const float region[] = {0, x, y, x + 20, y + 22};
        std::copy(std::begin(region), std::end(region), inputs[3].value.f32() + 5 * i);
      }
      net->Forward();
    }
    std::vector<float> drawn;
    const auto outputs = cpu.outputs(), on_gpu = gpu.outputs();
    for (size_t o = 0; o < outputs.size(); ++o) {
      for (int64_t i = 0; i < outputs[o].value.count(); ++i) {
        drawn.push_back(outputs[o].value.value(i));
        ASSERT_NEAR(on_gpu[o].value.value(i), drawn.back(), 1e-5) << outputs[o].name << " " << i;
      }
    }
    EXPECT_NE(drawn, before);
    before = drawn;
  }
}

TEST_F(GpuNet, IssuesEachPassWhereGraphsAreTurnedOff) {
  Net replayed(ParseNet(kGpuNet, "net.prototxt"), On(*gpu_)), issued(ParseNet(kGpuNet, "net.prototxt"), On(*gpu_));
  for (int turn = 0; turn < 4; ++turn) {
    float losses[2];
    for (Net* net : {&replayed, &issued}) {
      if (net == &issued) setenv("CREMA_GPU_GRAPHS", "0", 1);
      WriteInputs(*net, turn);
      losses[net == &issued] = net->ForwardBackward();
      unsetenv("CREMA_GPU_GRAPHS");
    }
    EXPECT_EQ(losses[0], losses[1]) << "pass " << turn;
  }
}

TEST_F(GpuNet, TellsWhatAGraphCannotKeep) {
  Operations& ops = OperationsOf(*gpu_);
  const Buffer memory(*gpu_, sizeof(float));
  const Tensor value(memory.data(), {Shape{1}, DType::kF32});
  float read = 0;
  const std::function<void()> wrong[] = {[&] { gpu_->CopyOut(value.raw(), &read, sizeof read); },
                                         [&] { const Buffer more(*gpu_, 64); }};
  for (const auto& issue : wrong) {
    try {
      gpu_->Capture([&] {
        ops.Fill(2, value);
        issue();
      });
      FAIL() << "kept";
    } catch (const EnvironmentError& error) {
      EXPECT_NE(std::string(error.what()).find("CREMA_GPU_GRAPHS=0"), std::string::npos) << error.what();
    }
    // The GPU goes on.
    ops.Fill(1, value);
    const auto graph = gpu_->Capture([&] { ops.Multiply(3, value, value); });
    for (int turn = 0; turn < 2; ++turn) graph->Launch();
    gpu_->CopyOut(value.raw(), &read, sizeof read);
    EXPECT_EQ(read, 9);
  }
}

TEST_F(GpuNet, KeepsEveryValueWhereThatIsWanted) {
  Net cpu(ParseNet(kGpuNet, "net.prototxt"), OnCpu({.keep_all = true}));
  Net gpu(ParseNet(kGpuNet, "net.prototxt"), On(*gpu_, {.keep_all = true}));
  Compare(cpu, gpu, 2, true, 2e-4);
  for (const std::string& name : cpu.blob_names()) {
    const Tensor wanted = cpu.blob(name), found = gpu.blob(name);
    for (int64_t i = 0; i < wanted.count(); ++i) {
      ASSERT_NEAR(found.value(i), wanted.value(i), 1e-4 * std::max(1.0, std::fabs(wanted.value(i)))) << name;
    }
  }
}

TEST_F(GpuNet, RunsLayersAgainToSaveMemory) {
  Net kept(ParseNet(kGpuNet, "net.prototxt"), On(*gpu_));
  const size_t enough = kept.compiled().program.arena_bytes;
  NetOptions options{.recompute = Recompute::kAuto, .memory_limit = enough + (enough / 2)};
  Net again(ParseNet(kGpuNet, "net.prototxt"), On(*gpu_, options));
  Compare(kept, again, 3, true, 0);
}

TEST_F(GpuNet, TestsWithTheParametersOfATrainNet) {
  for (const bool share : {false, true}) {
    Net cpu(ParseNet(kGpuNet, "net.prototxt"), OnCpu()), gpu(ParseNet(kGpuNet, "net.prototxt"), On(*gpu_));
    const auto test = [&](Net& net, Device& device) {
      NetOptions options{.phase = TEST, .backward = false, .share_with = &net, .share_memory = share};
      return std::make_unique<Net>(ParseNet(kGpuNet, "net.prototxt"), On(device, options));
    };
    const auto cpu_test = test(cpu, CpuDevice()), gpu_test = test(gpu, *gpu_);
    for (int round = 0; round < 3; ++round) {
      Compare(cpu, gpu, 2, true, 2e-4);
      // Twice with what is converted anew after training, then with what was kept.
      Compare(*cpu_test, *gpu_test, 3, false, 2e-4);
    }
  }
}

TEST_F(GpuNet, ClassifiesInEveryPrecision) {
  for (const Precision precision : {Precision::kF32, Precision::kTF32, Precision::kBF16, Precision::kFP16}) {
    const NetOptions options{.phase = TEST, .precision = precision, .backward = false};
    Net cpu(ParseNet(kGpuNet, "net.prototxt"), On(CpuDevice(), {.phase = TEST, .backward = false}));
    Net gpu(ParseNet(kGpuNet, "net.prototxt"), On(*gpu_, options));
    EXPECT_TRUE(gpu.warnings().empty());
    Compare(cpu, gpu, 3, false, precision == Precision::kF32 ? 1e-4 : precision == Precision::kFP16 ? 3e-3 : 3e-2);
  }
}

TEST_F(GpuNet, SumsLossesThatAreImagesInHalfPrecision) {
  const NetFile file = ParseNet(R"(
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 3 dim: 4 dim: 5 dim: 5 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" loss_weight: 0.25
        convolution_param { num_output: 6 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool" pooling_param { kernel_size: 3 } }
)",
                                "net.prototxt");
  for (const Precision precision : {Precision::kBF16, Precision::kFP16}) {
    Net cpu(file, On(CpuDevice())), gpu(file, On(*gpu_, {.precision = precision}));
    Compare(cpu, gpu, 2, true, 1e-2);
  }
}

// Gradients times a factor that lies on the device, also when passes are replayed; and those of the same pass again.
TEST_F(GpuNet, GradientsTakeAFactorOfTheLoss) {
  Net plain(ParseNet(kGpuNet, "net.prototxt"), On(*gpu_)), scaled(ParseNet(kGpuNet, "net.prototxt"), On(*gpu_));
  const Buffer memory(*gpu_, sizeof(float));
  const auto* const factor = reinterpret_cast<const float*>(memory.data());
  const auto gradients = [](const Net& net) {
    std::vector<float> all;
    for (const Parameter& p : net.parameters()) {
      if (!p.grad.defined()) continue;
      std::vector<float> values(static_cast<size_t>(p.shape.count()));
      p.CopyGradTo(values.data());
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  };
  for (int turn = 0; turn < 6; ++turn) {
    SCOPED_TRACE(turn);
    if (turn == 2) scaled.set_loss_factor(factor);
    if (turn == 5) scaled.set_loss_factor(nullptr);
    const float value = turn < 2 || turn == 5 ? 1 : turn == 3 ? 0.125f : 16;
    gpu_->CopyIn(&value, memory.data(), sizeof value);
    for (Net* net : {&plain, &scaled}) {
      WriteInputs(*net, turn);
      net->ClearGradients();
      net->ForwardBackward();
    }
    std::vector<float> expected = gradients(plain);
    for (float& g : expected) g *= value;
    EXPECT_EQ(gradients(scaled), expected);
    scaled.RepeatBackward();
    EXPECT_EQ(gradients(scaled), expected);
  }
}

TEST_F(GpuNet, TellsWhenEachStepRan) {
  struct Recorder : StepRecorder {
    void OnStep(int step, Clock::time_point begin, Clock::time_point end) override {
      EXPECT_EQ(step, static_cast<int>(begins.size()));
      EXPECT_LE(begin, end);
      if (!begins.empty() && !is_second_pass) {
        EXPECT_GE(begin, begins.back());
      }
      begins.push_back(begin);
    }
    std::vector<Clock::time_point> begins;
    bool is_second_pass = false;
  };
  Net net(ParseNet(kGpuNet, "net.prototxt"), On(*gpu_));
  WriteInputs(net, 0);
  for (int warm = 0; warm < 2; ++warm) {
    net.Forward();
    net.Backward();
  }
  Recorder recorder;
  net.set_recorder(&recorder);
  net.Forward();
  recorder.is_second_pass = true;
  net.Backward();
  net.set_recorder(nullptr);
  EXPECT_EQ(static_cast<int>(recorder.begins.size()), net.compiled().program.steps());
}

TEST_F(GpuNet, SaysWhatTakesTheMemory) {
  std::string large = kGpuNet;
  for (size_t at = 0; (at = large.find("dim: 4", at)) != std::string::npos; ++at) large.replace(at, 6, "dim: 90000000");
  for (const Precision precision : {Precision::kF32, Precision::kFP16}) {
    try {
      const Net net(ParseNet(large, "net.prototxt"), On(*gpu_, {.precision = precision}));
      FAIL() << "allocated";
    } catch (const EnvironmentError& error) {
      const std::string text = error.what();
      for (const char* part : {"net \"small\" needs", "pass of layer \"", "on GPU 0", "ower batch_size", "recompute"}) {
        EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
      }
      // Only where that would help.
      EXPECT_EQ(text.find("precision: BF16") != std::string::npos, precision == Precision::kF32) << text;
    }
  }
}

TEST_F(GpuNet, MixesWithNetsOnOtherGpus) {
  Gpu* other = nullptr;
  try {
    other = &OpenGpu(1);
  } catch (const EnvironmentError& error) {
    GTEST_SKIP() << error.what();
  }
  Net first(ParseNet(kGpuNet, "net.prototxt"), On(*gpu_)), second(ParseNet(kGpuNet, "net.prototxt"), On(*other));
  Compare(first, second, 3, true, 0);
}

}  // namespace
}  // namespace crema
