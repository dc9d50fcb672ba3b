#include "cuda/device/cudnn_graph.h"

#include <algorithm>
#include <cctype>
#include <mutex>

#include "base/check.h"
#include "crema/error.h"

namespace crema::cuda {

namespace {

constexpr char kWhereToLook[] = "; crema device_query shows whether driver and libraries fit";

}  // namespace

void CheckCudnn(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  char more[512] = "";
  cudnnGetLastErrorString(more, sizeof more);
  const std::string message = std::string(what) + " failed: " + cudnnGetErrorString(status) +
                              (*more == '\0' ? "" : " (" + std::string(more) + ")");
  switch (status) {
    case CUDNN_STATUS_NOT_INITIALIZED:
    case CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH:
      throw EnvironmentError(message + kWhereToLook);
    case CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER:
    case CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDART:
      throw CudnnError(message + kWhereToLook);  // of a single engine, perhaps
    default:
      throw CudnnError(message);
  }
}

namespace {

constexpr int64_t kTensorAlignment = 16;

std::string ChoicesName(const CudaGpu& gpu) {
  std::string name = "cudnn-" + gpu.name() + "-" + std::to_string(gpu.capability()) + "-" +
                     std::to_string(cudnnGetVersion()) + "-cuda-" + std::to_string(cudnnGetCudartVersion()) + ".txt";
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.') c = '-';
  }
  return name;
}

}  // namespace

CudnnSession::CudnnSession(const CudaGpu& gpu) : gpu_(gpu), choices_(ChoicesName(gpu)) {
  try {
    CheckCudnn(cudnnCreate(&handle_), "starting cuDNN");
    CheckCudnn(cudnnSetStream(handle_, gpu.queue().stream), "starting cuDNN");
  } catch (const CudnnError& error) {
    if (handle_) cudnnDestroy(handle_);
    throw EnvironmentError(error.what());
  }
}

CudnnSession::~CudnnSession() {
  if (gpu_.lost()) return;  // cuDNN would wait for all that the GPU has to do
  // On the GPU that it was made for; the thread's own may be another one.
  int current = gpu_.id();
  cudaGetDevice(&current);
  cudaSetDevice(gpu_.id());
  cudnnDestroy(handle_);
  cudaSetDevice(current);
}

std::shared_ptr<CudnnSession> CudnnSession::Of(const CudaGpu& gpu) {
  static std::mutex mutex;
  static std::map<const CudaGpu*, std::weak_ptr<CudnnSession>> sessions;
  const std::lock_guard lock(mutex);
  std::weak_ptr<CudnnSession>& known = sessions[&gpu];
  std::shared_ptr<CudnnSession> session = known.lock();
  if (!session) known = session = std::make_shared<CudnnSession>(gpu);
  return session;
}

CudnnDescriptor::CudnnDescriptor(cudnnBackendDescriptorType_t type) {
  CheckCudnn(cudnnBackendCreateDescriptor(type, &descriptor_), "describing a graph");
}

CudnnDescriptor::~CudnnDescriptor() {
  if (descriptor_) cudnnBackendDestroyDescriptor(descriptor_);
}

void CudnnDescriptor::SetArray(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                               const void* values) {
  CheckCudnn(cudnnBackendSetAttribute(descriptor_, name, type, count, values), "describing a graph");
}

void CudnnDescriptor::Finalize() { CheckCudnn(cudnnBackendFinalize(descriptor_), "building a graph"); }

int64_t CudnnDescriptor::Get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t most,
                             void* values) const {
  int64_t count = 0;
  CheckCudnn(cudnnBackendGetAttribute(descriptor_, name, type, most, &count, values), "asking about a graph");
  return count;
}

size_t CudnnTensor::bytes() const {
  int64_t count = 1;
  for (const int64_t extent : dims) count *= extent;
  return static_cast<size_t>(count) * (type == CUDNN_DATA_FLOAT ? 4 : 2);
}

bool CudnnEngine::Has(cudnnBackendNumericalNote_t note) const {
  return std::find(notes.begin(), notes.end(), note) != notes.end();
}

bool CudnnEngine::IsAllowed(bool in_floats, bool allows_tf32) const {
  if (Has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) return false;
  if (Has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)) return false;
  // Large tiles of Winograd's lose several digits; those of 6 x 6 are what CPUs take, too (ops/convolution/winograd.h).
  if (Has(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13)) return false;
  if (!in_floats || allows_tf32) return true;
  return !Has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE) && !Has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
}

