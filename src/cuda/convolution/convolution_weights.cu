#include "cuda/arrays/numbers.h"
#include "cuda/arrays/reduce.h"
#include "cuda/convolution/convolution_bias.h"
#include "cuda/convolution/convolution_weights.h"
#include "cuda/convolution/tile_product.h"

namespace crema::cuda {

namespace {

constexpr int kRows = 64, kColumns = 64, kDepth = 16;  // of a tile: outputs, channels, pixels
constexpr int kSide = kTileSide;
constexpr int kAcross = kColumns / kSide;         // threads
constexpr int kRun = static_cast<int>(kThreads);  // pixels whose places are looked up at once
static_assert(kRows / kSide * kAcross == kThreads && kRun % kDepth == 0);

// How the pixels of the batch are cut: part i is [i * size, (i + 1) * size).
struct Parts {
  bool tiles;
  int64_t count, size;
};

int64_t Pieces(int64_t n, int64_t of) { return (n + of - 1) / of; }

Parts PartsOf(const Queue& queue, const ConvolutionSizes& s) {
  constexpr int64_t kMostFloats = int64_t{1} << 25;  // of workspace
  const bool tiles = s.group_outputs >= kRows / 4 && s.group_channels >= kColumns / 4;
  const int64_t pixels = std::max<int64_t>(1, s.batch * s.destination.pixels);
  const int64_t blocks = tiles ? s.groups * s.taps * Pieces(s.group_outputs, kRows) * Pieces(s.group_channels, kColumns)
                               : Pieces(s.weights() * (s.source.channels_last ? 1 : 32), kThreads);
  const int64_t wanted = Pieces(int64_t{8} * queue.multiprocessors, blocks);
  const int64_t most = std::min<int64_t>({Pieces(pixels, kRun), kMostFloats / s.weights(), 65535});
  const int64_t size = Pieces(Pieces(pixels, std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, most))), kRun) * kRun;
  return {tiles, Pieces(pixels, size), size};
}

// One block a tile of one tap's weights and a part of the pixels.
template <typename Number>
__global__ void __launch_bounds__(kThreads)
    SumTiles(ConvolutionSizes s, int64_t part_size, const Number* source, const Number* arriving, float* sums) {
  alignas(16) __shared__ float left[kDepth][kRows + 4];
  alignas(16) __shared__ float right[kDepth][kColumns + 4];
  // Of the first channel of the group; the source's is -1 in the padding.
  __shared__ int64_t source_places[kRun], destination_places[kRun];
  const int thread = static_cast<int>(threadIdx.x);
  const int row_part = thread / kAcross, column_part = thread % kAcross;
  const int64_t column_tiles = (s.group_channels + kColumns - 1) / kColumns;
  const int64_t first_row = blockIdx.x / column_tiles * kRows, first_column = blockIdx.x % column_tiles * kColumns;
  const int64_t pixels = s.batch * s.destination.pixels;
  const int64_t begin = blockIdx.y * part_size, end = begin + part_size < pixels ? begin + part_size : pixels;
  const int64_t source_stride = s.source.channel_stride(), destination_stride = s.destination.channel_stride();
  float* const part = sums + blockIdx.y * s.weights();

  for (int64_t z = blockIdx.z; z < s.groups * s.taps; z += gridDim.z) {
    const int64_t group = z / s.taps;
    const int32_t tap = static_cast<int32_t>(z % s.taps);
    float total[kSide][kSide] = {};
    for (int64_t run = begin; run < end; run += kRun) {
      int64_t source_place = -1, destination_place = 0;
      if (run + thread < end) {
        const int64_t image = (run + thread) / s.destination.pixels;
        const int32_t pixel = static_cast<int32_t>((run + thread) % s.destination.pixels);
        const int32_t under = s.geometry.SourcePixel(pixel, tap);
        destination_place = s.destination.Pixel(image, pixel) + group * s.group_outputs * destination_stride;
        if (under >= 0) source_place = s.source.Pixel(image, under) + group * s.group_channels * source_stride;
      }
      source_places[thread] = source_place;
      destination_places[thread] = destination_place;
      __syncthreads();
      for (int first = 0; first < kRun && run + first < end; first += kDepth) {
        for (int e = thread; e < kDepth * kRows; e += kThreads) {
          const int row = s.source.channels_last ? e % kRows : e / kDepth;
          const int k = s.source.channels_last ? e / kRows : e % kDepth;
          // Where the source is padding, nothing is added.
          const bool inside = source_places[first + k] >= 0 && first_row + row < s.group_outputs;
          left[k][row] =
              inside
                  ? static_cast<float>(arriving[destination_places[first + k] + (first_row + row) * destination_stride])
                  : 0.0f;
        }
        for (int e = thread; e < kDepth * kColumns; e += kThreads) {
          const int column = s.source.channels_last ? e % kColumns : e / kDepth;
          const int k = s.source.channels_last ? e / kColumns : e % kDepth;
          const int64_t place = source_places[first + k];
          const bool inside = place >= 0 && first_column + column < s.group_channels;
          right[k][column] =
              inside ? static_cast<float>(source[place + (first_column + column) * source_stride]) : 0.0f;
        }
        __syncthreads();
        AddTileProduct(left, right, row_part * kSide, column_part * kSide, total);
        __syncthreads();
      }
    }
    CREMA_UNROLL
    for (int r = 0; r < kSide; ++r) {
      CREMA_UNROLL
      for (int c = 0; c < kSide; ++c) {
        const int64_t row = first_row + row_part * kSide + r, column = first_column + column_part * kSide + c;
        if (row >= s.group_outputs || column >= s.group_channels) continue;
        part[((group * s.group_outputs + row) * s.group_channels + column) * s.taps + tap] = total[r][c];
      }
    }
  }
}

