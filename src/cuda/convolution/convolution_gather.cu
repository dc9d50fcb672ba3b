#include "cuda/activations/activation.h"
#include "cuda/arrays/numbers.h"
#include "cuda/convolution/convolution_gather.h"
#include "cuda/convolution/tile_product.h"

namespace crema::cuda {

namespace {

// result[row][column] = the sum over taps t and k of from[pixel of the row under t][k] * weights[column, k, t], in
// every group. Rows are pixels of the whole batch, columns and k channels.
struct Gather {
  ConvolutionGeometry geometry;
  bool forward;  // else rows are the source's pixels
  int64_t rows, groups, columns, depth;
  int32_t taps;
  ImageLayout from, to;
  int64_t column_stride, depth_stride, group_stride;  // of weights
  const float* weights;
  GatherEnd end;

  __device__ int32_t PixelUnder(int32_t pixel, int32_t tap) const {
    return forward ? geometry.SourcePixel(pixel, tap) : geometry.DestinationPixel(pixel, tap);
  }
};

template <typename Number>
__device__ void Finish(const GatherEnd& end, float value, int64_t channel, Number* at) {
  if (end.bias) value += end.bias[channel];
  if (end.sum) value += static_cast<float>(*at);
  *at = Number(Activated(end.activation, value));
}

// One thread a result: for groups so narrow that tiles would be mostly empty.
template <typename Number>
__global__ void GatherSingly(Gather g, const Number* from, Number* to) {
  const int64_t count = g.rows * g.to.channels, stride = int64_t{gridDim.x} * blockDim.x;
  const int64_t from_stride = g.from.channel_stride();
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    const int64_t inner = g.to.channels_last ? g.to.channels : g.to.pixels;
    const int64_t outer = i / inner, within = i % inner;
    const int64_t channel = g.to.channels_last ? within : outer % g.to.channels;
    const int64_t image = g.to.channels_last ? outer / g.to.pixels : outer / g.to.channels;
    const int32_t pixel = static_cast<int32_t>(g.to.channels_last ? outer % g.to.pixels : within);
    const int64_t group = channel / g.columns;
    const float* const weights = g.weights + group * g.group_stride + channel % g.columns * g.column_stride;
    float total = 0;
    for (int32_t tap = 0; tap < g.taps; ++tap) {
      const int32_t under = g.PixelUnder(pixel, tap);
      if (under < 0) continue;
      const Number* const values = from + g.from.Pixel(image, under) + group * g.depth * from_stride;
      for (int64_t k = 0; k < g.depth; ++k) {
        total += static_cast<float>(values[k * from_stride]) * weights[k * g.depth_stride + tap];
      }
    }
    Finish(g.end, total, channel, to + i);
  }
}

constexpr int kRows = 64, kColumns = 64, kDepth = 16;  // of a tile
constexpr int kSide = kTileSide;
constexpr int kAcross = kColumns / kSide;  // threads
static_assert(kRows / kSide * kAcross == kThreads && kRows <= static_cast<int>(kThreads));

// One block a tile of rows and columns; it walks over taps and depth through shared memory.
template <typename Number>
__global__ void __launch_bounds__(kThreads) GatherTiles(Gather g, const Number* from, Number* to) {
  // Rows of four more than needed: threads that write down a column then meet fewer of the same banks.
  alignas(16) __shared__ float left[kDepth][kRows + 4];
  alignas(16) __shared__ float right[kDepth][kColumns + 4];
  __shared__ int64_t places[kRows];  // in `from`, of the rows under the tap; -1: no pixel
  const int thread = static_cast<int>(threadIdx.x);
  // Neighbouring threads store neighbouring results.
  const int row_part = g.to.channels_last ? thread / kAcross : thread % kAcross;
  const int column_part = g.to.channels_last ? thread % kAcross : thread / kAcross;
  const int64_t first_row = int64_t{blockIdx.x} * kRows, first_column = int64_t{blockIdx.y} * kColumns;
  const int64_t own_row = first_row + thread;
  const int64_t from_stride = g.from.channel_stride(), to_stride = g.to.channel_stride();
  const bool weights_along_depth = g.depth_stride < g.column_stride;

  for (int64_t group = blockIdx.z; group < g.groups; group += gridDim.z) {
    float total[kSide][kSide] = {};
    for (int32_t tap = 0; tap < g.taps; ++tap) {
      if (thread < kRows) {
        int64_t place = -1;
        if (own_row < g.rows) {
          const int64_t image = own_row / g.to.pixels;
          const int32_t under = g.PixelUnder(static_cast<int32_t>(own_row % g.to.pixels), tap);
          if (under >= 0) place = g.from.Pixel(image, under) + group * g.depth * from_stride;
        }
        places[thread] = place;
      }
      __syncthreads();
      const float* const weights = g.weights + group * g.group_stride + tap;
      for (int64_t first_k = 0; first_k < g.depth; first_k += kDepth) {
        for (int e = thread; e < kDepth * kRows; e += kThreads) {
          const int row = g.from.channels_last ? e / kDepth : e % kRows;
          const int k = g.from.channels_last ? e % kDepth : e / kRows;
          const int64_t place = places[row];
          const bool inside = place >= 0 && first_k + k < g.depth;
          left[k][row] = inside ? static_cast<float>(from[place + (first_k + k) * from_stride]) : 0.0f;
        }
        for (int e = thread; e < kDepth * kColumns; e += kThreads) {
          const int column = weights_along_depth ? e / kDepth : e % kColumns;
          const int k = weights_along_depth ? e % kDepth : e / kColumns;
          const bool inside = first_column + column < g.columns && first_k + k < g.depth;
          right[k][column] =
              inside ? weights[(first_column + column) * g.column_stride + (first_k + k) * g.depth_stride] : 0.0f;
        }
        __syncthreads();
        AddTileProduct(left, right, row_part * kSide, column_part * kSide, total);
        __syncthreads();
      }
    }
    CREMA_UNROLL
    for (int c = 0; c < kSide; ++c) {
      const int64_t column = first_column + column_part * kSide + c;
      CREMA_UNROLL
      for (int r = 0; r < kSide; ++r) {
        const int64_t row = first_row + row_part * kSide + r;
        if (row >= g.rows || column >= g.columns) continue;
        const int64_t channel = group * g.columns + column;
        const int64_t at = g.to.Pixel(row / g.to.pixels, row % g.to.pixels) + channel * to_stride;
        Finish(g.end, total[r][c], channel, to + at);
      }
    }
  }
}

void Run(const Queue& queue, const Gather& g, DType dtype, const void* from, void* to) {
  if (g.rows * g.to.channels == 0) return;
  const bool tiles = g.columns >= kColumns / 4 && g.depth >= kDepth / 2;
  WithNumber(dtype, [&]<typename Number>(Number*) {
    const Number* const source = static_cast<const Number*>(from);
    Number* const result = static_cast<Number*>(to);
    if (!tiles) {
      Launch(queue, BlocksFor(queue, g.rows * g.to.channels), kThreads, GatherSingly<Number>, g, source, result);
      return;
    }
    const auto pieces = [](int64_t n, int64_t of) { return static_cast<unsigned>((n + of - 1) / of); };
    const dim3 grid(pieces(g.rows, kRows), pieces(g.columns, kColumns),
                    static_cast<unsigned>(std::min<int64_t>(g.groups, 65535)));
    Launch(queue, grid, kThreads, GatherTiles<Number>, g, source, result);
  });
}

}  // namespace

void GatherForward(const Queue& queue, const ConvolutionSizes& s, DType dtype, const void* source, const float* weights,
                   const GatherEnd& end, void* destination) {
  const int64_t of_output = s.group_channels * s.taps;
  Run(queue,
      {s.geometry, true, s.batch * s.destination.pixels, s.groups, s.group_outputs, s.group_channels, s.taps, s.source,
       s.destination, of_output, s.taps, s.group_outputs * of_output, weights, end},
      dtype, source, destination);
}

void GatherSourceGradient(const Queue& queue, const ConvolutionSizes& s, DType dtype, const void* destination_gradient,
                          const float* weights, void* source_gradient) {
  const int64_t of_output = s.group_channels * s.taps;
  Run(queue,
      {s.geometry,
       false,
       s.batch * s.source.pixels,
       s.groups,
       s.group_channels,
       s.group_outputs,
       s.taps,
       s.destination,
       s.source,
       s.taps,
       of_output,
       s.group_outputs * of_output,
       weights,
       {}},
      dtype, destination_gradient, source_gradient);
}

}  // namespace crema::cuda
