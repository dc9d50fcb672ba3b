// Sorts keys in GPU memory, group by group. For sources that hold kernels.
#ifndef CREMA_CUDA_ARRAYS_RADIX_SORT_H_
#define CREMA_CUDA_ARRAYS_RADIX_SORT_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "cuda/device/launch.h"

namespace crema::cuda {

// Keys, group by group, and a number beside each.
template <typename Key>
struct SortedKeys {
  Key* keys;
  int32_t* items;
};

namespace radix_sort {

inline constexpr int kDigitBits = 4;
inline constexpr int kDigits = 1 << kDigitBits;
inline constexpr int kItems = 16;  // neighbors that a thread has
inline constexpr int64_t kTile = int64_t{kThreads} * kItems;

inline int64_t TilesOf(int64_t items) { return (items + kTile - 1) / kTile; }

// The sum of the values of the threads before; all threads of the block must call.
__device__ inline int32_t SumBefore(int32_t value, int32_t* total) {
  __shared__ int32_t sums[kThreads];
  __syncthreads();  // `sums` may still be read from a call before
  sums[threadIdx.x] = value;
  __syncthreads();
  for (unsigned distance = 1; distance < kThreads; distance *= 2) {
    const int32_t before = threadIdx.x >= distance ? sums[threadIdx.x - distance] : 0;
    __syncthreads();
    sums[threadIdx.x] += before;
    __syncthreads();
  }
  *total = sums[kThreads - 1];
  return sums[threadIdx.x] - value;
}

// Turns numbers into the sums of those before, by one block; returns the sum of all.
__device__ inline int32_t SumUp(int64_t count, int32_t* numbers) {
  int32_t sum = 0;
  for (int64_t first = 0; first < count; first += kThreads) {
    const int64_t i = first + threadIdx.x;
    int32_t total = 0;
    const int32_t before = SumBefore(i < count ? numbers[i] : 0, &total);
    if (i < count) numbers[i] = sum + before;
    sum += total;
  }
  return sum;
}

// A tile of a group, whose items are sorted by a digit.
struct Tile {
  int64_t group, tile, begin, end;

