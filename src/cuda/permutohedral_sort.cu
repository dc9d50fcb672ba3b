#include "cuda/permutohedral_sort.h"
#include "cuda/reduce.h"

namespace crema::cuda {

namespace {

using permutohedral::Key;
using permutohedral::View;

constexpr int kDigits = 16;
constexpr int kItems = 16;  // neighbors that a thread has
constexpr int64_t kTile = int64_t{kThreads} * kItems;

int64_t TilesOf(int64_t items) { return (items + kTile - 1) / kTile; }

// The sum of the values of the threads before; all threads of the block must call.
__device__ int32_t SumBefore(int32_t value, int32_t* total) {
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
__device__ int32_t SumUp(int64_t count, int32_t* numbers) {
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

// A tile of a group, whose points are sorted by a digit.
struct Tile {
  int64_t group, tile, begin, end;

  __device__ Tile(int64_t points, int64_t tiles)
      : group(blockIdx.x / tiles), tile(blockIdx.x % tiles), begin(group * points + tile * kTile), end(begin + kTile) {
    const int64_t last = (group + 1) * points;
    end = end < last ? end : last;
  }
};

__device__ int DigitOf(Key key, int shift) { return static_cast<int>(key >> shift & (kDigits - 1)); }

// A block for each tile.
__global__ void __launch_bounds__(kThreads)
    CountDigits(int64_t points, int64_t tiles, int shift, const Key* keys, int32_t* counts) {
  __shared__ int32_t of_tile[kDigits];
  const Tile t(points, tiles);
  if (threadIdx.x < kDigits) of_tile[threadIdx.x] = 0;
  __syncthreads();
  for (int64_t i = t.begin + threadIdx.x; i < t.end; i += kThreads) atomicAdd(&of_tile[DigitOf(keys[i], shift)], 1);
  __syncthreads();
  if (threadIdx.x < kDigits) counts[(t.group * kDigits + threadIdx.x) * tiles + t.tile] = of_tile[threadIdx.x];
}

// A block for each group.
__global__ void __launch_bounds__(kThreads) SumUpGroups(int64_t count, int32_t* counts) {
  SumUp(count, counts + blockIdx.x * count);
}

// A block for each tile.
__global__ void __launch_bounds__(kThreads)
    MoveByDigit(int64_t points, int64_t tiles, int shift, SortedKeys from, const int32_t* counts, SortedKeys to) {
  __shared__ int32_t next[kDigits * kThreads];  // of each digit: where the next item of each thread goes, in the tile
  __shared__ int32_t first[kDigits];            // of the tile, of each digit
  const Tile t(points, tiles);
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
    const int64_t at = t.group * points + counts[(t.group * kDigits + digit) * tiles + t.tile] + in_digit;
    to.keys[at] = key;
    to.points[at] = from.points[i];
  }
}

// Whether an item is the first one of its vertex.
__device__ bool IsHead(int64_t points, const Key* keys, int64_t i) { return i % points == 0 || keys[i] != keys[i - 1]; }

// A block for each tile of all groups.
__global__ void __launch_bounds__(kThreads) CountHeads(View lattice, const Key* keys, int32_t* heads) {
  const int64_t begin = blockIdx.x * kTile, end = begin + kTile < lattice.most() ? begin + kTile : lattice.most();
  int32_t count = 0;
  for (int64_t i = begin + threadIdx.x; i < end; i += kThreads) count += IsHead(lattice.points, keys, i) ? 1 : 0;
  count = SumBlock(count);
  if (threadIdx.x == 0) heads[blockIdx.x] = count;
}

// One block.
__global__ void __launch_bounds__(kThreads) SumUpHeads(View lattice, int64_t tiles, int32_t* heads, int64_t* begin_of) {
  const int32_t vertices = SumUp(tiles, heads);
  if (threadIdx.x != 0) return;
  *lattice.vertices = vertices;
  begin_of[lattice.groups()] = vertices;
  lattice.first[vertices] = static_cast<int32_t>(lattice.most());
}

// A block for each tile of all groups.
__global__ void __launch_bounds__(kThreads)
    NumberVertices(View lattice, SortedKeys sorted, const int32_t* heads, int64_t* begin_of, Key* of_vertices) {
  const int64_t begin = blockIdx.x * kTile + int64_t{threadIdx.x} * kItems;
  const int64_t end = begin + kItems < lattice.most() ? begin + kItems : lattice.most();
  int32_t count = 0, total = 0;
  for (int64_t i = begin; i < end; ++i) count += IsHead(lattice.points, sorted.keys, i) ? 1 : 0;
  int64_t vertex = int64_t{heads[blockIdx.x]} + SumBefore(count, &total) - 1;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t group = i / lattice.points;
    if (IsHead(lattice.points, sorted.keys, i)) {
      ++vertex;
      lattice.first[vertex] = static_cast<int32_t>(i);
      of_vertices[vertex] = sorted.keys[i];
      if (i % lattice.points == 0) begin_of[group] = vertex;
    }
    const int32_t point = sorted.points[i];
    const int64_t of_point = int64_t{point} * lattice.groups() + group;
    lattice.vertex_of[of_point] = static_cast<int32_t>(vertex);
    lattice.from_point[i] = point;
    lattice.from_weight[i] = lattice.weight_of[of_point];
  }
}

template <typename Number>
Number* Take(int64_t count, std::byte** memory) {
  auto* const numbers = reinterpret_cast<Number*>(*memory);
  *memory += static_cast<size_t>(count) * sizeof(Number);
  return numbers;
}

}  // namespace

KeySort::KeySort(const View& lattice, std::byte* memory) : lattice_(lattice) {
  begin_of_ = Take<int64_t>(lattice.groups() + 1, &memory);
  for (SortedKeys& buffer : buffers_) buffer.keys = Take<Key>(lattice.most(), &memory);
  for (SortedKeys& buffer : buffers_) buffer.points = Take<int32_t>(lattice.most(), &memory);
  counts_ = Take<int32_t>(lattice.groups() * kDigits * TilesOf(lattice.points), &memory);
  heads_ = Take<int32_t>(TilesOf(lattice.most()), &memory);
}

size_t KeySort::Bytes(int dimensions, int64_t points) {
  const int64_t groups = dimensions + 1, most = points * groups;
  const int64_t words = groups * kDigits * TilesOf(points) + TilesOf(most);
  return static_cast<size_t>(groups + 1) * sizeof(int64_t) + static_cast<size_t>(2 * most) * (sizeof(Key) + 4) +
         static_cast<size_t>(words) * sizeof(int32_t);
}

void KeySort::Run(const Queue& queue) const {
  static_assert(1 << kDigitBits == kDigits);
  const int64_t tiles = TilesOf(lattice_.points), all_tiles = TilesOf(lattice_.most());
  const auto blocks = static_cast<unsigned>(tiles * lattice_.groups());
  for (int pass = 0; pass < kPasses; ++pass) {
    const SortedKeys &from = buffers_[pass % 2], &to = buffers_[1 - pass % 2];
    const int shift = pass * kDigitBits;
    Launch(queue, blocks, kThreads, CountDigits, lattice_.points, tiles, shift, from.keys, counts_);
    Launch(queue, static_cast<unsigned>(lattice_.groups()), kThreads, SumUpGroups, kDigits * tiles, counts_);
    Launch(queue, blocks, kThreads, MoveByDigit, lattice_.points, tiles, shift, from, counts_, to);
  }
  const SortedKeys& sorted = buffers_[kPasses % 2];
  Key* const of_vertices = buffers_[1 - kPasses % 2].keys;
  Launch(queue, static_cast<unsigned>(all_tiles), kThreads, CountHeads, lattice_, sorted.keys, heads_);
  Launch(queue, 1, kThreads, SumUpHeads, lattice_, all_tiles, heads_, begin_of_);
  Launch(queue, static_cast<unsigned>(all_tiles), kThreads, NumberVertices, lattice_, sorted, heads_, begin_of_,
         of_vertices);
}

}  // namespace crema::cuda
