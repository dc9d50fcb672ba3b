// Activations and dropouts one behind the other, done in one pass over memory: strips of kDropoutBlock elements go
// through the whole chain while they are in the first cache. f32 or bf16; in bf16 only what leaves the chain is
// rounded.
#ifndef CREMA_OPS_ACTIVATIONS_ELEMENTWISE_CHAIN_H_
#define CREMA_OPS_ACTIVATIONS_ELEMENTWISE_CHAIN_H_

#include <span>
#include <vector>

#include "base/random.h"
#include "crema/tensor.h"
#include "ops/activations/activation.h"
#include "ops/activations/dropout.h"

namespace crema {

// A dropout where its ratio is above 0, else an activation.
struct ChainLink {
  Activation activation = {};
  float dropout_ratio = 0;
  bool dropout_scales = true;  // what it keeps, so that the mean stays

  bool is_dropout() const { return dropout_ratio > 0; }
  float dropout_scale() const { return dropout_scales ? DropoutScale(dropout_ratio) : 1.0f; }
};

class ElementwiseChain {
 public:
  // What a chain's inner values take of the first cache bounds its length.
  static constexpr int kMostLinks = 8;

  ElementwiseChain() = default;
  // At most kMostLinks of them.
  explicit ElementwiseChain(std::vector<ChainLink> links);

  bool empty() const { return links_.empty(); }
  // Whether Backward works from the output; from the input, whose inner values it then computes again; or from neither.
  bool gradient_reads_output() const { return reads_output_ && !drops_alone_; }
  bool gradient_reads_input() const { return !reads_output_; }
  std::span<const ChainLink> links() const { return links_; }
  // Whether Backward multiplies by masks; if not, dropouts only scale.
  bool reads_masks() const { return reads_masks_; }
  // The first links, whose outputs Backward computes again.
  int recomputed() const { return recomputed_; }
  // Dropouts of the chain. Forward draws from as many streams, in their order.
  int dropouts() const { return dropouts_; }
  // 32-bit words of masks that Backward reads for n elements; 0 where it needs none.
  int64_t mask_words(int64_t n) const;

  // y = the chain of x; y may be x. masks gets mask_words(count) words, or is null where no Backward follows.
  void Forward(std::span<const RandomStream> streams, const Tensor& x, const Tensor& y, uint32_t* masks) const;
  // y[row][i] = the chain of y[row][i] + bias[i], f32; a null bias is 0.
  void ForwardWithBias(std::span<const RandomStream> streams, const float* bias, int64_t rows, int64_t columns,
                       float* y, uint32_t* masks) const;
  // `known`: the output or the input, whichever the gradient reads, of dx's type; not read where neither. dx may be dy.
  void Backward(const void* known, const uint32_t* masks, const Tensor& dy, const Tensor& dx) const;

 private:
  void ForwardStrip(std::span<const RandomStream> streams, int64_t block, int64_t n, const float* x, float* y,
                    uint32_t* masks) const;
  void BackwardStrip(int64_t n, const float* known, const uint32_t* masks, const float* dy, float* dx) const;
  uint32_t* BlockMasks(uint32_t* masks, int64_t block) const;

  std::vector<ChainLink> links_;
  bool drops_alone_ = false, reads_output_ = false, reads_masks_ = false;
  int recomputed_ = 0;
  int dropouts_ = 0;
};

}  // namespace crema

#endif  // CREMA_OPS_ACTIVATIONS_ELEMENTWISE_CHAIN_H_
