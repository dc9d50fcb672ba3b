// What max and average pooling share where channels lie densest: every output pixel combines rows of channels, and so
// does, in the backward pass, every input pixel.
#ifndef CREMA_OPS_POOLING_CHANNELS_LAST_H_
#define CREMA_OPS_POOLING_CHANNELS_LAST_H_

#include <algorithm>
#include <vector>

#include "base/parallel.h"
#include "ops/packs.h"
#include "ops/pooling.h"

namespace crema {

// Channels that are combined at a time, and rows of them: their sums stay in the first cache, and processors follow
// this many streams.
constexpr int64_t kPooledChannels = 512;
constexpr int kPooledRows = 16;

// Some of the rows of channels that make one.
struct PooledRows {
  int64_t offsets[kPooledRows];  // of each row from the first of the image
  int32_t labels[kPooledRows];   // its position in the window
  float weights[kPooledRows];    // for averages
  int count = 0;
  bool first = true, last = false;  // of the rows of this pixel
};

// The windows, of outputs [0, filled), that an index along one axis of the input lies in.
struct CoveringWindows {
  CoveringWindows(int64_t extent, const PoolingWindow& window, const WindowRanges& ranges) {
    const int64_t filled = ranges.filled();
    for (int64_t i = 0; i < extent; ++i) {
      const int64_t past = i + window.pad - window.kernel + 1;  // the first window starts here or later
      begin.push_back(std::min(filled, past <= 0 ? 0 : (past + window.stride - 1) / window.stride));
      end.push_back(std::max(begin.back(), std::min(filled, (i + window.pad) / window.stride + 1)));
    }
    for (int64_t i = 0; i < filled; ++i) weight.push_back(1.0f / static_cast<float>(ranges.padded[i]));
  }
  std::vector<int64_t> begin, end;
  std::vector<float> weight;  // of each window: 1 / its extent
};

struct PooledGeometry {
  explicit PooledGeometry(const PoolingProblem& p)
      : problem(p),
        rows(p.input_height, p.vertical, p.output_height),
        columns(p.input_width, p.horizontal, p.output_width),
        row_windows(p.input_height, p.vertical, rows),
        column_windows(p.input_width, p.horizontal, columns) {}

  PoolingProblem problem;
  WindowRanges rows, columns;
  CoveringWindows row_windows, column_windows;

  // Whether windows begin at the first pixel and do not overlap, and none is empty.
  bool SideBySide() const {
    const auto holds = [](const PoolingWindow& window, const WindowRanges& ranges) {
      return window.pad == 0 && window.kernel == window.stride && ranges.begin.back() < ranges.end.back();
    };
    return holds(problem.vertical, rows) && holds(problem.horizontal, columns);
  }

  // Calls visit(rows of channels) for the window of output (row, column), in row-major order and in groups.
  template <typename Visit>
  CREMA_INLINE void ForEachTap(int64_t row, int64_t column, const Visit& visit) const {
    const PoolingProblem& p = problem;
    const int64_t top = row * p.vertical.stride - p.vertical.pad;
    const int64_t left = column * p.horizontal.stride - p.horizontal.pad;
    const int64_t left_over = columns.begin[column] - left;
    PooledRows group;
    for (int64_t h = rows.begin[row]; h < rows.end[row]; ++h) {
      int64_t offset = (h * p.input_width + columns.begin[column]) * p.channels;
      int32_t label = static_cast<int32_t>((h - top) * p.horizontal.kernel + left_over);
      for (int64_t w = columns.begin[column]; w < columns.end[column]; ++w, offset += p.channels) {
        if (group.count == kPooledRows) {
          visit(group);
          group.count = 0;
          group.first = false;
        }
        group.offsets[group.count] = offset;
        group.labels[group.count++] = label++;
      }
    }
    group.last = true;
    visit(group);
  }

  // The same for the windows that hold input (row, column), the labels being its positions in them.
  template <typename Visit>
  CREMA_INLINE void ForEachWindow(int64_t row, int64_t column, const Visit& visit) const {
    const PoolingProblem& p = problem;
    PooledRows group;
    for (int64_t h = row_windows.begin[row]; h < row_windows.end[row]; ++h) {
      const int64_t below = row - (h * p.vertical.stride - p.vertical.pad);
      for (int64_t w = column_windows.begin[column]; w < column_windows.end[column]; ++w) {
        if (group.count == kPooledRows) {
          visit(group);
          group.count = 0;
          group.first = false;
        }
        const int64_t right = column - (w * p.horizontal.stride - p.horizontal.pad);
        group.offsets[group.count] = (h * p.output_width + w) * p.channels;
        group.weights[group.count] = row_windows.weight[h] * column_windows.weight[w];
        group.labels[group.count++] = static_cast<int32_t>(below * p.horizontal.kernel + right);
      }
    }
    group.last = true;
    visit(group);
  }
};

// Calls body(image, row) for every row of every image, threaded. `elements`: read and written for a row.
template <typename Body>
void ForEachPooledRow(int64_t batch, int64_t rows, int64_t elements, const Body& body) {
  constexpr int64_t kGrain = 16384;  // elements worth waking a thread for
  ParallelFor(batch * rows, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, elements)),
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) body(i / rows, i % rows);
              });
}

}  // namespace crema

#endif  // CREMA_OPS_POOLING_CHANNELS_LAST_H_
