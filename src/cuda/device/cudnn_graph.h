// cuDNN's graphs of operations and the plans that run them, over its backend interface (cuDNN 9).
#ifndef CREMA_CUDA_DEVICE_CUDNN_GRAPH_H_
#define CREMA_CUDA_DEVICE_CUDNN_GRAPH_H_

#include <cudnn_graph.h>

#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "cuda/device/choice_file.h"
#include "cuda/device/gpu.h"
#include "ops/activations/activation.h"

namespace crema::cuda {

// What cuDNN refuses, in its words.
struct CudnnError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// Throws EnvironmentError instead where it is not the problem that is refused: cuDNN, CUDA and the driver do not fit.
void CheckCudnn(cudnnStatus_t status, const char* what);

// cuDNN on one GPU. Throws EnvironmentError where it does not start.
class CudnnSession {
 public:
  explicit CudnnSession(const CudaGpu& gpu);
  ~CudnnSession();
  CudnnSession(const CudnnSession&) = delete;
  CudnnSession& operator=(const CudnnSession&) = delete;
  // The one that all kernels for this GPU share while there are any.
  static std::shared_ptr<CudnnSession> Of(const CudaGpu& gpu);

  cudnnHandle_t handle() const { return handle_; }
  ChoiceFile& choices() { return choices_; }

 private:
  const CudaGpu& gpu_;
  cudnnHandle_t handle_ = nullptr;
  ChoiceFile choices_;
};

// An object behind the backend interface.
class CudnnDescriptor {
 public:
  explicit CudnnDescriptor(cudnnBackendDescriptorType_t type);
  CudnnDescriptor(CudnnDescriptor&& other) noexcept { std::swap(descriptor_, other.descriptor_); }
  CudnnDescriptor& operator=(CudnnDescriptor&&) = delete;
  ~CudnnDescriptor();
  cudnnBackendDescriptor_t get() const { return descriptor_; }

  template <typename Value>
  void Set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const Value& value) {
    SetArray(name, type, 1, &value);
  }
  void Set(cudnnBackendAttributeName_t name, std::span<const int64_t> values) {
    SetArray(name, CUDNN_TYPE_INT64, static_cast<int64_t>(values.size()), values.data());
  }
  void SetDescriptor(cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t value) {
    Set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, value);
  }
  void SetArray(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count, const void* values);
  void Finalize();
  // How many values there are; at most `most` are stored.
  int64_t Get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t most, void* values) const;

 private:
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

struct CudnnTensor {
  int64_t id;
  cudnnDataType_t type;
  std::vector<int64_t> dims, strides;  // images, channels, then the spatial axes
  bool is_virtual = false;             // passes from one operation to the next without being stored

  size_t bytes() const;
};

struct CudnnWindow {
  std::vector<int64_t> pad, stride, dilation;  // of each spatial axis
};

// A way to run a graph.
struct CudnnEngine {
  CudnnDescriptor configuration;
  std::vector<cudnnBackendNumericalNote_t> notes;
  bool compiled;  // when a plan is made of it, which takes about a second
  bool Has(cudnnBackendNumericalNote_t note) const;
  // Whether it gives the same results in every run and rounds no more than wanted: `in_floats`, where all tensors hold
  // f32, factors only with TF32.
  bool IsAllowed(bool in_floats, bool allows_tf32) const;
};

// What a CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, which this finishes, proposes, best first.
std::vector<CudnnEngine> EnginesOf(CudnnDescriptor& heuristics);

// Operations that run as one. Computes in f32.
class CudnnGraph {
 public:
  void Convolve(const CudnnWindow& window, const CudnnTensor& source, const CudnnTensor& weights,
                const CudnnTensor& destination);
  void SourceGradient(const CudnnWindow& window, const CudnnTensor& destination_gradient, const CudnnTensor& weights,
                      const CudnnTensor& source_gradient);
  void WeightsGradient(const CudnnWindow& window, const CudnnTensor& source, const CudnnTensor& destination_gradient,
                       const CudnnTensor& weights_gradient);
  // y = x + b
  void Add(const CudnnTensor& x, const CudnnTensor& b, const CudnnTensor& y);
  // Whether Activate does it: ReLU (not a leaky one), ReLU6, sigmoid and tanh.
  static bool Activates(const Activation& activation);
  // y = activation(x)
  void Activate(Activation::Kind activation, const CudnnTensor& x, const CudnnTensor& y);
  // After the last operation.
  void Finish(cudnnHandle_t handle);

  // Best first as cuDNN guesses, then those that it falls back to.
  std::vector<CudnnEngine> Engines() const;
  const std::vector<CudnnDescriptor>& operations() const { return operations_; }
  // Those that are stored, by id.
  const std::map<int64_t, CudnnTensor>& stored() const { return stored_; }
  // Whether all of these hold f32.
  bool in_floats() const;

 private:
  cudnnBackendDescriptor_t Describe(const CudnnTensor& tensor);
  CudnnDescriptor& Operation(cudnnBackendDescriptorType_t type);
  cudnnBackendDescriptor_t Describe(const CudnnWindow& window);

  std::map<int64_t, CudnnTensor> stored_;
  std::map<int64_t, CudnnDescriptor> tensors_;
  std::vector<CudnnDescriptor> parts_, operations_;  // parts: what operations refer to
  std::vector<CudnnDescriptor> graph_;               // one, once finished
};

// A graph with the engine that runs it.
class CudnnPlan {
 public:
  // Throws CudnnError where the engine does not take the graph after all.
  CudnnPlan(std::shared_ptr<const CudnnGraph> graph, CudnnEngine engine, cudnnHandle_t handle);
  const CudnnGraph& graph() const { return *graph_; }
  size_t workspace() const { return workspace_; }
  // Issues it; `data` holds the address of every stored tensor, by ascending id. The workspace is aligned to 256 bytes.
  // Throws CudnnError where cuDNN refuses.
  void Run(cudnnHandle_t handle, std::span<void* const> data, void* workspace);

 private:
  std::shared_ptr<const CudnnGraph> graph_;
  CudnnEngine engine_;
  CudnnDescriptor plan_;
  size_t workspace_ = 0;
  std::vector<void*> addresses_;       // of the latest run, and its workspace
  std::vector<CudnnDescriptor> pack_;  // what tells cuDNN of them: one
};

}  // namespace crema::cuda

#endif  // CREMA_CUDA_DEVICE_CUDNN_GRAPH_H_
