#include "cuda/arrays/reduce.h"
#include "cuda/operations.h"
#include "ops/detection/detectnet_boxes_formulas.h"

namespace crema::cuda {

namespace {

constexpr unsigned kImageThreads = 256;  // of the block that has an image
constexpr unsigned kCountThreads = 1024;

// The threads of a block.
struct Block {
  __device__ int64_t first() const { return threadIdx.x; }
  __device__ int64_t step() const { return blockDim.x; }
  __device__ void Sync() const { __syncthreads(); }
  __device__ int64_t Sum(int64_t value) const { return SumBlock(value); }
};

__global__ void __launch_bounds__(kImageThreads)
    GroupKernel(DetectNetGrid grid, DetectNetGrouping grouping, const float* coverage, const float* boxes,
                float* objects, std::byte* workspace) {
  const int64_t image = blockIdx.x;
  detectnet::GroupImage(grid, grouping, coverage, boxes, image, Block(),
                        detectnet::GroupScratch::In(grid, image, workspace),
                        objects + image * grid.objects * DetectNetGrid::kNumbers);
}

__global__ void __launch_bounds__(kImageThreads)
    ListKernel(DetectNetGrid grid, const float* coverage, const float* boxes, float* objects, std::byte* workspace) {
  const int64_t image = blockIdx.x;
  detectnet::ListImage(grid, coverage, boxes, image, Block(), detectnet::GroupScratch::In(grid, image, workspace),
                       objects + image * grid.objects * DetectNetGrid::kNumbers);
}

__global__ void __launch_bounds__(kCountThreads)
    MeasureKernel(int64_t rows, const float* scored, DetectNetMeasures measures) {
  int64_t counts[3] = {0, 0, 0};
  for (int64_t i = threadIdx.x; i < rows; i += blockDim.x) {
    const float kind = scored[i * DetectNetGrid::kNumbers + 4];
    counts[0] += kind == static_cast<float>(detectnet::kRight);
    counts[1] += kind == static_cast<float>(detectnet::kWrong);
    counts[2] += kind == static_cast<float>(detectnet::kMissed);
  }
  for (int64_t& count : counts) count = SumBlock(count);
  if (threadIdx.x == 0) detectnet::WriteMeasures(counts[0], counts[1], counts[2], measures);
}

}  // namespace

size_t CudaOperations::DetectNetGroupWorkspace(const DetectNetGrid& grid) {
  return detectnet::GroupScratch::Bytes(grid);
}

void CudaOperations::GroupDetectNetBoxes(const DetectNetGrid& grid, const DetectNetGrouping& grouping,
                                         const float* coverage, const float* boxes, float* objects,
                                         std::byte* workspace) {
  if (grid.images == 0) return;
  Launch(queue(), static_cast<unsigned>(grid.images), kImageThreads, GroupKernel, grid, grouping, coverage, boxes,
         objects, workspace);
}

void CudaOperations::ListDetectNetBoxes(const DetectNetGrid& grid, const float* coverage, const float* boxes,
                                        float* objects, std::byte* workspace) {
  if (grid.images == 0) return;
  Launch(queue(), static_cast<unsigned>(grid.images), kImageThreads, ListKernel, grid, coverage, boxes, objects,
         workspace);
}

size_t CudaOperations::DetectNetScoreWorkspace(const DetectNetScoring& scoring) {
  return detectnet::KindBytes(scoring);
}

void CudaOperations::ScoreDetectNetBoxes(const DetectNetScoring& scoring, const float* truths, const float* found,
                                         float* scored, std::byte* workspace) {
  int32_t* const kinds = reinterpret_cast<int32_t*>(workspace);
  ForEach(queue(), scoring.images, [=] __device__(int64_t image) {
    constexpr int64_t kNumbers = DetectNetGrid::kNumbers;
    detectnet::ScoreImage(scoring, truths + image * scoring.truths * kNumbers, found + image * scoring.found * kNumbers,
                          scored + image * scoring.rows() * kNumbers, kinds + image * scoring.rows());
  });
}

void CudaOperations::MeasureDetectNetBoxes(int64_t rows, const float* scored, const DetectNetMeasures& measures) {
  Launch(queue(), 1, kCountThreads, MeasureKernel, rows, scored, measures);
}

}  // namespace crema::cuda
