// How the threads of a GPU share a grid of channels (ops/normalization/channels.h) out: columns of channels beside each
// other, and lines along each channel.
#ifndef CREMA_CUDA_NORMALIZATION_CHANNEL_TILES_H_
#define CREMA_CUDA_NORMALIZATION_CHANNEL_TILES_H_

#include <algorithm>

#include "cuda/arrays/packs.h"
#include "cuda/device/launch.h"
#include "ops/normalization/channels.h"

namespace crema::cuda {

// Without pixels to run along, both layouts are rows of channels; what has one channel only is a single plane.
inline bool InPlanes(const ChannelGrid& grid) {
  return grid.channels == 1 || (grid.layout == Layout::kPlain && grid.pixels > 1);
}

inline int PackWidth(DType dtype) { return 16 / static_cast<int>(SizeOf(dtype)); }

// Whether packs of `width` numbers never hold numbers of two rows or planes.
inline bool FitsPacks(const ChannelGrid& grid, int width) {
  if (grid.channels == 1) return grid.count() % width == 0;
  return (InPlanes(grid) ? grid.pixels : grid.channels) % width == 0;
}

// A grid in pieces of `width` numbers. In rows a column is a piece of each row, and a line is a row; in planes a column
// is a channel, and its lines are the pieces of its planes, one plane after the other.
struct ChannelTiles {
  int64_t columns, lines;
  int64_t run;             // in planes: the pieces of one plane
  unsigned across, along;  // columns and lines of a block, one thread for each
  unsigned tiles, chunks;  // blocks beside each other, and along the lines

  dim3 blocks() const { return {tiles, chunks}; }
  unsigned threads() const { return across * along; }
};

inline ChannelTiles Extents(const ChannelGrid& grid, int width) {
  ChannelTiles tiles = {};
  if (grid.channels == 1) {
    tiles.columns = 1;
    tiles.lines = grid.count() / width;
    tiles.run = std::max<int64_t>(1, tiles.lines);
  } else if (InPlanes(grid)) {
    tiles.columns = grid.channels;
    tiles.run = grid.pixels / width;
    tiles.lines = grid.batch * tiles.run;
  } else {
    tiles.columns = grid.channels / width;
    tiles.lines = grid.per_channel();
  }
  return tiles;
}

// Rounds up.
inline int64_t Share(int64_t n, int64_t parts) { return (n + parts - 1) / parts; }

// For sums along the lines: neighbouring threads at neighbouring memory, and as many blocks as keep the GPU busy.
inline ChannelTiles SumTiles(const Queue& queue, const ChannelGrid& grid, int width) {
  constexpr int64_t kVisits = 8;  // lines of a thread that are worth parts to be combined
  ChannelTiles tiles = Extents(grid, width);
  if (InPlanes(grid)) {
    tiles.along = kThreads;
    while (tiles.along > 1 && tiles.along / 2 >= tiles.lines) tiles.along /= 2;
    tiles.across = static_cast<unsigned>(std::min<int64_t>(kThreads / tiles.along, tiles.columns));
  } else {
    const int64_t most = width == 1 ? 128 : 32;
    tiles.across = static_cast<unsigned>(Share(tiles.columns, Share(tiles.columns, most)));
    tiles.along = static_cast<unsigned>(std::clamp<int64_t>(tiles.lines, 1, kThreads / tiles.across));
  }
  tiles.tiles = static_cast<unsigned>(Share(tiles.columns, tiles.across));
  const int64_t useful = std::max<int64_t>(1, tiles.lines / (tiles.along * kVisits));
  const int64_t wanted = std::max<int64_t>(1, int64_t{queue.multiprocessors} * 4 / tiles.tiles);
  tiles.chunks = static_cast<unsigned>(std::min(useful, wanted));
  return tiles;
}

// For maps in rows: each thread keeps to its columns, whose coefficients it holds.
inline ChannelTiles MapTiles(const Queue& queue, const ChannelGrid& grid, int width) {
  ChannelTiles tiles = Extents(grid, width);
  tiles.across = static_cast<unsigned>(Share(tiles.columns, Share(tiles.columns, kThreads)));
  tiles.along = static_cast<unsigned>(std::clamp<int64_t>(tiles.lines, 1, kThreads / tiles.across));
  tiles.tiles = static_cast<unsigned>(Share(tiles.columns, tiles.across));
  const int64_t wanted = std::max<int64_t>(1, int64_t{queue.multiprocessors} * 16 / tiles.tiles);
  tiles.chunks = static_cast<unsigned>(std::min(Share(tiles.lines, tiles.along), wanted));
  return tiles;
}

// Walks along the lines of a column, `step` at a time.
template <int kWidth, bool kPlanes>
class LineWalk {
 public:
  __device__ LineWalk(const ChannelTiles& tiles, int64_t column, int64_t line, int64_t step) {
    if constexpr (kPlanes) {
      run_ = tiles.run;
      plane_ = tiles.columns * run_;
      piece_ = line % run_;
      piece_step_ = step % run_;
      at_ = line / run_ * plane_ + column * run_ + piece_;
      at_step_ = step / run_ * plane_ + piece_step_;
    } else {
      at_ = line * tiles.columns + column;
      at_step_ = step * tiles.columns;
    }
  }
  // The index of the first number.
  __device__ int64_t at() const { return at_ * kWidth; }
  __device__ void Next() {
    at_ += at_step_;
    if constexpr (kPlanes) {
      piece_ += piece_step_;
      if (piece_ < run_) return;
      piece_ -= run_;
      at_ += plane_ - run_;
    }
  }

 private:
  int64_t at_, at_step_;  // in pieces
  int64_t run_ = 0, plane_ = 0, piece_ = 0, piece_step_ = 0;
};

// Calls body(null Number*, width, in planes), the last two as std::integral_constant: packs where `aligned` and the
// grid allow, single numbers otherwise.
template <typename Body>
void WithWidth(const ChannelGrid& grid, bool aligned, const Body& body) {
  const bool planes = InPlanes(grid), packs = aligned && FitsPacks(grid, PackWidth(grid.dtype));
  WithNumber(grid.dtype, [&](auto number) {
    constexpr int kPack = 16 / sizeof *number;
    const auto with = [&](auto width) {
      if (planes) {
        body(number, width, std::true_type());
      } else {
        body(number, width, std::false_type());
      }
    };
    if (packs) {
      with(std::integral_constant<int, kPack>());
    } else {
      with(std::integral_constant<int, 1>());
    }
  });
}

}  // namespace crema::cuda

#endif  // CREMA_CUDA_NORMALIZATION_CHANNEL_TILES_H_
