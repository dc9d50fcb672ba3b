// The graphs of convolutions before cuDNN itself, without a GPU: cuDNN is told of one (since 9.8) and says which of its
// engines would run them there, and makes plans. What is computed only a GPU shows.
#include <gtest/gtest.h>

#include <string_view>

#include "cuda/convolution/cudnn_convolution_graphs.h"
#include "ops/convolution_case.h"

namespace crema::cuda {
namespace {

#if CUDNN_VERSION >= 90800

// An H200 in the form in which cuDNN keeps devices.
constexpr std::string_view kDevice = R"({
"deviceName": "NVIDIA H200", "deviceVer": 900, "driverVer": 13000, "cudaDeviceId": 0, "pciDeviceId": 9013,
"totalGlobalMem": 150000000000, "multiProcessorCount": 132, "maxGridSize": [2147483647, 65535, 65535],
"maxBlockSize": [1024, 1024, 64], "regsPerBlock": 65536, "warpSize": 32, "maxSharedMemoryPerBlock": 49152,
"maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536,
"maxCtasPerSM": 32, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "isTccDriver": 0, "supportCoopLaunch": 1,
"smClockRateKHz": 1980000, "memClockRateKHz": 3201000, "l2CacheSize": 62914560})";

const ConvolutionCase kCases[] = {
    {"odd channels", 2, 33, 70, 1, {9, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {"groups, dilated", 2, 36, 68, 2, {7, 6}, {2, 3}, {2, 1}, {1, 2}, {1, 2}},
    {"depthwise", 64, 64, 64, 64, {28, 28}, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
    {"one channel", 64, 1, 20, 1, {28, 28}, {5, 5}, {1, 1}, {0, 0}, {1, 1}},
    {"images", 64, 3, 64, 1, {224, 224}, {7, 7}, {2, 2}, {3, 3}, {1, 1}},
    {"pointwise", 64, 256, 512, 1, {14, 14}, {1, 1}, {2, 2}, {0, 0}, {1, 1}},
    {"one axis", 2, 17, 18, 1, {23}, {5}, {2}, {2}, {1}},
    {"three axes", 2, 16, 16, 1, {4, 5, 3}, {3, 2, 3}, {1, 2, 1}, {1, 0, 1}, {1, 1, 1}},
};

class CudnnConvolutionGraphs : public testing::Test {
 protected:
  void SetUp() override {
    try {
      device_.SetArray(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, kDevice.size(), kDevice.data());
      device_.Finalize();
    } catch (const CudnnError& error) {
      char more[1024] = "";
      cudnnGetLastErrorString(more, sizeof more);
      GTEST_SKIP() << "cuDNN " << cudnnGetVersion() << " does not take the device: " << error.what() << ": " << more;
    }
  }

  // As CudnnGraph::Finish and Engines do with a handle.
  std::vector<CudnnEngine> EnginesFor(const CudnnGraph& graph) {
    std::vector<cudnnBackendDescriptor_t> operations;
    for (const CudnnDescriptor& operation : graph.operations()) operations.push_back(operation.get());
    finished_ = std::make_unique<CudnnDescriptor>(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    finished_->SetArray(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                        static_cast<int64_t>(operations.size()), operations.data());
    finished_->Finalize();
    std::vector<CudnnEngine> engines;
    for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
      try {
        CudnnDescriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
        heuristics.SetDescriptor(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, finished_->get());
        heuristics.Set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
        heuristics.SetDescriptor(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device_.get());
        for (CudnnEngine& engine : EnginesOf(heuristics)) engines.push_back(std::move(engine));
      } catch (const CudnnError&) {
        // This mode knows no engine for the graph.
      }
    }
    return engines;
  }

  // Some engine that is allowed makes a plan. Those that cuDNN compiles would need a driver.
  void ExpectPlan(const CudnnGraph& graph, bool allows_tf32, const std::string& what) {
    std::vector<CudnnEngine> engines;
    try {
      engines = EnginesFor(graph);
    } catch (const CudnnError& error) {
      ADD_FAILURE() << what << ": " << error.what();
      return;
    }
    std::string why;
    for (const CudnnEngine& engine : engines) {
      if (engine.compiled || !engine.IsAllowed(graph.in_floats(), allows_tf32)) continue;
      try {
        CudnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
        plan.SetDescriptor(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device_.get());
        plan.SetDescriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engine.configuration.get());
        plan.Finalize();
        return;
      } catch (const CudnnError& error) {
        why = error.what();
      }
    }
    ADD_FAILURE() << what << ": none of " << engines.size() << " engines; " << why;
  }

  CudnnDescriptor device_{CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR};
  std::unique_ptr<CudnnDescriptor> finished_;
};

TEST_F(CudnnConvolutionGraphs, HaveEngines) {
  struct Precision {
    const char* name;
    DType dtype;
    Layout layout;
    bool allows_tf32;
  };
  const Precision precisions[] = {{"f32, plain", DType::kF32, Layout::kPlain, false},
                                  {"f32, channels last", DType::kF32, Layout::kChannelsLast, false},
                                  {"tf32, channels last", DType::kF32, Layout::kChannelsLast, true},
                                  {"bf16", DType::kBF16, Layout::kChannelsLast, false},
                                  {"f16", DType::kF16, Layout::kChannelsLast, false}};
  for (const ConvolutionCase& test : kCases) {
    for (const Precision& precision : precisions) {
      SCOPED_TRACE(std::string(test.name) + ", " + precision.name);
      ConvolutionProblem problem = ProblemOf(test, true);
      problem.dtype = precision.dtype;
      problem.layout = precision.layout;
      problem.activation = {Activation::Kind::kRelu};
      const ConvolutionGraphs graphs(problem);
      ExpectPlan(*graphs.Product(), precision.allows_tf32, "product");
      ExpectPlan(*graphs.SourceGradient(), precision.allows_tf32, "gradient of source");
      ExpectPlan(*graphs.WeightsGradient(), precision.allows_tf32, "gradient of weights");
      ExpectPlan(*graphs.Fused(), precision.allows_tf32, "with bias and ReLU");
    }
  }
}

TEST_F(CudnnConvolutionGraphs, EndWithActivations) {
  using Kind = Activation::Kind;
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const Kind kind : {Kind::kNone, Kind::kRelu, Kind::kRelu6, Kind::kSigmoid, Kind::kTanh}) {
      ConvolutionProblem problem{.batch = 8,
                                 .channels = 64,
                                 .outputs = 64,
                                 .groups = 1,
                                 .input = {14, 14},
                                 .kernel = {3, 3},
                                 .stride = {1, 1},
                                 .dilation = {1, 1},
                                 .pad = {1, 1}};
      problem.dtype = dtype;
      problem.layout = Layout::kChannelsLast;
      problem.activation = {kind};
      ExpectPlan(*ConvolutionGraphs(problem).Fused(), true,
                 std::string(Name(dtype)) + ", activation " + std::to_string(static_cast<int>(kind)));
    }
  }
}

#endif

}  // namespace
}  // namespace crema::cuda
