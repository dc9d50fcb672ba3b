// Layers that run on a few items of the batch at a time compute what they do on all of it.
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/compute_threads.h"
#include "base/number_text.h"
#include "crema/error.h"
#include "crema/net.h"
#include "device/device.h"
#include "graph/program.h"
#include "report/step_recording.h"
#include "report/timing_table.h"

namespace crema {
namespace {

// Large for the caches of two threads, whatever the processor.
class SplitBatch : public ::testing::Test {
 protected:
  static std::string Input(int items) {
    return "layer { name: \"in\" type: \"Input\" top: \"image\" input_param { shape { dim: " + std::to_string(items) +
           " dim: 16 dim: 96 dim: 96 } } }\n";
  }
  static std::string Convolution(const std::string& name, const std::string& bottom, const std::string& more = "") {
    return "layer { name: \"" + name + "\" type: \"Convolution\" bottom: \"" + bottom + "\" top: \"" + name +
           "\" convolution_param { num_output: 16 weight_filler { type: \"xavier\" } " +
           (more.empty() ? "kernel_size: 1" : more) + " } }\n";
  }
  static std::string Layer(const std::string& type, const std::string& bottoms, const std::string& top,
                           const std::string& more = "") {
    return "layer { name: \"" + top + "_" + type + "\" type: \"" + type + "\" " + bottoms + " top: \"" + top + "\" " +
           more + " }\n";
  }
  static std::string From(const std::string& bottom) { return "bottom: \"" + bottom + "\""; }
  static std::string Dense(const std::string& bottom, const std::string& top) {
    return Layer("InnerProduct", From(bottom), top,
                 "inner_product_param { num_output: 3 weight_filler { type: \"xavier\" } }");
  }

  struct Outcome {
    std::map<std::string, std::vector<float>> outputs;
    std::vector<ProgramPart> parts;
    size_t arena_bytes = 0;
  };
  static Outcome Run(const std::string& text, NetOptions options, bool split) {
    options.backward = false;
    options.context.device = &CpuDevice();
    options.context.seed = 7;
    if (!split) options.skip_passes = {"split_batch"};
    Net net(ParseNet(text, "net.prototxt"), options);
    for (Parameter& p : net.parameters()) {
      if (p.layer.find("BatchNorm") == std::string::npos) continue;
      for (int64_t i = 0; i < p.data.count(); ++i) p.data.f32()[i] = p.index == 0 ? 0.1f : p.index == 1 ? 0.8f : 2;
    }
    const Tensor image = net.blob("image");
    for (int64_t i = 0; i < image.count(); ++i) image.f32()[i] = std::sin(0.37f * static_cast<float>(i % 100003));
    net.Forward();
    Outcome outcome;
    for (const NetOutput& output : net.outputs()) {
      outcome.outputs[output.name].assign(output.value.f32(), output.value.f32() + output.value.count());
    }
    outcome.parts = net.compiled().program.parts;
    outcome.arena_bytes = net.compiled().program.arena_bytes;
    return outcome;
  }
  // Returns the one that is split.
  static Outcome ExpectSame(const std::string& text, const NetOptions& options = {.phase = TEST}) {
    const Outcome whole = Run(text, options, false), split = Run(text, options, true);
    EXPECT_TRUE(whole.parts.empty());
    EXPECT_EQ(split.outputs.size(), whole.outputs.size());
    for (const auto& [name, values] : whole.outputs) {
      const std::vector<float>& found = split.outputs.at(name);
      float largest = 0, error = 0;
      for (size_t i = 0; i < values.size(); ++i) {
        largest = std::max(largest, std::abs(values[i]));
        error = std::max(error, std::abs(found[i] - values[i]));
      }
      EXPECT_EQ(found.size(), values.size());
      EXPECT_GT(largest, 0) << name;
      EXPECT_LE(error, 1e-5f * largest) << name;
    }
    return split;
  }