  __device__ Tile(int64_t items, int64_t tiles)
      : group(blockIdx.x / tiles), tile(blockIdx.x % tiles), begin(group * items + tile * kTile), end(begin + kTile) {
    const int64_t last = (group + 1) * items;
    end = end < last ? end : last;
  }
};

template <typename Key>
__device__ int DigitOf(Key key, int shift) {
  return static_cast<int>(key >> shift & (kDigits - 1));
}

// A block for each tile.
template <typename Key>
__global__ void __launch_bounds__(kThreads)
    CountDigits(int64_t items, int64_t tiles, int shift, const Key* keys, int32_t* counts) {
  __shared__ int32_t of_tile[kDigits];
  const Tile t(items, tiles);
  if (threadIdx.x < kDigits) of_tile[threadIdx.x] = 0;
  __syncthreads();
  for (int64_t i = t.begin + threadIdx.x; i < t.end; i += kThreads) atomicAdd(&of_tile[DigitOf(keys[i], shift)], 1);
  __syncthreads();
  if (threadIdx.x < kDigits) counts[(t.group * kDigits + threadIdx.x) * tiles + t.tile] = of_tile[threadIdx.x];
}

// A block for each group.
template <typename Key>
__global__ void __launch_bounds__(kThreads) SumUpGroups(int64_t count, int32_t* counts) {
  SumUp(count, counts + blockIdx.x * count);
}

// A block for each tile.
template <typename Key>
__global__ void __launch_bounds__(kThreads) MoveByDigit(int64_t items, int64_t tiles, int shift, SortedKeys<Key> from,
                                                        const int32_t* counts, SortedKeys<Key> to) {
  __shared__ int32_t next[kDigits * kThreads];  // of each digit: where the next item of each thread goes, in the tile
  __shared__ int32_t first[kDigits];            // of the tile, of each digit
  const Tile t(items, tiles);
  const int64_t begin = t.begin + int64_t{threadIdx.x} * kItems;
  const int64_t end = begin + kItems < t.end ? begin + kItems : t.end;
  for (int digit = 0; digit < kDigits; ++digit) next[digit * kThreads + threadIdx.x] = 0;
  for (int64_t i = begin; i < end; ++i) ++next[DigitOf(from.keys[i], shift) * kThreads + threadIdx.x];
  __syncthreads();
  // Every thread sums up kDigits neighbors of `next`.
  int32_t* const own = next + threadIdx.x * kDigits;
  int32_t sum = 0, total = 0;
  for (int i = 0; i < kDigits; ++i) {
    const int32_t count = own[i];
    own[i] = sum;
    sum += count;
  }
  const int32_t before = SumBefore(sum, &total);
  for (int i = 0; i < kDigits; ++i) own[i] += before;
  __syncthreads();
  if (threadIdx.x < kDigits) first[threadIdx.x] = next[threadIdx.x * kThreads];
  __syncthreads();
  for (int64_t i = begin; i < end; ++i) {
    const Key key = from.keys[i];
    const int digit = DigitOf(key, shift);
    const int32_t in_digit = next[digit * kThreads + threadIdx.x]++ - first[digit];
    const int64_t at = t.group * items + counts[(t.group * kDigits + digit) * tiles + t.tile] + in_digit;
    to.keys[at] = key;
    to.items[at] = from.items[i];
  }
}

template <typename Number>
Number* Take(int64_t count, std::byte** memory) {
  auto* const numbers = reinterpret_cast<Number*>(*memory);
  *memory += static_cast<size_t>(count) * sizeof(Number);
  return numbers;
}

}  // namespace radix_sort

// Sorts `items` keys of each group by their lowest `bits`. Stable, so that the numbers beside equal keys stay in order.
// Key: of unsigned whole numbers.
template <typename Key>
class RadixSort {
 public:
  // Takes its memory, aligned for keys.
  RadixSort(int64_t groups, int64_t items, int bits, std::byte** memory)
      : groups_(groups), items_(items), passes_((bits + radix_sort::kDigitBits - 1) / radix_sort::kDigitBits) {
    for (SortedKeys<Key>& buffer : buffers_) buffer.keys = radix_sort::Take<Key>(groups * items, memory);
    for (SortedKeys<Key>& buffer : buffers_) buffer.items = radix_sort::Take<int32_t>(groups * items, memory);
    counts_ = radix_sort::Take<int32_t>(groups * radix_sort::kDigits * radix_sort::TilesOf(items), memory);
  }
  static size_t Bytes(int64_t groups, int64_t items) {
    return static_cast<size_t>(2 * groups * items) * (sizeof(Key) + sizeof(int32_t)) +
           static_cast<size_t>(groups * radix_sort::kDigits * radix_sort::TilesOf(items)) * sizeof(int32_t);
  }

  // What Run sorts: to be written before.
  const SortedKeys<Key>& unsorted() const { return buffers_[0]; }
  void Run(const Queue& queue) const {
    const int64_t tiles = radix_sort::TilesOf(items_);
    const auto blocks = static_cast<unsigned>(tiles * groups_);
    for (int pass = 0; pass < passes_; ++pass) {
      const SortedKeys<Key>&from = buffers_[pass % 2], &to = buffers_[1 - pass % 2];
      const int shift = pass * radix_sort::kDigitBits;
      Launch(queue, blocks, kThreads, radix_sort::CountDigits<Key>, items_, tiles, shift, from.keys, counts_);
      Launch(queue, static_cast<unsigned>(groups_), kThreads, radix_sort::SumUpGroups<Key>, radix_sort::kDigits * tiles,
             counts_);
      Launch(queue, blocks, kThreads, radix_sort::MoveByDigit<Key>, items_, tiles, shift, from, counts_, to);
    }
  }
  // After that: the result, and as much memory again.
  const SortedKeys<Key>& sorted() const { return buffers_[passes_ % 2]; }
  const SortedKeys<Key>& spare() const { return buffers_[1 - passes_ % 2]; }

 private:
  int64_t groups_, items_;
  int passes_;
  SortedKeys<Key> buffers_[2];
  int32_t* counts_;  // groups x digits x tiles
};

}  // namespace crema::cuda

#endif  // CREMA_CUDA_ARRAYS_RADIX_SORT_H_
