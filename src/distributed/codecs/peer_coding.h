// Pieces of values as workers send them to each other, compressed, with error feedback at whoever sends.
#ifndef CREMA_DISTRIBUTED_CODECS_PEER_CODING_H_
#define CREMA_DISTRIBUTED_CODECS_PEER_CODING_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "crema/distributed.pb.h"
#include "distributed/codecs/coding.h"

namespace crema {

// Pieces begin and end between blocks: parameters that are compressed are cut into blocks of 2048 values (the last one
// of each: 1024 to 3071), as which they are coded. Not thread-safe, but for what is const.
class PeerCoding {
 public:
  // Places of values, counted from the first one: [first, last).
  struct Range {
    int64_t first = 0, last = 0;
  };

  PeerCoding(const DistributedParameter& settings, const StateLayout& layout);

  // The place between blocks that is nearest to this one.
  int64_t CutNear(int64_t place) const;
  // No code of a piece is longer.
  uint64_t most_bytes() const;

  // What goes to whoever makes the mean of a piece (kUp), or from there to all (kDown), of the piece's values.
  // `anchor`: trained values that all have, from the first one on, or empty for zeros. `exactly` as with
  // StateEncoder::Encode. Again before Settle: replaces the piece's last code. Null where a value is not finite.
  Payload Encode(Direction direction, Range piece, const float* values, std::span<const float> anchor, bool exactly);
  // The piece's values, as far as the code tells; null where it is none.
  Payload Decode(Direction direction, Range piece, const Payload& code, std::span<const float> anchor) const;
  // Whether what was encoded since the last time became part of the parameters.
  void Settle(bool committed);
  // What codes left out is not sent any more.
  void Forget();

 private:
  // The blocks that a piece is made of, [first, last), and its values behind the last trained one.
  struct Blocks {
    size_t first = 0, last = 0;
    size_t others = 0;
  };
  // Nothing: floats as they are.
  struct Way {
    std::optional<StateEncoder> encoder;
    std::optional<StateDecoder> decoder;
  };

  Blocks BlocksOf(Range piece) const;
  const Way& of(Direction direction) const { return direction == Direction::kUp ? up_ : down_; }

  const StateLayout layout_;     // of blocks
  std::vector<int64_t> starts_;  // of blocks, and the end of the last
  Way up_, down_;
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_CODECS_PEER_CODING_H_
