// How channels_last.h sees a tensor. For its own sources only.
#ifndef CREMA_OPS_CHANNELS_LAST_ROWS_H_
#define CREMA_OPS_CHANNELS_LAST_ROWS_H_

#include <algorithm>
#include <cstdint>

#include "base/bfloat16.h"
#include "ops/channels.h"

namespace crema::channels_last {

inline constexpr int64_t kBlock = 64;             // columns summed in registers at a time
inline constexpr int64_t kChunkFloats = 1 << 15;  // of x that stay in a core's cache between two passes over them
inline constexpr int64_t kLeastRows = 32;         // of a chunk, so that its sums are small beside it

// The tensor as rows of `period` floats, a multiple of the channels, and a shorter rest.
struct Flat {
  explicit Flat(const ChannelGrid& grid) : channels(grid.channels) {
    // Of bf16, whole strips, which are converted at a call each.
    const int64_t least = grid.dtype == DType::kBF16 ? kBFloat16Strip : kBlock;
    period = channels * ((least + channels - 1) / channels);
    rows = grid.count() / period;
    rest = grid.count() % period;
    chunk_rows = std::max(kLeastRows, kChunkFloats / period);
    chunks = rows / chunk_rows + 1;  // the last one also takes the rest
  }
  int64_t begin(int64_t chunk) const { return chunk * chunk_rows; }
  int64_t end(int64_t chunk) const { return std::min(rows, (chunk + 1) * chunk_rows); }

  int64_t channels, period, rows, rest, chunk_rows, chunks;
};

}  // namespace crema::channels_last

#endif  // CREMA_OPS_CHANNELS_LAST_ROWS_H_
