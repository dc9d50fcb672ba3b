// What max and average pooling share where channels lie densest: every output pixel combines rows of channels, and so
// does, in the backward pass, every input pixel. kVolume: there are slices; loops over images are compiled without.
#ifndef CREMA_OPS_POOLING_POOLING_CHANNELS_LAST_H_
#define CREMA_OPS_POOLING_POOLING_CHANNELS_LAST_H_

#include <algorithm>
#include <vector>

#include "base/parallel.h"
#include "ops/arrays/packs.h"
#include "ops/pooling/pooling.h"

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

// A row of an image or of a volume's slice, of the input or the output.
struct PooledLine {
  int64_t slice, row;
};

template <bool kVolume>
struct PooledGeometry {
  explicit PooledGeometry(const PoolingProblem& p)
      : problem(p),
        slices(p.input_depth, p.depth, p.output_depth, p.method != PoolingMethod::kSum),
        rows(p.input_height, p.vertical, p.output_height, p.method != PoolingMethod::kSum),
        columns(p.input_width, p.horizontal, p.output_width, p.method != PoolingMethod::kSum),
        slice_windows(p.input_depth, p.depth, slices),
        row_windows(p.input_height, p.vertical, rows),
        column_windows(p.input_width, p.horizontal, columns) {}

  PoolingProblem problem;
  WindowRanges slices, rows, columns;
  CoveringWindows slice_windows, row_windows, column_windows;

  // Rows of the slices of an input or output.
  int64_t input_lines() const { return problem.input_depth * problem.input_height; }
  int64_t output_lines() const { return problem.output_depth * problem.output_height; }
  // One of them by its number.
  CREMA_INLINE PooledLine InputLine(int64_t line) const { return LineOf(line, problem.input_height); }
  CREMA_INLINE PooledLine OutputLine(int64_t line) const { return LineOf(line, problem.output_height); }

  // Whether windows begin at the first pixel and do not overlap, and none is empty.
  bool SideBySide() const {
    const auto holds = [](const PoolingWindow& window, const WindowRanges& ranges) {
      return window.pad == 0 && window.kernel == window.stride && ranges.begin.back() < ranges.end.back();
    };
    return (!kVolume || holds(problem.depth, slices)) && holds(problem.vertical, rows) &&
           holds(problem.horizontal, columns);
  }

  CREMA_INLINE bool Empty(const PooledLine& line, int64_t column) const {
    return (kVolume && slices.begin[line.slice] >= slices.end[line.slice]) ||
           rows.begin[line.row] >= rows.end[line.row] || columns.begin[column] >= columns.end[column];
  }
  // What the window of an output would hold without borders.
  CREMA_INLINE int64_t Padded(const PooledLine& line, int64_t column) const {
    return (kVolume ? slices.padded[line.slice] : 1) * rows.padded[line.row] * columns.padded[column];
  }

  // Of the first pixel of a window, which may be padding, and how far behind it one with a label is.
  CREMA_INLINE int64_t Corner(const PooledLine& line, int64_t column) const {
    const PoolingProblem& p = problem;
    const int64_t front = kVolume ? line.slice * p.depth.stride - p.depth.pad : 0;
    return (front * p.input_height + line.row * p.vertical.stride - p.vertical.pad) * p.input_width +
           column * p.horizontal.stride - p.horizontal.pad;
  }
  CREMA_INLINE int64_t PixelOf(int64_t label) const {
    const PoolingProblem& p = problem;
    int64_t row = label / p.horizontal.kernel;
    if constexpr (kVolume) row += row / p.vertical.kernel * (p.input_height - p.vertical.kernel);
    return row * p.input_width + label % p.horizontal.kernel;
  }

  // Calls visit(rows of channels) for the window of an output, in the order of memory and in groups.
  template <typename Visit>
  CREMA_INLINE void ForEachTap(const PooledLine& line, int64_t column, const Visit& visit) const {
    const PoolingProblem& p = problem;
    const int64_t front = kVolume ? line.slice * p.depth.stride - p.depth.pad : 0;
    const int64_t top = line.row * p.vertical.stride - p.vertical.pad;
    const int64_t left = column * p.horizontal.stride - p.horizontal.pad;
    const int64_t left_over = columns.begin[column] - left;
    PooledRows group;
    const int64_t first = kVolume ? slices.begin[line.slice] : 0, end = kVolume ? slices.end[line.slice] : 1;
    for (int64_t d = first; d < end; ++d) {
      const int64_t above = (d - front) * p.vertical.kernel - top;  // rows of the window before input row 0
      for (int64_t h = rows.begin[line.row]; h < rows.end[line.row]; ++h) {
        int64_t offset = ((d * p.input_height + h) * p.input_width + columns.begin[column]) * p.channels;
        int32_t label = static_cast<int32_t>((above + h) * p.horizontal.kernel + left_over);
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
    }
    group.last = true;
    visit(group);
  }

  // The same for the windows that hold an input pixel, the labels being its positions in them.
  template <typename Visit>
  CREMA_INLINE void ForEachWindow(const PooledLine& line, int64_t column, const Visit& visit) const {
    const PoolingProblem& p = problem;
    PooledRows group;
    const int64_t first = kVolume ? slice_windows.begin[line.slice] : 0;
    const int64_t end = kVolume ? slice_windows.end[line.slice] : 1;
    for (int64_t d = first; d < end; ++d) {
      const int64_t above = kVolume ? (line.slice - (d * p.depth.stride - p.depth.pad)) * p.vertical.kernel : 0;
      const float weight = kVolume ? slice_windows.weight[d] : 1.0f;
      for (int64_t h = row_windows.begin[line.row]; h < row_windows.end[line.row]; ++h) {
        const int64_t below = above + line.row - (h * p.vertical.stride - p.vertical.pad);
        for (int64_t w = column_windows.begin[column]; w < column_windows.end[column]; ++w) {
          if (group.count == kPooledRows) {
            visit(group);
            group.count = 0;
            group.first = false;
          }
          const int64_t right = column - (w * p.horizontal.stride - p.horizontal.pad);
          group.offsets[group.count] = ((d * p.output_height + h) * p.output_width + w) * p.channels;
          group.weights[group.count] = weight * row_windows.weight[h] * column_windows.weight[w];
          group.labels[group.count++] = static_cast<int32_t>(below * p.horizontal.kernel + right);
        }
      }
    }
    group.last = true;
    visit(group);
  }

 private:
  CREMA_INLINE static PooledLine LineOf(int64_t line, int64_t height) {
    if constexpr (kVolume) return {line / height, line % height};
    return {0, line};
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

#endif  // CREMA_OPS_POOLING_POOLING_CHANNELS_LAST_H_
