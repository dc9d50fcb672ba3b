// Dropout (Srivastava et al., JMLR 2014), scaled while training so that nothing is left to do when testing.
#ifndef CREMA_OPS_ACTIVATIONS_DROPOUT_H_
#define CREMA_OPS_ACTIVATIONS_DROPOUT_H_

#include <cstdint>

#include "base/random.h"

namespace crema {

// Which elements are kept, a bit each, in blocks of kDropoutBlock elements: element 16 * b + l of a block is bit b of
// its word l. So a loop over 16 lanes draws, stores and reads masks without moving bits across lanes.
inline constexpr int64_t kDropoutLanes = 16, kDropoutBlock = 32 * kDropoutLanes;
// Words that the mask of n elements takes.
inline int64_t DropoutMaskWords(int64_t n) { return (n + kDropoutBlock - 1) / kDropoutBlock * kDropoutLanes; }

// A chunk is kDropoutChunk elements: word w of what RandomStream::Bits draws for counter chunk * kDropoutCounters + j
// decides element w * kDropoutCounters + j of it, which is kept where the word is DropoutThreshold or above.
inline constexpr int64_t kDropoutCounters = 64, kDropoutChunk = 4 * kDropoutCounters;
static_assert(kDropoutBlock % kDropoutChunk == 0 && kDropoutCounters % kDropoutLanes == 0);
inline uint32_t DropoutThreshold(float ratio) {
  return static_cast<uint32_t>(static_cast<double>(ratio) * 4294967296.0);
}

// The factor of what is kept.
inline float DropoutScale(float ratio) { return 1.0f / (1.0f - ratio); }
// Draws the mask of block `block`, kDropoutLanes words: an element is kept with probability 1 - ratio, ratio in [0, 1).
// A pure function of the stream and the element's index.
void DrawDropoutMask(const RandomStream& stream, float ratio, int64_t block, uint32_t* mask);
// y[i] = scale * x[i] where element i of the block is kept, else 0, for the n <= kDropoutBlock first elements of one
// block. y may be x.
void MaskDropoutBlock(float scale, int64_t n, const uint32_t* mask, const float* x, float* y);

}  // namespace crema

#endif  // CREMA_OPS_ACTIVATIONS_DROPOUT_H_
