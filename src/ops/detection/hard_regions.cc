#include "ops/detection/hard_regions.h"

#include <algorithm>
#include <numeric>

#include "ops/detection/hard_regions_formulas.h"

namespace crema {

size_t HardRegionWorkspace(const HardRegionProblem& problem) {
  return static_cast<size_t>(problem.regions) * sizeof(uint32_t);
}

void KeepHardRegions(const HardRegionProblem& problem, const HardRegionInputs& inputs, float* labels, float* weights,
                     std::byte* workspace) {
  using hard_regions::ImageOf;
  using hard_regions::RankOf;
  auto* const order = reinterpret_cast<uint32_t*>(workspace);
  std::iota(order, order + problem.regions, 0u);
  uint32_t* const end =
      std::remove_if(order, order + problem.regions, [&](uint32_t region) { return !(ImageOf(inputs, region) >= 0); });
  std::sort(order, end, [&](uint32_t a, uint32_t b) {
    const float of_a = ImageOf(inputs, a), of_b = ImageOf(inputs, b);
    return of_a != of_b ? of_a < of_b : RankOf(inputs, a) > RankOf(inputs, b);
  });
  for (int64_t region = 0; region < problem.regions; ++region) {
    hard_regions::Write(problem, inputs, region, false, labels, weights);
  }
  int64_t of_image = 0;
  for (const uint32_t* region = order; region != end; ++region, ++of_image) {
    if (region != order && ImageOf(inputs, *region) != ImageOf(inputs, region[-1])) of_image = 0;
    if (of_image < problem.per_image) hard_regions::Write(problem, inputs, *region, true, labels, weights);
  }
}

}  // namespace crema