std::vector<CudnnEngine> EnginesOf(CudnnDescriptor& heuristics) {
  heuristics.Finalize();
  const int64_t count = heuristics.Get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr);
  // Filled in place.
  std::vector<CudnnDescriptor> found;
  std::vector<cudnnBackendDescriptor_t> addresses;
  for (int64_t i = 0; i < count; ++i) {
    addresses.push_back(found.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).get());
  }
  const int64_t filled = count == 0 ? 0
                                    : heuristics.Get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                                     count, addresses.data());
  std::vector<CudnnEngine> engines;
  for (int64_t i = 0; i < std::min(count, filled); ++i) {
    const CudnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    cudnnBackendDescriptor_t address = engine.get();
    found[i].Get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &address);
    std::vector<cudnnBackendNumericalNote_t> notes(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
    const int64_t noted = engine.Get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                     CUDNN_NUMERICAL_NOTE_TYPE_COUNT, notes.data());
    notes.resize(std::min<size_t>(notes.size(), static_cast<size_t>(noted)));
    std::vector<cudnnBackendBehaviorNote_t> behavior(CUDNN_BEHAVIOR_NOTE_TYPE_COUNT);
    const int64_t behaves = engine.Get(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                                       CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, behavior.data());
    behavior.resize(std::min<size_t>(behavior.size(), static_cast<size_t>(behaves)));
    const bool compiled =
        std::find(behavior.begin(), behavior.end(), CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) != behavior.end();
    engines.push_back({std::move(found[i]), std::move(notes), compiled});
  }
  return engines;
}

cudnnBackendDescriptor_t CudnnGraph::Describe(const CudnnTensor& tensor) {
  const auto known = tensors_.find(tensor.id);
  if (known != tensors_.end()) return known->second.get();
  CudnnDescriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.Set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, tensor.type);
  made.Set(CUDNN_ATTR_TENSOR_DIMENSIONS, tensor.dims);
  made.Set(CUDNN_ATTR_TENSOR_STRIDES, tensor.strides);
  made.Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, tensor.id);
  made.Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, kTensorAlignment);
  made.Set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, tensor.is_virtual);
  made.Finalize();
  if (!tensor.is_virtual) stored_.emplace(tensor.id, tensor);
  return tensors_.emplace(tensor.id, std::move(made)).first->second.get();
}

cudnnBackendDescriptor_t CudnnGraph::Describe(const CudnnWindow& window) {
  CudnnDescriptor made(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  made.Set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, static_cast<int64_t>(window.pad.size()));
  made.Set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  made.Set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
  made.Set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, window.pad);
  made.Set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, window.pad);
  made.Set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, window.stride);
  made.Set(CUDNN_ATTR_CONVOLUTION_DILATIONS, window.dilation);
  made.Finalize();
  return parts_.emplace_back(std::move(made)).get();
}

CudnnDescriptor& CudnnGraph::Operation(cudnnBackendDescriptorType_t type) { return operations_.emplace_back(type); }

void CudnnGraph::Convolve(const CudnnWindow& window, const CudnnTensor& source, const CudnnTensor& weights,
                          const CudnnTensor& destination) {
  CudnnDescriptor& operation = Operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  operation.SetDescriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, Describe(window));
  operation.SetDescriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, Describe(source));
  operation.SetDescriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, Describe(weights));
  operation.SetDescriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, Describe(destination));
  operation.Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1.0f);
  operation.Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 0.0f);
  operation.Finalize();
}

void CudnnGraph::SourceGradient(const CudnnWindow& window, const CudnnTensor& destination_gradient,
                                const CudnnTensor& weights, const CudnnTensor& source_gradient) {
  CudnnDescriptor& operation = Operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
  operation.SetDescriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, Describe(window));
  operation.SetDescriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, Describe(destination_gradient));
  operation.SetDescriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, Describe(weights));
  operation.SetDescriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, Describe(source_gradient));
  operation.Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_TYPE_FLOAT, 1.0f);
  operation.Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, CUDNN_TYPE_FLOAT, 0.0f);
  operation.Finalize();
}

void CudnnGraph::WeightsGradient(const CudnnWindow& window, const CudnnTensor& source,
                                 const CudnnTensor& destination_gradient, const CudnnTensor& weights_gradient) {
  CudnnDescriptor& operation = Operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
  operation.SetDescriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, Describe(window));
  operation.SetDescriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, Describe(source));
  operation.SetDescriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, Describe(destination_gradient));
  operation.SetDescriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, Describe(weights_gradient));
  operation.Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_TYPE_FLOAT, 1.0f);
  operation.Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, CUDNN_TYPE_FLOAT, 0.0f);
  operation.Finalize();
}