  // Thread sanitizers, for which OMP_NUM_THREADS is 1, do not see OpenMP's barriers.
  const int threads_ = std::min(2, omp_get_max_threads());
  const ComputeThreads compute_threads_{threads_};
};

// A residual block, branches that are joined, what looks at neighbours, and layers that take all items at the end.
TEST_F(SplitBatch, OfAWholeNet) {
  const Outcome outcome = ExpectSame(
      Input(32) + Convolution("c1", "image", "kernel_size: 3 pad: 1") + Layer("BatchNorm", From("c1"), "c1") +
      Layer("Scale", From("c1"), "c1", "scale_param { filler { value: 0.7 } bias_term: true }") +
      Layer("ReLU", From("c1"), "c1") + Convolution("c2", "c1", "kernel_size: 3 pad: 1 group: 16") +
      Layer("Sigmoid", From("c2"), "c2") + Layer("Eltwise", From("c1") + From("c2"), "sum") +
      Layer("LRN", From("sum"), "lrn") + Convolution("c3", "lrn") + Convolution("c4", "sum") +
      Layer("Concat", From("c3") + From("c4"), "cat") +
      Layer("Pooling", From("cat"), "pool", "pooling_param { pool: MAX kernel_size: 3 stride: 2 }") +
      Layer("Dropout", From("pool"), "pool") + Dense("pool", "ip") + Layer("Softmax", From("ip"), "prob"));
  ASSERT_FALSE(outcome.parts.empty());
  for (const ProgramPart& part : outcome.parts) {
    EXPECT_EQ(part.rows * part.turns, 32);
    EXPECT_EQ(part.lanes, threads_);
    EXPECT_EQ(part.turns % threads_, 0) << "a thread waits for the other one";
    EXPECT_GT(part.end - part.begin, 1);
  }
}

TEST_F(SplitBatch, TakesLessMemory) {
  const std::string text = Input(32) + Convolution("c1", "image") + Convolution("c2", "c1") + Convolution("c3", "c2") +
                           Layer("Pooling", From("c3"), "pool", "pooling_param { global_pooling: true pool: AVE }");
  const Outcome split = ExpectSame(text);
  EXPECT_LT(split.arena_bytes, Run(text, {.phase = TEST}, false).arena_bytes * 2 / 3);
}

TEST_F(SplitBatch, ValuesThatOthersReadAreWhole) {
  // c2 is read by a layer that takes all items, c1 is asked for, and the image is read before and behind.
  const std::string text = Input(32) + Convolution("c1", "image") + Convolution("c2", "c1") + Convolution("c3", "c2") +
                           Layer("Eltwise", From("c3") + From("image"), "sum") + Dense("c2", "ip2") +
                           Layer("Pooling", From("sum"), "pool", "pooling_param { kernel_size: 4 stride: 4 }") +
                           Dense("pool", "ip") + Layer("Eltwise", From("ip") + From("ip2"), "scores");
  NetOptions options{.phase = TEST};
  EXPECT_FALSE(ExpectSame(text, options).parts.empty());
  options.outputs = {"c1", "scores", "c3"};
  EXPECT_FALSE(ExpectSame(text, options).parts.empty());
}

// Also in a turn that is not the first, by a thread of its own.
TEST_F(SplitBatch, BadItemsAreTheUsersMistake) {
  const std::string text = Input(32) + Convolution("c1", "image") + Convolution("c2", "c1") +
                           Layer("Upsample", From("c2") + From("image"), "up", "upsample_param { scale: 2 }") +
                           Convolution("c3", "up");
  NetOptions options{.phase = TEST};
  options.backward = false;
  options.context.device = &CpuDevice();
  Net net(ParseNet(text, "net.prototxt"), options);
  ASSERT_FALSE(net.compiled().program.parts.empty());
  const Tensor image = net.blob("image");
  for (int pass = 0; pass < 2; ++pass) {
    std::fill_n(image.f32(), image.count(), 1.0f);
    EXPECT_NO_THROW(net.Forward());
    for (const int bad : {29, 13}) image.f32()[image.count() / 32 * bad + 5] = -1;
    std::string error;
    try {
      net.Forward();
    } catch (const UserError& thrown) {
      error = thrown.what();
    }
    EXPECT_NE(error.find("layer \"up_Upsample\" (Upsample)"), std::string::npos) << error;
    EXPECT_TRUE(error.find("item 13 ") != std::string::npos || error.find("item 29 ") != std::string::npos) << error;
  }
}

TEST_F(SplitBatch, ViewsHoldWhatTheyAreViewsOf) {
  const std::string reshaped = "reshape_param { shape { dim: 0 dim: 32 dim: 48 dim: 96 } }";
  // Within, at the end and of a value that is also read as it is; a batch that the file fixes stays whole.
  for (const std::string& more :
       {Layer("Reshape", From("c2"), "r", reshaped) + Convolution("c3", "r"),
        Layer("Flatten", From("c2"), "flat") + Dense("flat", "ip"),
        Layer("Reshape", From("c2"), "r", reshaped) + Convolution("c3", "r") + Dense("r", "ip") + Dense("c2", "ip2"),
        Layer("Reshape", From("c2"), "r", "reshape_param { shape { dim: 32 dim: 32 dim: 48 dim: 96 } }") +
            Convolution("c3", "r"),
        Layer("Split", From("c2"), "s\" top: \"t") + Convolution("c3", "s") + Convolution("c4", "t")}) {
    SCOPED_TRACE(more);
    EXPECT_FALSE(ExpectSame(Input(32) + Convolution("c1", "image") + Convolution("c2", "c1") + more).parts.empty());
  }
}

TEST_F(SplitBatch, LayersThatLookAtTheWholeBatchDoNot) {
  const std::string text = Input(32) + Convolution("c1", "image") + Layer("BatchNorm", From("c1"), "c1") +
                           Convolution("c2", "c1") + Convolution("c3", "c2");
  ExpectSame(text, {.phase = TRAIN});
  ExpectSame(Input(32) + Convolution("c1", "image") + Convolution("c2", "c1") +
             Layer("Concat", From("c2") + From("c1"), "cat", "concat_param { axis: 0 }") + Convolution("c3", "cat") +
             Convolution("c4", "c3"));
  // Random numbers belong to places in the batch.
  ExpectSame(Input(32) + Convolution("c1", "image") + Layer("Dropout", From("c1"), "c1") + Convolution("c2", "c1") +
                 Layer("Dropout", From("c2"), "c2") + Convolution("c3", "c2"),
             {.phase = TRAIN});
}

TEST_F(SplitBatch, SmallOrPrimeBatchesAreTakenWhole) {
  const auto layers = [](int items) { return Input(items) + Convolution("c1", "image") + Convolution("c2", "c1"); };
  EXPECT_TRUE(ExpectSame(layers(1)).parts.empty());
  if (threads_ == 1) return;
  for (const int items : {2, 7}) EXPECT_TRUE(ExpectSame(layers(items)).parts.empty()) << items;
}

TEST_F(SplitBatch, IsTimedAsOneStepForAllTurns) {
  NetOptions options{.phase = TEST, .backward = false};
  options.context.device = &CpuDevice();
  Net net(ParseNet(Input(32) + Convolution("c1", "image") + Convolution("c2", "c1"), "net.prototxt"), options);
  const Program& program = net.compiled().program;
  ASSERT_FALSE(program.parts.empty());
  StepRecording recording;
  net.set_recorder(&recording);
  for (int pass = 0; pass < 3; ++pass) net.Forward();
  EXPECT_LE(static_cast<int64_t>(recording.events().size()), 3 * program.recorded());
  EXPECT_GT(program.recorded(), program.steps());
  double seconds = 0;
  for (const StepEvent& event : recording.events()) seconds += event.seconds();
  const std::string table = TimingTable(net.compiled(), recording.events(), 32);
  // Items a second follow from all passes together.
  EXPECT_NE(table.find("items     " + FormatScaled(3 * 32 / seconds) + " a second"), std::string::npos) << table;
}

}  // namespace
}  // namespace crema
