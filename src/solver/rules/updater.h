// Changes the parameters of a net, all at once or each as its gradient comes: clipping, division by iter_size, weight
// decay, rule, in Caffe's order.
#ifndef CREMA_SOLVER_RULES_UPDATER_H_
#define CREMA_SOLVER_RULES_UPDATER_H_

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "crema/net.h"
#include "crema/solver.pb.h"
#include "device/gpu.h"
#include "solver/rules/update_rule.h"

namespace crema {

class Updater : public GradientReader {
 public:
  // `parameters` must outlive this and keep their tensors. Gradients are sums over so many ranks, and are to act as
  // their means. The solver must have passed CheckSolver. `half_precision`: of the net, so that the loss is scaled.
  Updater(const SolverParameter& solver, std::span<const Parameter> parameters, Device& device = CpuDevice(),
          int ranks = 1, bool half_precision = false);

  // Whether Apply updates all parameters in one go, which it then only issues, and clips gradients itself: on a GPU.
  bool updates_at_once() const { return multi_ != nullptr; }

  // Whether an update needs each parameter's gradient once and alone: no norm over all of them (clip_gradients), no sum
  // over passes (iter_size).
  static bool TakesGradientsSingly(const SolverParameter& solver);
  // Numbers of history for each number of a parameter.
  static int HistoriesOf(const SolverParameter& solver);

  // Euclidean norm of all gradients as accumulated over iter_size passes, means over the ranks. Does not depend on the
  // number of threads.
  double GradientNorm();
  // Where Apply updates at once and clips: the norm that it found at the end of `iteration`, which is the one before
  // that of the latest Apply, once a forward pass that was issued behind it has been waited for.
  double NormOf(int iteration) const;
  // 1 where Apply clips; else 1, or clip_gradients / norm where clipping is on and the norm exceeds it.
  float ClipScale(double norm) const;
  // What the updates that follow are for: the end of iteration `iteration` with learning rate `rate`.
  void Begin(int iteration, float rate, float clip_scale = 1);
  // Updates all parameters by their own gradients. `scaled`: these are of a loss times loss_factor().
  void Apply(bool scaled = true);
  // Updates one, by a gradient that is not kept.
  void OnGradient(int parameter, const Tensor& gradient) override;
  // Behind those since Begin: the others that are trained, whose gradients are 0 as no loss reaches them. Weights
  // decay, as in Caffe.
  void UpdateOthers();

  // For Net::set_loss_factor; null where the loss is not scaled.
  const float* loss_factor() const;
  // Whether it changes while training, as snapshots then hold.
  bool finds_loss_scale() const { return loss_factor() && adapts_; }
  // What Apply left at the end of `iteration`, known when NormOf is. Of what scales no loss: nothing overflowed.
  LossScale LossScaleOf(int iteration) const;
  // Divides all gradients by loss_factor() without an update, waits, and returns what became of the scale.
  LossScale DivideGradients();
  // The present one, which is waited for, and another one. Where the loss is scaled.
  LossScale ReadLossScale() const;
  void RestoreLossScale(const LossScale& loss_scale);

  // One per parameter, or all first moments and then all second ones: Caffe's order in SolverState.history.
  // They lie one behind the other.
  int histories() const { return static_cast<int>(histories_.size()); }
  Tensor history(int index) const { return histories_[index]; }
  void ClearHistories();

 private:
  struct Segment {  // a piece of one parameter, small enough to share work evenly
    UpdateChunk chunk;
    float lr_mult;
    int64_t offset;  // in its parameter
  };

  // Of a parameter, by all of its gradient.
  void FindLocalRate(size_t parameter, const float* gradient);
  void Update(const Segment& segment, float* gradient) const;
  MultiUpdate AllAtOnce() const;
  void ApplyAtOnce(bool scaled);
  LossScale* loss_scale() const { return reinterpret_cast<LossScale*>(loss_scale_memory_.data()); }

  std::unique_ptr<UpdateRule> rule_;
  std::optional<SolverParameter> momentum_policy_;  // empty: the momentum stays
  float clip_gradients_ = -1, iter_size_ = 1;
  double ranks_ = 1;
  float gradient_scale_ = 1, rate_ = 0, decay_rate_ = 0;  // of this update
  Device& device_;
  Buffer memory_;
  std::vector<Tensor> histories_;
  std::vector<Segment> segments_;    // in the order of the parameters
  std::vector<size_t> segments_of_;  // where those of parameter p begin; one more entry ends them
  std::vector<bool> given_;          // whether OnGradient was called for parameter p since Begin
  std::vector<double> squares_;      // of each segment's gradient
  // With larc: likewise of its values, and the rate of each parameter.
  float local_eta_ = 0;
  bool local_clips_ = false;
  std::vector<double> value_squares_;
  std::vector<float> local_rates_;

  // Of updates at once, in the device's memory: the segments as chunks, and the norm with what it takes to find it; and
  // the norms of the latest two iterations on the host; and so the loss scale, where there is one.
  MultiUpdater* multi_ = nullptr;
  Buffer chunks_, first_chunks_, norm_memory_;
  PinnedBuffer norms_;
  bool adapts_ = false;
  Buffer loss_scale_memory_;
  PinnedBuffer loss_scales_;
  int iteration_ = 0;
};

}  // namespace crema

#endif  // CREMA_SOLVER_RULES_UPDATER_H_
