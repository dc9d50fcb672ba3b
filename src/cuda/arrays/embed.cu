#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "cuda/arrays/numbers.h"
#include "cuda/arrays/rows.h"
#include "cuda/device/faults.h"
#include "cuda/operations.h"
#include "ops/arrays/embed.h"

namespace crema::cuda {

namespace {

struct IsBadIndex {
  EmbedProblem problem;
  __device__ bool operator()(float index) const { return !IsRow(problem, index); }
};

__device__ float Plus(float a, float b) { return a + b; }
__device__ Pack<float> Plus(Pack<float> a, const Pack<float>& b) {
  for (int k = 0; k < Pack<float>::kWidth; ++k) a.values[k] += b.values[k];
  return a;
}

// Unit: float or a pack of them, of which a row has `units`.
template <typename Unit>
struct LookUp {
  EmbedProblem problem;
  int64_t units;
  const float* index;
  const Unit *table, *bias;
  Unit* y;

  struct Row {
    const Unit *from, *bias;
    Unit* to;
    __device__ void operator()(int64_t i) const { to[i] = bias ? Plus(from[i], bias[i]) : from[i]; }
  };
  __device__ Row operator()(int64_t i) const {
    // A bad index was reported; what follows it in this pass must only stay inside the table.
    const int64_t row = IsRow(problem, index[i]) ? static_cast<int64_t>(index[i]) : 0;
    return {table + row * units, bias, y + i * units};
  }
};

// Gradients of a row of the table are added in the order of their positions. So that nobody looks for them among all,
// what is looked up is sorted by row and position, by a network (Batcher, "Sorting networks and their applications",
// 1968): chunks of it in a block's shared memory, and longer distances in memory.
constexpr int kChunk = 4096;
constexpr unsigned kSortThreads = 1024;
constexpr uint64_t kNone = ~uint64_t{0};  // sorted behind all others

__device__ uint64_t KeyOf(const EmbedProblem& problem, const float* index, int64_t position) {
  if (position >= problem.indices || !IsRow(problem, index[position])) return kNone;
  return static_cast<uint64_t>(index[position]) << 32 | static_cast<uint64_t>(position);
}
__device__ uint32_t RowOf(uint64_t key) { return static_cast<uint32_t>(key >> 32); }
__device__ uint32_t PositionOf(uint64_t key) { return static_cast<uint32_t>(key); }

int64_t Keys(const EmbedProblem& problem) {
  int64_t keys = 2;
  while (keys < problem.indices) keys *= 2;
  return keys;
}

// Brings pair `pair` of all that are `distance` apart into the order that lets runs of `run` keys become sorted.
// keys: from number `first` on.
__device__ void OrderPair(uint64_t* keys, int64_t first, int64_t run, int64_t distance, int64_t pair) {
  const int64_t low = pair / distance * distance * 2 + pair % distance, high = low + distance;
  const bool rises = ((first + low) & run) == 0;
  const uint64_t a = keys[low], b = keys[high];
  if ((b < a) != rises) return;
  keys[low] = b;
  keys[high] = a;
}

// A block for each chunk: sorts it from the indices themselves, or, where run > 0, goes on with runs of that many keys
// once pairs of different chunks are in order.
__global__ void __launch_bounds__(kSortThreads)
    SortChunks(EmbedProblem problem, const float* index, int64_t run, int chunk, uint64_t* keys) {
  __shared__ uint64_t here[kChunk];
  const int64_t first = int64_t{blockIdx.x} * chunk;
  for (int i = threadIdx.x; i < chunk; i += blockDim.x) {
    here[i] = run > 0 ? keys[first + i] : KeyOf(problem, index, first + i);
  }
  __syncthreads();
  const int64_t last = run > 0 ? run : chunk;
  for (int64_t of = run > 0 ? run : 2; of <= last; of *= 2) {
    const int widest = of / 2 < chunk / 2 ? static_cast<int>(of / 2) : chunk / 2;
    for (int distance = widest; distance > 0; distance /= 2) {
      for (int pair = threadIdx.x; pair < chunk / 2; pair += blockDim.x) OrderPair(here, first, of, distance, pair);
      __syncthreads();
    }
  }
  for (int i = threadIdx.x; i < chunk; i += blockDim.x) keys[first + i] = here[i];
}

struct OrderPairs {
  int64_t run, distance;
  uint64_t* keys;
  __device__ void operator()(int64_t pair) const { OrderPair(keys, 0, run, distance, pair); }
};

// Whose gradients belong to a row: keys from `first` to before `end`.
struct Span {
  uint32_t first, end;
};

struct ClearSpan {
  Span* spans;
  __device__ void operator()(int64_t row) const { spans[row] = {0, 0}; }
};
struct MarkSpan {
  int64_t count;
  const uint64_t* keys;
  Span* spans;
  __device__ void operator()(int64_t i) const {
    const uint64_t key = keys[i];
    if (key == kNone) return;
    const uint32_t row = RowOf(key);
    if (i == 0 || RowOf(keys[i - 1]) != row) spans[row].first = static_cast<uint32_t>(i);
    if (i + 1 == count || RowOf(keys[i + 1]) != row) spans[row].end = static_cast<uint32_t>(i + 1);
  }
};

// A block has one row and as many units of it at a time as threads.
template <typename Unit>
__global__ void __launch_bounds__(kThreads)
    SumOfRow(int64_t rows, int64_t units, const uint64_t* keys, const Span* spans, const Unit* dy, Unit* gradient) {
  constexpr uint32_t kAtOnce = 8;  // gradients that are on their way at a time
  const int64_t step = int64_t{gridDim.y} * blockDim.x;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const Span span = spans[row];
    for (int64_t unit = int64_t{blockIdx.y} * blockDim.x + threadIdx.x; unit < units; unit += step) {
      Unit sum = {};
      for (uint32_t next = span.first; next < span.end; next += kAtOnce) {
        Unit read[kAtOnce] = {};
        CREMA_UNROLL
        for (uint32_t k = 0; k < kAtOnce; ++k) {
          if (next + k < span.end) read[k] = dy[PositionOf(keys[next + k]) * units + unit];
        }
        CREMA_UNROLL
        for (uint32_t k = 0; k < kAtOnce; ++k) {
          if (next + k < span.end) sum = Plus(sum, read[k]);
        }
      }
      gradient[row * units + unit] = sum;
    }
  }
}

template <typename Unit>
void SumRows(const Queue& queue, const EmbedProblem& problem, const uint64_t* keys, const Span* spans, const float* dy,
             float* gradient) {
  constexpr int64_t kMostPieces = 65535;  // CUDA's limit of a grid's second extent
  const int64_t units = problem.width / static_cast<int64_t>(sizeof(Unit) / sizeof(float));
  const int64_t rows = std::min<int64_t>(problem.rows, int64_t{1} << 30);
  const int64_t pieces = std::min((units + kThreads - 1) / kThreads, kMostPieces);
  const auto threads = static_cast<unsigned>(std::min<int64_t>((units + 31) / 32 * 32, kThreads));
  Launch(queue, dim3(static_cast<unsigned>(rows), static_cast<unsigned>(pieces)), threads, SumOfRow<Unit>, problem.rows,
         units, keys, spans, reinterpret_cast<const Unit*>(dy), reinterpret_cast<Unit*>(gradient));
}

void SortKeys(const Queue& queue, const EmbedProblem& problem, const float* index, uint64_t* keys) {
  const int64_t count = Keys(problem);
  const int chunk = static_cast<int>(std::min<int64_t>(count, kChunk));
  const auto blocks = static_cast<unsigned>(count / chunk);
  const unsigned threads = static_cast<unsigned>(std::clamp<int64_t>(chunk / 2, 32, kSortThreads));
  Launch(queue, blocks, threads, SortChunks, problem, index, int64_t{0}, chunk, keys);
  for (int64_t run = 2 * chunk; run <= count; run *= 2) {
    for (int64_t distance = run / 2; distance >= chunk; distance /= 2) {
      ForEach(queue, count / 2, OrderPairs{run, distance, keys});
    }
    Launch(queue, blocks, threads, SortChunks, problem, index, run, chunk, keys);
  }
}

}  // namespace

