#include "ops/pooling/pooling.h"

#include <algorithm>
#include <limits>

#include "ops/pooling/pooling_kernels.h"

namespace crema {

namespace {

constexpr KernelCandidate<PoolingKernel, PoolingProblem> kTable[] = {
    {"vectorised maximum", MakeMaxPooling},
    {"average of whole planes", MakeWholePlanePooling},
    {"vectorised average", MakeAveragePooling},
    {"maximum with channels last", MakeMaxPoolingChannelsLast},
    {"average with channels last", MakeAveragePoolingChannelsLast},
    {"reference", MakePoolingReference},
};

}  // namespace

WindowRanges::WindowRanges(int64_t extent, const PoolingWindow& window, int64_t outputs, bool divided)
    : first_whole(outputs), end_whole(0) {
  for (int64_t i = 0; i < outputs; ++i) {
    const int64_t start = i * window.stride - window.pad, stop = start + window.kernel;
    const WindowRange range = RangeOf(extent, window, i);
    begin.push_back(range.begin);
    end.push_back(range.end);
    padded.push_back(divided ? range.padded : 1);
    if (start >= 0 && stop <= extent) {
      first_whole = std::min(first_whole, i);
      end_whole = i + 1;
    }
  }
  first_whole = std::min(first_whole, end_whole);
}

int64_t WindowRanges::filled() const {
  int64_t filled = 0;
  while (filled < static_cast<int64_t>(begin.size()) && begin[filled] < end[filled]) ++filled;
  return filled;
}

bool PositionsFit(const PoolingProblem& problem) {
  const int64_t most = std::numeric_limits<int32_t>::max() / problem.horizontal.kernel;
  return problem.vertical.kernel <= most && problem.depth.kernel <= most / problem.vertical.kernel;
}

int64_t PooledExtent(int64_t extent, const PoolingWindow& window, bool ceil, bool padded) {
  const int64_t room = extent + 2 * window.pad - window.kernel;
  if (room < 0) {
    // Caffe's ceil still makes one window of an input smaller than the kernel, as long as it is less than a stride
    // smaller.
    return ceil && -room < window.stride ? 1 : 0;
  }
  int64_t outputs = (room + (ceil ? window.stride - 1 : 0)) / window.stride + 1;
  if (padded && (outputs - 1) * window.stride >= extent + window.pad) --outputs;
  return outputs;
}

int64_t PoolingStrip(const PoolingWindow& horizontal) {
  constexpr int64_t kMost = 128;
  const int64_t fitting = (kPoolingSpan - horizontal.kernel) / horizontal.stride + 1;
  if (horizontal.kernel > kPoolingSpan) return 0;
  return std::min(kMost, fitting / kPoolingLanes * kPoolingLanes);
}

std::unique_ptr<PoolingKernel> MakePooling(const PoolingProblem& problem, const Device& device, KernelChoice* choice,
                                           std::string_view only) {
  return ChooseKernel(kTable, problem, device, only, choice);
}

}  // namespace crema
