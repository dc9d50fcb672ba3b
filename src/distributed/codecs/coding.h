// Parameters as differences to ones that both sides have, compressed.
#ifndef CREMA_DISTRIBUTED_CODECS_CODING_H_
#define CREMA_DISTRIBUTED_CODECS_CODING_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "crema/distributed.pb.h"
#include "distributed/codecs/error_feedback.h"
#include "distributed/protocol/payload.h"
#include "distributed/training/state_layout.h"

namespace crema {

enum class Direction { kUp, kDown };

// The codec of one direction.
CodecOptions CodecOf(const DistributedParameter& settings, Direction direction);

// A sender's side of one direction. A code is: a byte, the CodecKind of those buckets that are compressed, and three
// zeros; for each bucket of the layout the length of its code (4 bytes, little-endian) and the code
// (distributed/codecs/codec.h) of value - anchor; all else as floats. Not thread-safe.
class StateEncoder {
 public:
  StateEncoder(const CodecOptions& options, const StateLayout& layout);

  // `values`: trained ones, statistics, perhaps the history. `anchor`: trained values, or empty for zeros. `exactly`:
  // nothing is compressed, and what was left out before is sent, too. Again before Settle: replaces the last code.
  // Throws NonFiniteValue.
  Payload Encode(std::span<const float> values, std::span<const float> anchor, bool exactly);
  // The same of the buckets [first, last) and what lies behind these in `values`, which begins with the first one's, as
  // `anchor` does. Again before Settle: replaces these buckets' last code.
  Payload EncodePart(size_t first, size_t last, std::span<const float> values, std::span<const float> anchor,
                     bool exactly);
  // Whether what was encoded since the last time became part of the parameters. Without a code: does nothing.
  void Settle(bool committed);
  // What was left out is not sent any more.
  void Forget();

 private:
  const StateLayout layout_;
  const CodecKind kind_;
  ErrorFeedback feedback_;
  std::vector<float> differences_;
  bool open_ = false;
};

// The other side: has no state, and is thread-safe.
class StateDecoder {
 public:
  StateDecoder(const CodecOptions& options, const StateLayout& layout);

  // Longer ones are none.
  uint64_t most_bytes() const { return most_bytes_; }
  // The values that were encoded, as far as the code tells: trained ones as anchor + difference, each sum rounded to a
  // float. Throws MalformedCode.
  Payload Decode(const Payload& code, std::span<const float> anchor) const;
  // Of EncodePart, with so many values behind the buckets.
  Payload DecodePart(size_t first, size_t last, size_t others, const Payload& code,
                     std::span<const float> anchor) const;

 private:
  // Reads the buckets [first, last) into the beginning of `values`; returns what lies behind them.
  std::span<const std::byte> DecodeBuckets(size_t first, size_t last, const Payload& code,
                                           std::span<const float> anchor, Bytes& values) const;

  const StateLayout layout_;
  std::unique_ptr<const Codec> codec_, exact_;
  uint64_t most_bytes_ = 0;
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_CODECS_CODING_H_
