#include "ops/activations/elementwise_chain.h"

#include <algorithm>

#include "base/bfloat16.h"
#include "base/check.h"
#include "base/parallel.h"
#include "ops/arrays/elementwise.h"

namespace crema {

namespace {

constexpr int64_t kStrip = kDropoutBlock;
constexpr int64_t kGrain = 32;  // strips worth waking a thread for

// Calls body(strip's index, offset, elements) for every strip.
template <typename Body>
void ForEachStrip(int64_t n, const Body& body) {
  ParallelFor((n + kStrip - 1) / kStrip, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t strip = begin; strip < end; ++strip) {
      const int64_t at = strip * kStrip;
      body(strip, at, std::min(kStrip, n - at));
    }
  });
}

void Multiply(int64_t n, float factor, const float* x, float* y) {
  internal::MapRange(formula::Multiple{factor}, n, y, x);
}

// y[i] += bias[(first + i) % columns]
void AddBiasToStrip(const float* bias, int64_t columns, int64_t first, int64_t n, float* y) {
  for (int64_t at = 0; at < n;) {
    const int64_t column = (first + at) % columns, width = std::min(columns - column, n - at);
    internal::MapRange(formula::Sum{}, width, y + at, static_cast<const float*>(y + at), bias + column);
    at += width;
  }
}

}  // namespace

ElementwiseChain::ElementwiseChain(std::vector<ChainLink> links) : links_(std::move(links)) {
  const int count = static_cast<int>(links_.size());
  CREMA_CHECK(count <= kMostLinks) << count << " links in a chain";
  reads_output_ = true;
  bool zero_stays_without_gradient = false, keeps_sign = true;  // of the links behind the one looked at
  for (int i = count - 1; i >= 0; --i) {
    const Activation& activation = links_[i].activation;
    if (links_[i].is_dropout()) {
      ++dropouts_;
      continue;
    }
    CREMA_CHECK(activation.chains()) << "an activation that is no link of a chain";
    reads_output_ &=
        (activation.gradient_reads_sign() && keeps_sign) || (activation.gradient_reads_output() && i == count - 1);
    zero_stays_without_gradient |= activation.gradient_reads_sign() && activation.parameter == 0;
    keeps_sign &= activation.keeps_sign();
    const int needed = activation.gradient_reads_output() ? i + 1 : i;
    recomputed_ = std::max(recomputed_, needed);
  }
  drops_alone_ = dropouts_ == count;
  if (reads_output_) recomputed_ = 0;
  // What a dropout made 0 is 0 at the end, where a ReLU knows it from the output.
  reads_masks_ = dropouts_ > 0 && !(reads_output_ && zero_stays_without_gradient);
}

int64_t ElementwiseChain::mask_words(int64_t n) const { return reads_masks_ ? dropouts_ * DropoutMaskWords(n) : 0; }

uint32_t* ElementwiseChain::BlockMasks(uint32_t* masks, int64_t block) const {
  return reads_masks_ && masks ? masks + block * dropouts_ * kDropoutLanes : nullptr;
}

void ElementwiseChain::ForwardStrip(std::span<const RandomStream> streams, int64_t block, int64_t n, const float* x,
                                    float* y, uint32_t* masks) const {
  uint32_t unread[kDropoutLanes];
  int dropout = 0;
  for (const ChainLink& link : links_) {
    if (link.is_dropout()) {
      uint32_t* mask = masks ? masks + dropout * kDropoutLanes : unread;
      DrawDropoutMask(streams[dropout], link.dropout_ratio, block, mask);
      MaskDropoutBlock(link.dropout_scale(), n, mask, x, y);
      ++dropout;
    } else {
      ActivateFloats(link.activation, n, x, y);
    }
    x = y;
  }
}

void ElementwiseChain::Forward(std::span<const RandomStream> streams, const Tensor& x, const Tensor& y,
                               uint32_t* masks) const {
  if (y.dtype() == DType::kF32) {
    return ForEachStrip(y.count(), [&](int64_t block, int64_t at, int64_t n) {
      ForwardStrip(streams, block, n, x.f32() + at, y.f32() + at, BlockMasks(masks, block));
    });
  }
  ForEachStrip(y.count(), [&](int64_t block, int64_t at, int64_t n) {
    alignas(64) float strip[kStrip];
    ToFloats(x.bf16() + at, n, strip);
    ForwardStrip(streams, block, n, strip, strip, BlockMasks(masks, block));
    FromFloats(strip, n, y.bf16() + at);
  });
}

void ElementwiseChain::ForwardWithBias(std::span<const RandomStream> streams, const float* bias, int64_t rows,
                                       int64_t columns, float* y, uint32_t* masks) const {
  ForEachStrip(rows * columns, [&](int64_t block, int64_t at, int64_t n) {
    if (bias) AddBiasToStrip(bias, columns, at, n, y + at);
    ForwardStrip(streams, block, n, y + at, y + at, BlockMasks(masks, block));
  });
}

void ElementwiseChain::BackwardStrip(int64_t n, const float* known, const uint32_t* masks, const float* dy,
                                     float* dx) const {
  alignas(64) float inner[kMostLinks][kStrip];  // the outputs of the links
  const float* values[kMostLinks + 1];
  values[0] = known;
  int dropout = 0;
  for (int i = 0; i < recomputed_; ++i) {
    const ChainLink& link = links_[i];
    if (link.is_dropout()) {
      MaskDropoutBlock(link.dropout_scale(), n, masks + dropout++ * kDropoutLanes, values[i], inner[i]);
    } else {
      ActivateFloats(link.activation, n, values[i], inner[i]);
    }
    values[i + 1] = inner[i];
  }
  dropout = dropouts_;
  for (int i = static_cast<int>(links_.size()) - 1; i >= 0; --i) {
    const ChainLink& link = links_[i];
    if (link.is_dropout()) {
      const float scale = link.dropout_scale();
      --dropout;
      if (reads_masks_) {
        MaskDropoutBlock(scale, n, masks + dropout * kDropoutLanes, dy, dx);
      } else {
        Multiply(n, scale, dy, dx);
      }
    } else {
      const int at = link.activation.gradient_reads_output() ? i + 1 : i;
      ActivationGradientOfFloats(link.activation, n, reads_output_ ? known : values[at], dy, dx);
    }
    dy = dx;
  }
}

void ElementwiseChain::Backward(const void* known, const uint32_t* masks, const Tensor& dy, const Tensor& dx) const {
  const auto masks_of = [&](int64_t block) { return BlockMasks(const_cast<uint32_t*>(masks), block); };
  if (dx.dtype() == DType::kF32) {
    return ForEachStrip(dx.count(), [&](int64_t block, int64_t at, int64_t n) {
      BackwardStrip(n, drops_alone_ ? nullptr : static_cast<const float*>(known) + at, masks_of(block), dy.f32() + at,
                    dx.f32() + at);
    });
  }
  ForEachStrip(dx.count(), [&](int64_t block, int64_t at, int64_t n) {
    alignas(64) float from[kStrip], gradient[kStrip];
    if (!drops_alone_) ToFloats(static_cast<const BFloat16*>(known) + at, n, from);
    ToFloats(dy.bf16() + at, n, gradient);
    BackwardStrip(n, from, masks_of(block), gradient, gradient);
    FromFloats(gradient, n, dx.bf16() + at);
  });
}

}  // namespace crema
