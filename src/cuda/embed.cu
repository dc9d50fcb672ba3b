#include "cuda/faults.h"
#include "cuda/numbers.h"
#include "cuda/operations.h"
#include "cuda/rows.h"
#include "ops/embed.h"

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

constexpr int kMarked = 2048;  // indices that are looked through at a time
constexpr int kAtOnce = 8;     // gradients that are on their way at a time

// Adds numbers of an array in the order in which their positions come, but reads several at once.
template <typename Unit>
class OrderedSum {
 public:
  __device__ explicit OrderedSum(const Unit* from) : from_(from) {}
  __device__ void Add(int64_t position) {
    for (int i = 1; i < kAtOnce; ++i) waiting_[i - 1] = waiting_[i];
    waiting_[kAtOnce - 1] = position;
    if (++count_ == kAtOnce) Fetch();
  }
  __device__ Unit Total() {
    Fetch();
    return sum_;
  }

 private:
  __device__ void Fetch() {
    Unit read[kAtOnce] = {};
    for (int i = 0; i < kAtOnce; ++i) {
      if (i >= kAtOnce - count_) read[i] = from_[waiting_[i]];
    }
    for (int i = 0; i < kAtOnce; ++i) {
      if (i >= kAtOnce - count_) sum_ = Plus(sum_, read[i]);
    }
    count_ = 0;
  }

  const Unit* from_;
  Unit sum_ = {};
  int64_t waiting_[kAtOnce] = {};
  int count_ = 0;  // the last ones of waiting_
};

// Adds up, in their order, the gradients that belong to one row of the table; a block has one row and as many units of
// it at a time as threads. Its threads mark the indices that name the row, then all of them walk the marks.
template <typename Unit>
__global__ void SumOfRow(EmbedProblem problem, int64_t units, const float* index, const Unit* dy, Unit* gradient) {
  __shared__ uint32_t marks[kMarked / 32];
  const int64_t step = int64_t{gridDim.y} * blockDim.x;
  for (int64_t row = blockIdx.x; row < problem.rows; row += gridDim.x) {
    const float wanted = static_cast<float>(row);
    for (int64_t begin = int64_t{blockIdx.y} * blockDim.x; begin < units; begin += step) {
      const int64_t unit = begin + threadIdx.x;
      OrderedSum<Unit> sum(dy + unit);
      for (int64_t first = 0; first < problem.indices; first += kMarked) {
        for (unsigned i = threadIdx.x; i < kMarked / 32; i += blockDim.x) marks[i] = 0;
        __syncthreads();
        for (unsigned i = threadIdx.x; i < kMarked && first + i < problem.indices; i += blockDim.x) {
          // Every bit is added once, which is the same as setting it.
          const float named = index[first + i];
          if (named == wanted && static_cast<int64_t>(named) == row) atomicAdd(&marks[i / 32], 1u << i % 32);
        }
        __syncthreads();
        if (unit < units) {
          for (int word = 0; word < kMarked / 32; ++word) {
            if (marks[word] == 0) continue;
            for (int bit = 0; bit < 32; ++bit) {
              if (marks[word] >> bit & 1u) sum.Add((first + word * 32 + bit) * units);
            }
          }
        }
        __syncthreads();  // before the marks are cleared
      }
      if (unit < units) gradient[row * units + unit] = sum.Total();
    }
  }
}

template <typename Unit>
void SumRows(const Queue& queue, const EmbedProblem& problem, const float* index, const float* dy, float* gradient) {
  constexpr int64_t kMostPieces = 65535;  // CUDA's limit of a grid's second extent
  const int64_t units = problem.width / static_cast<int64_t>(sizeof(Unit) / sizeof(float));
  const int64_t rows = std::min<int64_t>(problem.rows, int64_t{1} << 30);
  const int64_t pieces = std::min((units + kThreads - 1) / kThreads, kMostPieces);
  Launch(queue, dim3(static_cast<unsigned>(rows), static_cast<unsigned>(pieces)), kThreads, SumOfRow<Unit>, problem,
         units, index, reinterpret_cast<const Unit*>(dy), reinterpret_cast<Unit*>(gradient));
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

void CudaOperations::EmbedBackward(const EmbedProblem& problem, const float* index, const float* dy,
                                   float* table_gradient) {
  if (problem.rows <= 0 || problem.width <= 0) return;
  const bool aligned = IsPackAligned(dy) && IsPackAligned(table_gradient);
  // Tables of few rows are better cut into more pieces.
  if (problem.width % Pack<float>::kWidth == 0 && aligned && problem.rows >= queue().multiprocessors) {
    SumRows<Pack<float>>(queue(), problem, index, dy, table_gradient);
  } else {
    SumRows<float>(queue(), problem, index, dy, table_gradient);
  }
}

}  // namespace crema::cuda
