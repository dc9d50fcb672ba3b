#include "cuda/arrays/reduce.h"
#include "cuda/mean_field/permutohedral_sort.h"

namespace crema::cuda {

namespace {

using permutohedral::Key;
using permutohedral::View;
using radix_sort::kItems;
using radix_sort::kTile;
using radix_sort::SumBefore;
using radix_sort::SumUp;
using radix_sort::Take;
using radix_sort::TilesOf;

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
    NumberVertices(View lattice, SortedKeys<Key> sorted, const int32_t* heads, int64_t* begin_of, Key* of_vertices) {
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
    const int32_t point = sorted.items[i];
    const int64_t of_point = int64_t{point} * lattice.groups() + group;
    lattice.vertex_of[of_point] = static_cast<int32_t>(vertex);
    lattice.from_point[i] = point;
    lattice.from_weight[i] = lattice.weight_of[of_point];
  }
}

}  // namespace

KeySort::KeySort(const View& lattice, std::byte* workspace) : KeySort(lattice, &workspace) {}

KeySort::KeySort(const View& lattice, std::byte** memory)
    : lattice_(lattice),
      begin_of_(Take<int64_t>(lattice.groups() + 1, memory)),
      sort_(lattice.groups(), lattice.points, permutohedral::kKeyBits, memory),
      heads_(Take<int32_t>(TilesOf(lattice.most()), memory)) {}

size_t KeySort::Bytes(int dimensions, int64_t points) {
  const int64_t groups = dimensions + 1;
  return static_cast<size_t>(groups + 1) * sizeof(int64_t) + RadixSort<Key>::Bytes(groups, points) +
         static_cast<size_t>(TilesOf(points * groups)) * sizeof(int32_t);
}

void KeySort::Run(const Queue& queue) const {
  sort_.Run(queue);
  const int64_t all_tiles = TilesOf(lattice_.most());
  const SortedKeys<Key>& sorted = sort_.sorted();
  Key* const of_vertices = sort_.spare().keys;
  Launch(queue, static_cast<unsigned>(all_tiles), kThreads, CountHeads, lattice_, sorted.keys, heads_);
  Launch(queue, 1, kThreads, SumUpHeads, lattice_, all_tiles, heads_, begin_of_);
  Launch(queue, static_cast<unsigned>(all_tiles), kThreads, NumberVertices, lattice_, sorted, heads_, begin_of_,
         of_vertices);
}

}  // namespace crema::cuda
