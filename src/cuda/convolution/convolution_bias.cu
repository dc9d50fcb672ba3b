#include "cuda/activations/activation.h"
#include "cuda/arrays/lanes.h"
#include "cuda/arrays/numbers.h"
#include "cuda/arrays/reduce.h"
#include "cuda/convolution/convolution_bias.h"

namespace crema::cuda {

namespace {

constexpr int kAcross = 32, kDown = 8;  // threads of a block over channels and pixels

int64_t Pieces(int64_t n, int64_t of) { return (n + of - 1) / of; }

struct Parts {
  int64_t count, size;  // of pixels (channels last) or of images
};
Parts PartsOf(const Queue& queue, const ImageLayout& layout, int64_t batch) {
  const int64_t n = std::max<int64_t>(1, layout.channels_last ? batch * layout.pixels : batch);
  const int64_t blocks = layout.channels_last ? Pieces(layout.channels, kAcross) : layout.channels;
  const int64_t least = layout.channels_last ? 16 * kDown : 1;
  const int64_t wanted = std::clamp<int64_t>(Pieces(int64_t{8} * queue.multiprocessors, blocks), 1, 65535);
  const int64_t size = std::max(least, Pieces(n, wanted));
  return {Pieces(n, size), size};
}

// One block 32 channels of a part of the pixels.
template <typename Number>
__global__ void SumColumns(int64_t rows, int64_t channels, int64_t part_size, const Number* x, float* sums) {
  __shared__ float of_row[kDown][kAcross];
  const int64_t channel = int64_t{blockIdx.x} * kAcross + threadIdx.x;
  const int64_t begin = blockIdx.y * part_size, end = begin + part_size < rows ? begin + part_size : rows;
  float total = 0;
  if (channel < channels) {
    for (int64_t row = begin + threadIdx.y; row < end; row += kDown) {
      total += static_cast<float>(x[row * channels + channel]);
    }
  }
  of_row[threadIdx.y][threadIdx.x] = total;
  __syncthreads();
  if (threadIdx.y > 0 || channel >= channels) return;
  for (int i = 1; i < kDown; ++i) total += of_row[i][threadIdx.x];
  sums[blockIdx.y * channels + channel] = total;
}

// One block a channel of a part of the images.
template <typename Number>
__global__ void SumPlanes(int64_t batch, int64_t channels, int64_t pixels, int64_t part_size, const Number* x,
                          float* sums) {
  const int64_t begin = blockIdx.y * part_size, end = begin + part_size < batch ? begin + part_size : batch;
  float total = 0;
  for (int64_t image = begin; image < end; ++image) {
    const Number* const plane = x + (image * channels + blockIdx.x) * pixels;
    for (int64_t p = threadIdx.x; p < pixels; p += blockDim.x) total += static_cast<float>(plane[p]);
  }
  total = SumBlock(total);
  if (threadIdx.x == 0) sums[blockIdx.y * channels + blockIdx.x] = total;
}

template <typename Number>
struct FinishNumbers {
  int64_t channels, inner;  // neighbours that share a channel
  GatherEnd end;
  const Number* from;
  Number* to;

  __device__ Number Of(int64_t i, Number product, Number held) const {
    float value = static_cast<float>(product);
    if (end.bias) {
      int64_t row = i;
      SplitOff(&row, inner);
      value += end.bias[SplitOff(&row, channels)];
    }
    if (end.sum) value += static_cast<float>(held);
    return Number(Activated(end.activation, value));
  }
};

template <typename Number>
struct FinishPacks {
  FinishNumbers<Number> of;
  __device__ void operator()(int64_t pack) const {
    constexpr int kWidth = Pack<Number>::kWidth;
    Pack<Number>* const at = reinterpret_cast<Pack<Number>*>(of.to) + pack;
    Pack<Number> values = reinterpret_cast<const Pack<Number>*>(of.from)[pack], held = values;
    if (of.end.sum) held = *at;
    for (int k = 0; k < kWidth; ++k) {
      values.values[k] = of.Of(pack * kWidth + k, values.values[k], held.values[k]);
    }
    *at = values;
  }
};

template <typename Number>
struct FinishEach {
  FinishNumbers<Number> of;
  __device__ void operator()(int64_t i) const { of.to[i] = of.Of(i, of.from[i], of.to[i]); }
};

struct SumOfParts {
  int64_t parts, n;
  const float* sums;
  float* result;
  __device__ void operator()(int64_t i) const {
    float total = 0;
    for (int64_t part = 0; part < parts; ++part) total += sums[part * n + i];
    result[i] = total;
  }
};

}  // namespace

void SumParts(const Queue& queue, int64_t parts, int64_t n, const float* sums, float* result) {
  ForEach(queue, n, SumOfParts{parts, n, sums, result});
}

void FinishImages(const Queue& queue, const ImageLayout& layout, int64_t batch, DType dtype, const GatherEnd& end,
                  const void* product, void* destination) {
  const int64_t count = batch * layout.channels * layout.pixels;
  WithNumber(dtype, [&]<typename Number>(Number*) {
    constexpr int kWidth = Pack<Number>::kWidth;
    const FinishNumbers<Number> finish{layout.channels, layout.channel_stride(), end,
                                       static_cast<const Number*>(product), static_cast<Number*>(destination)};
    if (count % kWidth == 0 && IsPackAligned(product) && IsPackAligned(destination)) {
      ForEach(queue, count / kWidth, FinishPacks<Number>{finish});
    } else {
      ForEach(queue, count, FinishEach<Number>{finish});
    }
  });
}

size_t BiasGradientWorkspace(const Queue& queue, const ImageLayout& layout, int64_t batch) {
  const Parts parts = PartsOf(queue, layout, batch);
  return parts.count > 1 ? static_cast<size_t>(parts.count * layout.channels) * sizeof(float) : 0;
}

void BiasGradient(const Queue& queue, const ImageLayout& layout, int64_t batch, DType dtype,
                  const void* destination_gradient, float* gradient, std::byte* workspace) {
  const Parts parts = PartsOf(queue, layout, batch);
  float* const sums = parts.count > 1 ? reinterpret_cast<float*>(workspace) : gradient;
  const unsigned count = static_cast<unsigned>(parts.count);
  WithNumber(dtype, [&]<typename Number>(Number*) {
    const Number* const x = static_cast<const Number*>(destination_gradient);
    if (layout.channels_last) {
      const dim3 grid(static_cast<unsigned>(Pieces(layout.channels, kAcross)), count);
      Launch(queue, grid, dim3(kAcross, kDown), SumColumns<Number>, batch * layout.pixels, layout.channels, parts.size,
             x, sums);
    } else {
      const dim3 grid(static_cast<unsigned>(layout.channels), count);
      Launch(queue, grid, kThreads, SumPlanes<Number>, batch, layout.channels, layout.pixels, parts.size, x, sums);
    }
  });
  if (parts.count > 1) SumParts(queue, parts.count, layout.channels, sums, gradient);
}

}  // namespace crema::cuda
