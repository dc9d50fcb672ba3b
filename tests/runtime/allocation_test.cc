// A training iteration must not allocate: every operator new of the process is counted while one runs.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "crema/net.h"
#include "crema/solver.h"
#include "graph/program.h"
#include "ops/arrays/vector_lanes.h"
#include "report/step_recording.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CREMA_COUNTS_ALLOCATIONS 0
#else
#define CREMA_COUNTS_ALLOCATIONS 1
#endif

namespace {

std::atomic<bool> counting{false};
std::atomic<int64_t> allocations{0};
std::atomic<size_t> largest{0};

}  // namespace

#if CREMA_COUNTS_ALLOCATIONS
void* operator new(size_t bytes) {
  if (counting.load(std::memory_order_relaxed)) {
    allocations.fetch_add(1);
    size_t seen = largest.load();
    while (bytes > seen && !largest.compare_exchange_weak(seen, bytes)) {
    }
  }
  void* data = std::malloc(bytes);
  if (!data) throw std::bad_alloc();
  return data;
}
// Where one is inlined and operator new is not, the compiler takes std::free for a mistake.
[[gnu::noinline]] void operator delete(void* data) noexcept { std::free(data); }
[[gnu::noinline]] void operator delete(void* data, size_t) noexcept { std::free(data); }
#endif

namespace crema {
namespace {

const char* const kHead = R"(
layer { name: "in" type: "DummyData" top: "data" top: "label" dummy_data_param {
  shape { dim: 8 dim: 3 dim: 16 dim: 16 } shape { dim: 8 }
  data_filler { type: "gaussian" } data_filler { type: "constant" value: 2 } } }
)";
const char* const kTail = R"(
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "ip" top: "ip" }
layer { name: "drop" type: "Dropout" bottom: "ip" top: "ip" }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)";

class Allocation : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!CREMA_COUNTS_ALLOCATIONS) GTEST_SKIP() << "the sanitizers bring their own allocator";
  }
  // Counts the allocations of ten passes after two that may set things up.
  static void Count(Net& net) {
    for (int i = 0; i < 12; ++i) {
      if (i == 2) {
        allocations = 0;
        largest = 0;
        counting = true;
      }
      net.ClearGradients();
      net.Forward();
      net.Backward();
    }
    counting = false;
  }
  // The products for processors before AVX-512 make a small object of oneDNN's own at every call.
  static void ExpectNone() {
    if (VectorLanes() == 16) {
      EXPECT_EQ(allocations, 0);
    } else {
      EXPECT_LE(largest, 2048u);
    }
  }
};

TEST_F(Allocation, NoneInOurOwnKernels) {
  NetOptions options;
  options.accumulate = true;
  Net net(ParseNet(std::string(kHead) +
                       "layer { name: 'sigmoid' type: 'Sigmoid' bottom: 'data' top: 'y' }"
                       "layer { name: 'tanh' type: 'TanH' bottom: 'data' top: 'z' }"
                       "layer { name: 'sum' type: 'Eltwise' bottom: 'y' bottom: 'z' top: 'e' }"
                       "layer { name: 'concat' type: 'Concat' bottom: 'e' bottom: 'y' top: 'x' }" +
                       kTail,
                   "net.prototxt"),
          options);
  Count(net);
  ExpectNone();
}

TEST_F(Allocation, NoneWhereStepsAreRecordedIntoReservedMemory) {
  Net net(ParseNet(std::string(kHead) + "layer { name: 'relu0' type: 'ReLU' bottom: 'data' top: 'x' }" + kTail,
                   "net.prototxt"),
          {});
  StepRecording recording;
  recording.Reserve(12 * net.compiled().program.steps());
  net.set_recorder(&recording);
  Count(net);
  ExpectNone();
  EXPECT_EQ(recording.events().size(), 12u * net.compiled().program.steps());
}

// oneDNN keeps the arguments of each call in a small map of its own; nothing of a tensor's size may be allocated.
TEST_F(Allocation, OnlyArgumentListsInsideOneDnn) {
  Net net(ParseNet(std::string(kHead) + R"(
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 8 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "lrn" type: "LRN" bottom: "conv" top: "lrn" }
layer { name: "max" type: "Pooling" bottom: "lrn" top: "max" pooling_param { kernel_size: 2 stride: 2 } }
layer { name: "ave" type: "Pooling" bottom: "max" top: "x" pooling_param { pool: AVE kernel_size: 3 stride: 2 } }
)" + kTail,
                   "net.prototxt"),
          {});
  Count(net);
  EXPECT_LE(largest, 2048u);
}

// Nor where a test net converts the weights that its train net changed.
TEST_F(Allocation, OnlyArgumentListsWhereATestNetReadsLaidOutWeights) {
  const NetFile file = ParseNet(std::string(kHead) + R"(
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 20 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "bn" type: "BatchNorm" bottom: "conv" top: "bn" }
layer { name: "wide" type: "Convolution" bottom: "bn" top: "x"
  convolution_param { num_output: 64 kernel_size: 3 weight_filler { type: "xavier" } } }
)" + kTail,
                                "net.prototxt");
  Net net(file, {});
  EXPECT_NE(std::as_const(net).parameters()[0].layout, nullptr);
  Net tested(file, {.phase = TEST, .backward = false, .share_with = &net});
  for (int i = 0; i < 6; ++i) {
    if (i == 2) {
      largest = 0;
      counting = true;
    }
    net.ParametersChanged();
    tested.Forward();
  }
  counting = false;
  EXPECT_LE(largest, 2048u);
}

TEST_F(Allocation, NoneInSolverUpdates) {
  for (const char* type : {"SGD", "Adam"}) {
    SolverOptions options;
    options.path = "solver.prototxt";
    Solver solver(
        ParseSolver(std::string("type: '") + type +
                        "' base_lr: 0.01 lr_policy: 'step' gamma: 0.9 stepsize: 3 momentum: 0.9 weight_decay: "
                        "0.001 clip_gradients: 1 iter_size: 2 average_loss: 5 max_iter: 100 random_seed: 1 "
                        "snapshot_prefix: '" +
                        ::testing::TempDir() +
                        "/allocation' snapshot_after_train: false "
                        "net_param { " +
                        kHead + "layer { name: 'relu0' type: 'ReLU' bottom: 'data' top: 'x' }" + kTail + "}",
                    "solver.prototxt"),
        options);
    solver.Step(3);
    allocations = 0;
    counting = true;
    solver.Step(10);
    counting = false;
    EXPECT_EQ(allocations, 0) << type;
  }
}

}  // namespace
}  // namespace crema
