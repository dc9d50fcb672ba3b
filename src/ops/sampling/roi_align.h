// Means of points that lie evenly in rectangles of images (He et al., "Mask R-CNN", 2017), plain f32 in CPU memory.
#ifndef CREMA_OPS_SAMPLING_ROI_ALIGN_H_
#define CREMA_OPS_SAMPLING_ROI_ALIGN_H_

#include "ops/sampling/roi_pooling.h"

namespace crema {

struct RoiAlignProblem {
  RoiPoolingProblem grid;
  int32_t points = 0;  // of a cell along each axis, at most 64; 0: about one a pixel, so that all of the cell counts
};

// y[region][channel][cell] = the mean of the cell's points, each of which is interpolated bilinearly; 0 beyond the
// pixel around the image. Regions must be good (FindBadRegion). Threaded; allocates nothing.
void RoiAlignForward(const RoiAlignProblem& problem, const float* x, const float* regions, float* y);
// Overwrites all of dx. Each plane is one thread's, so that sums are the same on any number of threads.
void RoiAlignBackward(const RoiAlignProblem& problem, const float* regions, const float* dy, float* dx);

}  // namespace crema

#endif  // CREMA_OPS_SAMPLING_ROI_ALIGN_H_
