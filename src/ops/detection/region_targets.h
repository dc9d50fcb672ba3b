// What nets that propose regions should say: of anchors (Ren et al., "Faster R-CNN", 2015, section 3.1.2), and of a
// sample of the regions (Girshick, "Fast R-CNN", 2015, section 2.3). f32 in CPU memory; threaded over images; nothing
// is allocated.
//
// Objects: of each image as many rows of kRegionObjectNumbers; those that FindBadRegionObject finds are none. What is
// drawn depends on the random stream alone, not on the number of threads.
#ifndef CREMA_OPS_DETECTION_REGION_TARGETS_H_
#define CREMA_OPS_DETECTION_REGION_TARGETS_H_

#include <cstddef>
#include <cstdint>

#include "base/random.h"
#include "ops/detection/anchors.h"

namespace crema {

// Numbers of an object: pixels x1, y1, x2, y2, and its class, 1 or more; rows of -1 are none.
inline constexpr int64_t kRegionObjectNumbers = 5;

struct RegionObjects {
  int64_t images = 1, rows = 0;        // rows: of each image
  int64_t classes = int64_t{1} << 24;  // with the background, 0
};

// The first number that cannot be used, by its position; -1 when all are fine.
int64_t FindBadRegionObject(const RegionObjects& objects, const float* values);

struct AnchorTargetProblem {
  RegionObjects objects;
  Anchors anchors;                        // fewer than 2^31
  float allowed_border = 0;               // pixels by which an anchor that counts may reach over the image's border
  int64_t batch = 256, foreground = 128;  // anchors of an image that count, and of these are objects, at most
  float positive_overlap = 0.7f;          // an anchor is an object that overlaps one by this or more, or most of all,
  float negative_overlap = 0.3f;          // background that overlaps all by less,
  bool clobber_positives = false;         // and the latter if it is both
};

struct AnchorTargets {
  float* labels;          // images x anchors: 1, 0, or -1 for what does not count
  float* offsets;         // images x 4 shapes x height x width; 0 where the anchor reaches over the border
  float* inside_weights;  // as large: 1 where the label is 1
  float*
      outside_weights;  // as large: 1 divided by the number of anchors of the image that count, where the label counts
};

size_t AnchorTargetWorkspace(const AnchorTargetProblem& problem);
// info: images x ScaledImage::kNumbers. Overwrites all targets.
void MakeAnchorTargets(const AnchorTargetProblem& problem, const RandomStream& random, const float* info,
                       const float* objects, const AnchorTargets& targets, std::byte* workspace);

struct RegionTargetProblem {
  RegionObjects objects;
  int64_t proposals = 1;   // rows of each image
  int64_t classes = 2;     // that have offsets, with the background; 2: objects of all classes are 1 there
  bool takes_all = false;  // batch and foreground are how many there can be, and none is taken again
  int64_t batch = 128, foreground = 32;  // regions to be taken of an image, and of these are objects, at most
  float foreground_overlap = 0.5f;       // a region is an object that overlaps one by this or more,
  float background_above = 0, background_below = 0.5f;  // background if by this or more, and by less
  BoxVariance variance;                                 // what offsets are divided by
};

struct RegionTargets {
  float* regions;          // images x batch x kRegionNumbers
  float* labels;           // images x batch
  float* offsets;          // images x batch x 4 problem.classes
  float* inside_weights;   // as large: 1 at the four places of a region's class, unless that is 0
  float* outside_weights;  // the same
};

size_t RegionTargetWorkspace(const RegionTargetProblem& problem);
// proposals: images x problem.proposals x kRegionNumbers; rows of another image than their own are none. Objects are
// taken for proposals, too. Overwrites all targets: of each image first objects, then background; where there are too
// few they begin anew, unless takes_all. Rows that are left over, as all are of an image without any, are -1 with label
// 0.
void MakeRegionTargets(const RegionTargetProblem& problem, const RandomStream& random, const float* proposals,
                       const float* objects, const RegionTargets& targets, std::byte* workspace);

}  // namespace crema

#endif  // CREMA_OPS_DETECTION_REGION_TARGETS_H_
