// Images of another size, each element a weighted mean of those around it, plain f32 in CPU memory.
#ifndef CREMA_OPS_SAMPLING_RESAMPLING_H_
#define CREMA_OPS_SAMPLING_RESAMPLING_H_

#include <cstddef>
#include <cstdint>

#include "base/multiversion.h"

namespace crema {

struct Resampling {
  // How much an element counts by its distance from the place that is looked at: the nearest one alone; 1 less the
  // distance; by cubics, with a = -0.5, up to a distance of 2.
  enum class Filter { kNearest, kLinear, kCubic };

  struct Axis {
    int64_t extent = 1, result = 1;
    double scale = 1, shift = 0;  // element i of the result looks at scale * i + shift
    double width = 1;             // of the filter: distances are divided by it
    int64_t taps = 1;             // elements of the source that one of the result may be made of, side by side

    CREMA_HOST_DEVICE double PlaceOf(int64_t i) const { return scale * static_cast<double>(i) + shift; }
  };

  int64_t planes = 1;
  Axis rows = {}, columns = {};
  Filter filter = Filter::kLinear;
  // Elements that are NaN do not count; where they would weigh more than half of what the others do the result is NaN.
  bool skips_nan = false;

  CREMA_HOST_DEVICE int64_t plane() const { return rows.extent * columns.extent; }
  CREMA_HOST_DEVICE int64_t result_plane() const { return rows.result * columns.result; }
};

// The edges of the source and of the result lie upon each other. `widens`: where the result is the shorter one the
// filter is as many times wider.
Resampling::Axis ResamplingBetweenEdges(Resampling::Filter filter, bool widens, int64_t extent, int64_t result);
// Their first and last elements do; the filter is as wide as the distance of the result's elements. result: 2 or more,
// or 1 where extent is.
Resampling::Axis ResamplingBetweenCorners(Resampling::Filter filter, int64_t extent, int64_t result);

// Weights of both axes, in either pass.
size_t ResamplingWorkspace(const Resampling& problem);
// What lies beyond the source does not count. Threaded; overwrites all of y.
void ResamplingForward(const Resampling& problem, const float* x, float* y, std::byte* workspace);
// Without skips_nan. Overwrites all of dx. Each row is one thread's, so that sums are the same on any number of
// threads.
void ResamplingBackward(const Resampling& problem, const float* dy, float* dx, std::byte* workspace);

}  // namespace crema

#endif  // CREMA_OPS_SAMPLING_RESAMPLING_H_
