// What a lossy code leaves out is sent in later rounds, so that in sum everything arrives (Seide et al., "1-bit
// stochastic gradient descent", 2014; Karimireddy et al., "Error feedback fixes SignSGD", 2019).
#ifndef CREMA_DISTRIBUTED_CODECS_ERROR_FEEDBACK_H_
#define CREMA_DISTRIBUTED_CODECS_ERROR_FEEDBACK_H_

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "distributed/codecs/codec.h"

namespace crema {

// A run of values that is sent as one code.
struct Bucket {
  size_t count = 0;
  // Never loses anything: statistics of BatchNorm, biases.
  bool exact = false;
};

// Smaller buckets are not worth it.
inline constexpr size_t kLeastCompressedBytes = 4096;

// How both sides write a bucket where `kind` is configured: kFloat32 for those that are exact or small.
CodecKind KindOf(const Bucket& bucket, CodecKind kind);

// A sender's memory of what its codes left out: with e zero at first, each round sends C(x + e) and then has
// e = x + e - D(C(x + e)), if the round was committed. |e| is clipped to 5 times Codec::Scale, as deeplearning4j does
// to 5 thresholds. Only THRESHOLD and ONEBIT ever get there, with values that stay much larger than what a message
// carries of them: their direction arrives, not all of their size; without clipping ONEBIT would take as many rounds as
// a column has values, and send what is long outdated. Not thread-safe. Once it is built, only codecs
// and `out` allocate what grows with a bucket.
class ErrorFeedback {
 public:
  static constexpr float kClip = 5;

  // clip: above 0, infinite for none. Throws UserError as MakeCodec does, and where `clip` is not above 0.
  ErrorFeedback(const CodecOptions& options, std::vector<Bucket> buckets, float clip = kClip);
  ~ErrorFeedback();

  // The codec that Encode uses for it; receivers decode with one of the same options and kind.
  const Codec& codec(size_t bucket) const;

  // Appends the code of `values` and what is left of earlier ones; again before Commit or Abort, replaces the bucket's
  // last one. Throws NonFiniteValue where the sum is not finite, with `out` as before and no code of this bucket to
  // commit.
  void Encode(size_t bucket, std::span<const float> values, Bytes& out);

  // The same as kFloat32 for any bucket: after it is committed nothing is left. For the first rounds, and the last.
  void EncodeExactly(size_t bucket, std::span<const float> values, Bytes& out);

  // What was encoded since the last Commit or Abort has become part of the parameters.
  void Commit();

  // It has not, and the same values will make the same codes again.
  void Abort();

  // Forgets everything, also what is not committed, and returns the norm (L2) of what was committed: of what is lost.
  double Clear();

  // The norm (L2) of what is left, over all buckets.
  double Norm() const;

  // What is left of a bucket; empty for buckets that are not compressed.
  std::span<const float> residual(size_t bucket) const;

 private:
  struct State;

  void EncodeWith(const Codec& codec, size_t bucket, std::span<const float> values, Bytes& out);

  std::unique_ptr<const Codec> codec_, exact_;
  std::vector<State> states_;
  std::vector<float> sum_;
  const float clip_;
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_CODECS_ERROR_FEEDBACK_H_