int64_t CudaOperations::FindBadIndex(const EmbedProblem& problem, const float* index) {
  ReportFirst(queue(), gpu_.state(), gpu_.unit(), problem.indices, index, IsBadIndex{problem});
  return -1;
}

void CudaOperations::EmbedForward(const EmbedProblem& problem, const float* index, const float* table,
                                  const float* bias, float* y) {
  if (problem.rows <= 0) return;  // every index was reported
  constexpr int64_t kWidth = Pack<float>::kWidth;
  const bool aligned = IsPackAligned(table) && IsPackAligned(bias) && IsPackAligned(y);
  if (problem.width % kWidth == 0 && aligned) {
    const int64_t units = problem.width / kWidth;
    ForEachInRows(queue(), problem.indices, units,
                  LookUp<Pack<float>>{problem, units, index, reinterpret_cast<const Pack<float>*>(table),
                                      reinterpret_cast<const Pack<float>*>(bias), reinterpret_cast<Pack<float>*>(y)});
  } else {
    ForEachInRows(queue(), problem.indices, problem.width,
                  LookUp<float>{problem, problem.width, index, table, bias, y});
  }
}

size_t CudaOperations::EmbedWorkspace(const EmbedProblem& problem) {
  return static_cast<size_t>(Keys(problem)) * sizeof(uint64_t) + static_cast<size_t>(problem.rows) * sizeof(Span);
}

void CudaOperations::EmbedBackward(const EmbedProblem& problem, const float* index, const float* dy,
                                   float* table_gradient, std::byte* workspace) {
  if (problem.rows <= 0 || problem.width <= 0) return;
  CREMA_CHECK(problem.indices < int64_t{1} << 31 && problem.rows < int64_t{1} << 32) << "too many for keys";
  auto* const keys = reinterpret_cast<uint64_t*>(workspace);
  auto* const spans = reinterpret_cast<Span*>(keys + Keys(problem));
  SortKeys(queue(), problem, index, keys);
  ForEach(queue(), problem.rows, ClearSpan{spans});
  ForEach(queue(), problem.indices, MarkSpan{problem.indices, keys, spans});
  const bool aligned = IsPackAligned(dy) && IsPackAligned(table_gradient);
  // Tables of few rows are better cut into more pieces.
  if (problem.width % Pack<float>::kWidth == 0 && aligned && problem.rows >= queue().multiprocessors) {
    SumRows<Pack<float>>(queue(), problem, keys, spans, dy, table_gradient);
  } else {
    SumRows<float>(queue(), problem, keys, spans, dy, table_gradient);
  }
}

}  // namespace crema::cuda
