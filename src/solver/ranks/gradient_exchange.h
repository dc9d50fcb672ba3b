// Sums of gradients over all ranks, while backward still makes others.
#ifndef CREMA_SOLVER_RANKS_GRADIENT_EXCHANGE_H_
#define CREMA_SOLVER_RANKS_GRADIENT_EXCHANGE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "crema/net.h"
#include "device/communicator.h"

namespace crema {

class GradientExchange : public GradientReader {
 public:
  // Gradients are collected until they are this many bytes, which takes a sum over GPUs well longer than its start
  // does.
  static constexpr size_t kBucketBytes = size_t{4} << 20;

  // `net` keeps its gradients and announces them (NetOptions), in the same order in every rank.
  GradientExchange(const Net& net, Device& device, Communicator& communicator, size_t bucket_bytes = kBucketBytes);

  void OnGradient(int parameter, const Tensor& gradient) override;
  // To be called when the backward pass is over or, on a GPU, issued: what is issued from here on finds the sums in the
  // place of the gradients. On a GPU updates then leave parameters alone where they would do so in any rank.
  void Finish();

  // How many sums a pass takes.
  size_t sums() const { return sums_.size(); }

 private:
  struct Sum {
    size_t behind;  // how many gradients have come before it
    float* data;
    int64_t count;
  };

  void ShareLoss();

  Device& device_;
  Communicator& communicator_;
  std::vector<int> order_;  // of the parameters, as they are announced
  std::vector<Sum> sums_;
  size_t came_ = 0, summed_ = 0;  // in this pass
  Buffer loss_;                   // of a GPU
};

}  // namespace crema

#endif  // CREMA_SOLVER_RANKS_GRADIENT_EXCHANGE_H_