// kLanes threads a weight and part of the pixels: for groups so narrow that tiles would be mostly empty. With channels
// last neighbouring threads have neighbouring outputs (kLanes 1), else neighbouring pixels (kLanes 32).
template <int kLanes, typename Number>
__global__ void SumSingly(ConvolutionSizes s, int64_t part_size, const Number* source, const Number* arriving,
                          float* sums) {
  const int64_t outputs = s.groups * s.group_outputs;
  const int64_t pixels = s.batch * s.destination.pixels;
  const int64_t begin = blockIdx.y * part_size, end = begin + part_size < pixels ? begin + part_size : pixels;
  const int64_t stride = int64_t{gridDim.x} * (blockDim.x / kLanes);
  const int lane = static_cast<int>(threadIdx.x % kLanes);
  for (int64_t i = int64_t{blockIdx.x} * (blockDim.x / kLanes) + threadIdx.x / kLanes; i < s.weights(); i += stride) {
    const int64_t output = i % outputs, within = i / outputs;
    const int64_t channel = within % s.group_channels;
    const int32_t tap = static_cast<int32_t>(within / s.group_channels);
    const int64_t output_offset = output * s.destination.channel_stride();
    const int64_t channel_offset = (output / s.group_outputs * s.group_channels + channel) * s.source.channel_stride();
    float total = 0;
    for (int64_t p = begin + lane; p < end; p += kLanes) {
      const int64_t image = p / s.destination.pixels;
      const int32_t pixel = static_cast<int32_t>(p % s.destination.pixels);
      const int32_t under = s.geometry.SourcePixel(pixel, tap);
      if (under < 0) continue;
      total += static_cast<float>(arriving[s.destination.Pixel(image, pixel) + output_offset]) *
               static_cast<float>(source[s.source.Pixel(image, under) + channel_offset]);
    }
    if constexpr (kLanes == 32) total = SumWarp(total);
    if (lane == 0) sums[blockIdx.y * s.weights() + (output * s.group_channels + channel) * s.taps + tap] = total;
  }
}

}  // namespace

size_t WeightsGradientWorkspace(const Queue& queue, const ConvolutionSizes& sizes) {
  const Parts parts = PartsOf(queue, sizes);
  return parts.count > 1 ? static_cast<size_t>(parts.count * sizes.weights()) * sizeof(float) : 0;
}

void WeightsGradient(const Queue& queue, const ConvolutionSizes& s, DType dtype, const void* source,
                     const void* destination_gradient, float* gradient, std::byte* workspace) {
  const Parts parts = PartsOf(queue, s);
  float* const sums = parts.count > 1 ? reinterpret_cast<float*>(workspace) : gradient;
  const unsigned count = static_cast<unsigned>(parts.count);
  WithNumber(dtype, [&]<typename Number>(Number*) {
    const Number* const from = static_cast<const Number*>(source);
    const Number* const arriving = static_cast<const Number*>(destination_gradient);
    if (parts.tiles) {
      const int64_t tiles = Pieces(s.group_outputs, kRows) * Pieces(s.group_channels, kColumns);
      const int64_t products = std::min<int64_t>(s.groups * s.taps, 65535);
      Launch(queue, dim3(static_cast<unsigned>(tiles), count, static_cast<unsigned>(products)), kThreads,
             SumTiles<Number>, s, parts.size, from, arriving, sums);
    } else if (s.source.channels_last) {
      Launch(queue, dim3(BlocksFor(queue, s.weights()), count), kThreads, SumSingly<1, Number>, s, parts.size, from,
             arriving, sums);
    } else {
      Launch(queue, dim3(BlocksFor(queue, s.weights() * 32), count), kThreads, SumSingly<32, Number>, s, parts.size,
             from, arriving, sums);
    }
  });
  if (parts.count > 1) SumParts(queue, parts.count, s.weights(), sums, gradient);
}

}  // namespace crema::cuda
