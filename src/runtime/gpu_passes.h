// How an Executor's passes run on a GPU: sources fill batches on the host, everything else is issued to the GPU, after
// a first time as CUDA graphs, and only the loss is waited for.
#ifndef CREMA_RUNTIME_GPU_PASSES_H_
#define CREMA_RUNTIME_GPU_PASSES_H_

#include <map>
#include <memory>
#include <vector>

#include "device/gpu.h"
#include "runtime/executor.h"

namespace crema {

class GpuPasses {
 public:
  GpuPasses(Executor& executor, Gpu& gpu);

  // Issues a forward pass. Sources run at once, on the host, while the GPU is still busy with what was issued before.
  void Forward(uint64_t pass, uint64_t parameters_version, bool replay, const Executor::Watch& watch);
  // Waits for the last Forward, not for what was issued later, lets those who take its results out of the net work, and
  // returns its loss. Throws what Executor::Forward does for unusable data.
  float AwaitLoss();
  // Issues a backward pass.
  void Backward(uint64_t pass, bool first, GradientReader* reader);
  // What Backward issues is other work from here on.
  void ForgetBackward();
  // See Executor::on_host.
  Tensor OnHost(int id);

 private:
  // A tensor's bytes in one of the blocks below.
  struct Mirror {
    int id;
    size_t offset;
  };

  // A step that works on the host, with copies of its bottoms.
  struct Sink {
    Executor::Bound* bound;
    std::vector<Mirror> bottoms;
  };

  bool IsSource(const Executor::Bound& bound) const;
  void PlaceSinks();
  void StartUpload(const Executor::Bound& source);
  void Place(std::vector<Mirror>* mirrors, size_t* total, int id) const;
  // Whether it is a sink: then copies of its bottoms are on their way.
  bool IssueSink(const Executor::Bound& bound);
  void IssueForward(uint64_t pass, uint64_t parameters_version, bool replay, const Executor::Watch& watch);
  void IssueBackward(uint64_t pass, bool first, GradientReader* reader);
  // Tells the recorder what the events of steps from `first` on say.
  void TellRecorder(size_t first, size_t steps);
  GpuEvent& StepEvent(size_t index);

  Executor& executor_;
  Gpu& gpu_;
  std::vector<Mirror> sources_, outputs_;
  PinnedBuffer staging_;  // what sources write
  Buffer inbox_;          // where it is uploaded to while the arena is in use
  size_t staging_bytes_ = 0;
  std::vector<Sink> sinks_;
  PinnedBuffer host_outputs_, host_sinks_, host_result_;
  std::unique_ptr<GpuEvent> forward_done_;
  bool awaited_ = true;

  int eager_passes_ = 0;                        // forward passes that were not replayed
  uint64_t pass_ = 0, parameters_version_ = 0;  // of the last forward pass
  bool replay_ = false;                         // likewise
  std::unique_ptr<GpuGraph> forward_graph_, backward_graphs_[2];
  int eager_backward_[2] = {0, 0};

  std::vector<std::unique_ptr<GpuEvent>> step_events_;
  std::map<int, std::vector<std::byte>> copies_;  // of OnHost
};

}  // namespace crema

#endif  // CREMA_RUNTIME_GPU_PASSES_H_
