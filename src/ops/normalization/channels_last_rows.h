// How channels_last.h sees a tensor. For its own sources only.
#ifndef CREMA_OPS_NORMALIZATION_CHANNELS_LAST_ROWS_H_
#define CREMA_OPS_NORMALIZATION_CHANNELS_LAST_ROWS_H_

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "ops/normalization/channels.h"

namespace crema::channels_last {

// Lanes of a pack (ops/arrays/packs.h) where vectors have kVectorLanes: numbers of two bytes are always taken by 32, in
// two packs.
template <typename Number, int kVectorLanes>
inline constexpr int kLanesOf = sizeof(Number) == 2 ? 16 : kVectorLanes;

// For sums: the tensor as rows of `period` numbers, a multiple of the channels, and a shorter rest.
struct Flat {
  static constexpr int64_t kLeastPeriod = 64;        // that vectors are full
  static constexpr int64_t kChunkNumbers = 1 << 15;  // of x that stay in a core's cache between two passes over them
  static constexpr int64_t kLeastRows = 32;          // of a chunk, so that its sums are small beside it

  explicit Flat(const ChannelGrid& grid) : channels(grid.channels) {
    period = channels * ((kLeastPeriod + channels - 1) / channels);
    rows = grid.count() / period;
    rest = grid.count() % period;
    chunk_rows = std::max(kLeastRows, kChunkNumbers / period);
    chunks = rows / chunk_rows + 1;  // the last one also takes the rest
  }
  int64_t begin(int64_t chunk) const { return chunk * chunk_rows; }
  int64_t end(int64_t chunk) const { return std::min(rows, (chunk + 1) * chunk_rows); }

  int64_t channels, period, rows, rest, chunk_rows, chunks;
};

// For maps: likewise, with rows of whole blocks unless they would be too long for that.
struct Blocks {
  static constexpr int64_t kWidth = 32;
  static constexpr int64_t kLongest = 2048;  // whose coefficients stay in a core's first cache

  explicit Blocks(const ChannelGrid& grid) : channels(grid.channels) {
    const int64_t whole = std::lcm(channels, 4 * kWidth);
    period = whole <= kLongest ? whole : channels;
    padded_period = (period + kWidth - 1) / kWidth * kWidth;
    rows = grid.count() / period;
    rest = grid.count() % period;
  }

  int64_t channels, period, padded_period, rows, rest;
};

}  // namespace crema::channels_last

#endif  // CREMA_OPS_NORMALIZATION_CHANNELS_LAST_ROWS_H_
