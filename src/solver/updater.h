// Changes all parameters of a net in one update: clipping, division by iter_size, weight decay, rule, in Caffe's order.
#ifndef CREMA_SOLVER_UPDATER_H_
#define CREMA_SOLVER_UPDATER_H_

#include <memory>
#include <span>
#include <vector>

#include "crema/net.h"
#include "crema/solver.pb.h"
#include "solver/update_rule.h"

namespace crema {

class Updater {
 public:
  // `parameters` must outlive this and keep their tensors. The solver must have passed CheckSolver.
  Updater(const SolverParameter& solver, std::span<const Parameter> parameters);

  // Euclidean norm of all gradients as accumulated over iter_size passes. Does not depend on the number of threads.
  double GradientNorm();
  // 1, or clip_gradients / norm where clipping is on and the norm exceeds it.
  float ClipScale(double norm) const;
  // Ends iteration `iteration` with learning rate `rate`; parameters without a gradient are left alone.
  void Apply(int iteration, float rate, float clip_scale);

  // One per parameter, or all first moments and then all second ones: Caffe's order in SolverState.history.
  int histories() const { return static_cast<int>(histories_.size()); }
  Tensor history(int index) const { return histories_[index]; }

 private:
  struct Segment {  // a piece of one parameter, small enough to share work evenly
    UpdateChunk chunk;
    float lr_mult;
  };

  std::unique_ptr<UpdateRule> rule_;
  float clip_gradients_ = -1, iter_size_ = 1;
  std::vector<float> memory_;
  std::vector<Tensor> histories_;
  std::vector<Segment> segments_;
  std::vector<double> squares_;  // of each segment's gradient
};

}  // namespace crema

#endif  // CREMA_SOLVER_UPDATER_H_
