// Walks the steps of a program. All tensors are bound to memory once; a pass allocates nothing.
#ifndef CREMA_RUNTIME_EXECUTOR_H_
#define CREMA_RUNTIME_EXECUTOR_H_

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "crema/net.h"
#include "device/device.h"
#include "graph/program.h"

namespace crema {

class GpuPasses;
class Operations;
class StepClock;

class Executor {
 public:
  // `net`, `parameters` and `context` must outlive the executor. What is needed only during a pass lies in `lent` where
  // that is large enough, else, as what lasts always does, in memory of the executor's own.
  Executor(CompiledNet& net, std::span<const Parameter> parameters, const Context& context,
           std::span<std::byte> lent = {});
  ~Executor();

  // Called after each step, for looking at intermediate values. May be empty.
  using Watch = std::function<void(const Step& step)>;

  // Returns the weighted sum of the losses.
  float Forward(uint64_t pass, uint64_t parameters_version, bool replay, const Watch& watch = {});
  // `first`: parameter gradients are overwritten rather than added to. `reader` may be null where they are kept.
  // On a GPU this only issues the work.
  void Backward(uint64_t pass, bool first, GradientReader* reader);
  // Both. On a GPU the loss is waited for after all of it, and what `then` issues (an update, say), is on its way.
  float ForwardBackward(uint64_t pass, uint64_t parameters_version, bool first, GradientReader* reader,
                        const std::function<void()>& then);

  // Net::set_loss_factor.
  void set_loss_factor(const float* factor);
  void set_recorder(StepRecorder* recorder) { recorder_ = recorder; }

  // What is free between two passes, for another net to work in.
  std::span<std::byte> free_memory() const { return passing_; }

  // In the memory of the device.
  Tensor tensor(int id) const { return id < 0 ? Tensor() : tensors_[id]; }
  // The same where the host can read it: of a GPU, what sources write into, a copy of an output made in every pass, or
  // else one made now. Valid until it is asked for again.
  Tensor on_host(int id) const;

 private:
  friend class GpuPasses;

  struct Bound {
    const Step* step;
    std::vector<Tensor> bottoms, tops, params, saved, top_grads, bottom_grads, param_grads;
    std::byte* workspace = nullptr;
    Layer* layer = nullptr;
  };
  // What one thread runs of a part, again and again.
  struct Lane {
    struct Rows {
      Tensor* tensor;  // within steps
      std::byte* first_turn;
    };
    std::vector<Bound> steps;
    std::vector<Rows> rows;  // that move on from turn to turn
  };

  // `lane`: of the step's part.
  Bound Bind(const Step& step, std::span<const Parameter> parameters, int lane = 0) const;
  Lane BindLane(const ProgramPart& part, std::span<const Parameter> parameters, int lane) const;
  void RunTurn(Lane& lane, int64_t turn, uint64_t pass, uint64_t parameters_version, bool replay,
               StepClock* clock) const;
  void RunPart(int p, uint64_t pass, uint64_t parameters_version, bool replay, StepClock& clock);
  LayerRun MakeRun(const Bound& bound, uint64_t pass, bool replay) const;
  // `turn`: of the part of the batch that the step is in.
  void RunForward(const Bound& bound, uint64_t pass, uint64_t parameters_version, bool replay, int64_t turn = 0) const;
  void RunBackward(const Bound& bound, uint64_t pass, bool first, GradientReader* reader) const;
  [[noreturn]] void Report(const Node& node, const BadItem& bad) const;

  struct Loss {
    Tensor top;
    float weight;
  };

  CompiledNet& net_;
  const Context& context_;
  Operations& ops_;
  Buffer arena_;
  std::span<std::byte> passing_;  // from Program::lasting_bytes on: the rest of arena_, or lent
  std::vector<Tensor> tensors_;
  std::vector<Bound> forward_, backward_;  // those of parts are not bound
  std::vector<std::vector<Lane>> parts_;
  uint64_t parts_version_ = 0;  // of the parameters that parts have seen
  std::vector<Loss> losses_;
  const float* loss_factor_ = nullptr;
  StepRecorder* recorder_ = nullptr;
  std::unique_ptr<GpuPasses> gpu_;  // null: the device is the CPU
};

}  // namespace crema

#endif  // CREMA_RUNTIME_EXECUTOR_H_