void CudnnGraph::Add(const CudnnTensor& x, const CudnnTensor& b, const CudnnTensor& y) {
  CudnnDescriptor made(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  made.Set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, CUDNN_POINTWISE_ADD);
  made.Set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  made.Finalize();
  CudnnDescriptor& operation = Operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.SetDescriptor(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, parts_.emplace_back(std::move(made)).get());
  operation.SetDescriptor(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, Describe(x));
  operation.SetDescriptor(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, Describe(b));
  operation.SetDescriptor(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, Describe(y));
  operation.Finalize();
}

bool CudnnGraph::Activates(const Activation& activation) {
  using Kind = Activation::Kind;
  return (activation.kind == Kind::kRelu && activation.parameter == 0) || activation.kind == Kind::kRelu6 ||
         activation.kind == Kind::kSigmoid || activation.kind == Kind::kTanh;
}

void CudnnGraph::Activate(Activation::Kind activation, const CudnnTensor& x, const CudnnTensor& y) {
  using Kind = Activation::Kind;
  CREMA_CHECK(Activates({activation})) << "an activation that is not fused";
  CudnnDescriptor made(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  made.Set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE,
           activation == Kind::kSigmoid ? CUDNN_POINTWISE_SIGMOID_FWD
           : activation == Kind::kTanh  ? CUDNN_POINTWISE_TANH_FWD
                                        : CUDNN_POINTWISE_RELU_FWD);
  if (activation == Kind::kRelu6) made.Set(CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, CUDNN_TYPE_DOUBLE, 6.0);
  made.Set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  made.Finalize();
  CudnnDescriptor& operation = Operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.SetDescriptor(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, parts_.emplace_back(std::move(made)).get());
  operation.SetDescriptor(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, Describe(x));
  operation.SetDescriptor(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, Describe(y));
  operation.Finalize();
}

void CudnnGraph::Finish(cudnnHandle_t handle) {
  std::vector<cudnnBackendDescriptor_t> operations;
  for (const CudnnDescriptor& operation : operations_) operations.push_back(operation.get());
  CudnnDescriptor& graph = graph_.emplace_back(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.Set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle);
  graph.SetArray(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(operations.size()),
                 operations.data());
  graph.Finalize();
}

std::vector<CudnnEngine> CudnnGraph::Engines() const {
  CREMA_CHECK(!graph_.empty()) << "a graph that is not finished";
  std::vector<CudnnEngine> engines;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    try {
      CudnnDescriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
      heuristics.SetDescriptor(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph_[0].get());
      heuristics.Set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
      for (CudnnEngine& engine : EnginesOf(heuristics)) engines.push_back(std::move(engine));
    } catch (const CudnnError&) {
      // This mode knows no engine for the graph.
    }
  }
  return engines;
}

bool CudnnGraph::in_floats() const {
  return std::all_of(stored_.begin(), stored_.end(),
                     [](const auto& tensor) { return tensor.second.type == CUDNN_DATA_FLOAT; });
}

CudnnPlan::CudnnPlan(std::shared_ptr<const CudnnGraph> graph, CudnnEngine engine, cudnnHandle_t handle)
    : graph_(std::move(graph)), engine_(std::move(engine)), plan_(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
  plan_.Set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle);
  plan_.SetDescriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engine_.configuration.get());
  plan_.Finalize();
  int64_t bytes = 0;
  plan_.Get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &bytes);
  workspace_ = static_cast<size_t>(bytes);
}

void CudnnPlan::Run(cudnnHandle_t handle, std::span<void* const> data, void* workspace) {
  const auto& stored = graph_->stored();
  CREMA_CHECK(data.size() == stored.size()) << "cuDNN's tensors and their addresses";
  for (const void* address : data) {
    CREMA_CHECK(reinterpret_cast<uintptr_t>(address) % kTensorAlignment == 0) << "a tensor is not aligned";
  }
  const bool known = !pack_.empty() && addresses_.back() == workspace &&
                     std::equal(data.begin(), data.end(), addresses_.begin(), addresses_.end() - 1);
  if (!known) {
    pack_.clear();
    addresses_.assign(data.begin(), data.end());
    addresses_.push_back(workspace);
    std::vector<int64_t> ids;
    for (const auto& [id, tensor] : stored) ids.push_back(id);
    CudnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.Set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids);
    pack.SetArray(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, static_cast<int64_t>(data.size()),
                  addresses_.data());
    pack.Set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
    pack.Finalize();
    pack_.push_back(std::move(pack));
  }
  CheckCudnn(cudnnBackendExecute(handle, plan_.get(), pack_[0].get()), "running cuDNN");
}

}  // namespace crema::cuda
