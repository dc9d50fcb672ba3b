// Finding the fastest of cuDNN's engines for a graph.
#ifndef CREMA_CUDA_DEVICE_CUDNN_PLAN_SEARCH_H_
#define CREMA_CUDA_DEVICE_CUDNN_PLAN_SEARCH_H_

#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "cuda/device/cudnn_graph.h"

namespace crema::cuda {

// Tries engines on memory of its own, which it keeps until it is destroyed. Engines whose results differ from run to
// run are left out, and so are those that round f32 factors, unless TF32 is allowed.
class CudnnPlanSearch {
 public:
  CudnnPlanSearch(CudnnSession& session, CudaGpu& gpu, bool allows_tf32)
      : session_(session), gpu_(gpu), allows_tf32_(allows_tf32) {}

  // What was chosen for `key` before, else the fastest of the first few; null where no engine takes the graph. `make`
  // describes it without finishing it.
  std::unique_ptr<CudnnPlan> Find(const std::string& key, const std::function<std::shared_ptr<CudnnGraph>()>& make);

  // Seconds of one run, with what `after` issues, roughly where that is more than `hopeless`; infinity where cuDNN does
  // not run it after all, empty where there is no memory to try it.
  std::optional<double> Measure(CudnnPlan& plan, const std::function<void(std::span<void* const>)>& after = {},
                                double hopeless = std::numeric_limits<double>::infinity());
  // Whether NaNs in all tensors that it reads arrive in the one that it writes, `result`. Activations may drop them,
  // and a net that has diverged would look sound. Empty where there is no memory to try it.
  std::optional<bool> KeepsNaN(CudnnPlan& plan, int64_t result);
  // Memory that a trial may use besides; zeros. Null where there is none.
  void* Scratch(size_t bytes);

 private:
  // Memory for the plan's tensors, by ascending id, in data_, and for its workspace; false where there is none.
  bool Prepare(const CudnnPlan& plan);

  CudnnSession& session_;
  CudaGpu& gpu_;
  const bool allows_tf32_;
  std::vector<Buffer> buffers_;  // of tensors, in their order; grown as trials need
  std::vector<void*> data_;      // where those of the latest plan begin
  Buffer workspace_, scratch_;
};

}  // namespace crema::cuda

#endif  // CREMA_CUDA_DEVICE_CUDNN_PLAN_SEARCH_H_
