// Parameters as differences to ones that both sides have, compressed.
#ifndef CREMA_DISTRIBUTED_CODING_H_
#define CREMA_DISTRIBUTED_CODING_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "crema/distributed.pb.h"
#include "distributed/error_feedback.h"
#include "distributed/payload.h"
#include "distributed/state_layout.h"

namespace crema {

enum class Direction { kUp, kDown };

// The codec of one direction.
CodecOptions CodecOf(const DistributedParameter& settings, Direction direction);

// A sender's side of one direction. A code is: a byte, the CodecKind of those buckets that are compressed, and three
// zeros; for each bucket of the layout the length of its code (4 bytes, little-endian) and the code
// (distributed/codec.h) of value - anchor; all else as floats. Not thread-safe.
class StateEncoder {
 public:
  StateEncoder(const CodecOptions& options, const StateLayout& layout);

  // `values`: trained ones, statistics, perhaps the history. `anchor`: trained values, or empty for zeros. `exactly`:
  // nothing is compressed, and what was left out before is sent, too. Again before Settle: replaces the last code.
  // Throws NonFiniteValue.
  Payload Encode(std::span<const float> values, std::span<const float> anchor, bool exactly);
  // Whether what was encoded last became part of the parameters. Without a code: does nothing.
  void Settle(bool committed);

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

 private:
  const StateLayout layout_;
  std::unique_ptr<const Codec> codec_, exact_;
  uint64_t most_bytes_ = 0;
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_CODING_H_
