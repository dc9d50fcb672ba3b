#include "cuda/operations.h"
#include "ops/detection/hard_regions_formulas.h"

namespace crema::cuda {

size_t CudaOperations::HardRegionWorkspace(const HardRegionProblem&) { return 0; }

// There are some thousands of regions: each is compared with all.
void CudaOperations::KeepHardRegions(const HardRegionProblem& problem, const HardRegionInputs& inputs, float* labels,
                                     float* weights, std::byte*) {
  ForEach(queue(), problem.regions, [=] __device__(int64_t region) {
    const float image = hard_regions::ImageOf(inputs, region);
    const uint64_t rank = hard_regions::RankOf(inputs, region);
    int64_t before = image >= 0 ? 0 : problem.per_image;
    for (int64_t other = 0; other < problem.regions && before < problem.per_image; ++other) {
      before += hard_regions::ImageOf(inputs, other) == image && hard_regions::RankOf(inputs, other) > rank;
    }
    hard_regions::Write(problem, inputs, region, before < problem.per_image, labels, weights);
  });
}

}  // namespace crema::cuda
