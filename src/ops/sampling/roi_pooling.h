// Pooling of rectangles of images to grids of cells (Girshick, "Fast R-CNN", 2015), plain f32 in CPU memory.
#ifndef CREMA_OPS_SAMPLING_ROI_POOLING_H_
#define CREMA_OPS_SAMPLING_ROI_POOLING_H_

#include <cstdint>

namespace crema {

struct RoiPoolingProblem {
  int64_t images = 1, channels = 1, height = 1, width = 1;
  int64_t regions = 1;
  int64_t pooled_height = 1, pooled_width = 1;  // cells of the grid
  float scale = 1;                              // from corners of regions to pixels

  int64_t outputs() const { return regions * channels * pooled_height * pooled_width; }
};

// Numbers of a region: which image, x and y of its first corner, x and y of the opposite one, which belongs to it.
inline constexpr int64_t kRegionNumbers = 5;
// Stands for the image of a row that is no region: its cells hold no element.
inline constexpr float kNoRegion = -1;

// Position among all numbers of regions of the first one that names no image or is no coordinate; -1 when all are fine.
int64_t FindBadRegion(const RoiPoolingProblem& problem, const float* regions);
// y[region][channel][cell] = the largest element of the cell, which is element `from` of its plane, the first one of
// equals; 0 and -1 where the cell holds none. `from` may be null. Regions must be good. Threaded; allocates nothing.
void RoiPoolingForward(const RoiPoolingProblem& problem, const float* x, const float* regions, float* y, int32_t* from);
// Overwrites all of dx. Each plane is one thread's, so that sums are the same on any number of threads.
void RoiPoolingBackward(const RoiPoolingProblem& problem, const float* regions, const int32_t* from, const float* dy,
                        float* dx);

// Mean pooling of the same regions, each cell from channels of its own (Dai et al., "R-FCN", 2016): x has for each of
// the problem's channels one plane for each cell. y[region][channel][cell] = the mean of its cell of its plane, 0 where
// the cell holds none. Regions must be good. Threaded; allocates nothing.
void PositionPoolingForward(const RoiPoolingProblem& problem, const float* x, const float* regions, float* y);
// Overwrites all of dx. Each plane is one thread's.
void PositionPoolingBackward(const RoiPoolingProblem& problem, const float* regions, const float* dy, float* dx);

}  // namespace crema

#endif  // CREMA_OPS_SAMPLING_ROI_POOLING_H_
