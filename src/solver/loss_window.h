// The loss smoothed over the last iterations, as Caffe displays it.
#ifndef CREMA_SOLVER_LOSS_WINDOW_H_
#define CREMA_SOLVER_LOSS_WINDOW_H_

#include <algorithm>
#include <deque>

namespace crema {

class LossWindow {
 public:
  // size: average_loss, at least 1.
  explicit LossWindow(int size) : size_(static_cast<size_t>(size)) {}

  void Add(float loss) {
    losses_.push_back(loss);
    if (losses_.size() > size_) losses_.pop_front();
  }

  // Mean of what the window holds, 0 when empty. Depends on those losses only, so that a resumed run shows the same.
  float mean() const {
    double sum = 0;
    for (const float loss : losses_) sum += loss;
    return static_cast<float>(sum / static_cast<double>(std::max<size_t>(losses_.size(), 1)));
  }

  const std::deque<float>& losses() const { return losses_; }  // oldest first

 private:
  size_t size_;
  std::deque<float> losses_;
};

}  // namespace crema

#endif  // CREMA_SOLVER_LOSS_WINDOW_H_
