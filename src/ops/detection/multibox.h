// What the loss of a detector compares: which object each prior has, which of the other priors count, and what should
// be predicted for them (Liu et al., "SSD: Single Shot MultiBox Detector", 2016). f32 in CPU memory.
//
// Priors are 4 numbers each, the box, and behind all of them the 4 variances of each. Objects are as
// ops/detection/object_rows.h has them; those that FindBadObject finds are none. Threaded; nothing is allocated.
#ifndef CREMA_OPS_DETECTION_MULTIBOX_H_
#define CREMA_OPS_DETECTION_MULTIBOX_H_

#include <cstdint>

#include "base/multiversion.h"
#include "ops/detection/box_formulas.h"
#include "ops/detection/object_rows.h"

namespace crema {

struct MultiBoxProblem {
  int64_t images = 1, priors = 1;  // fewer than 2^31 priors
  int64_t objects = 0;             // rows, of all images
  int64_t classes = 2;
  int64_t background = 0;     // the class that is none
  bool agnostic = false;      // every object is of the class behind the background
  bool use_difficult = true;  // objects that are difficult, too

  bool whole_only = false;         // priors that reach over the image's border have no object and are no negatives
  bool per_prediction = true;      // priors that are left over have the object they overlap most
  float overlap_threshold = 0.5f;  // by at least this

  bool mines = true;                                          // else all priors without an object count
  float negatives_per_match = 3.0f, negative_overlap = 0.5f;  // how many count, and what they overlap less than

  bool logistic = false;  // a target for each class, else one label
  BoxCode code = BoxCode::kCorner;
  bool divides_by_variance = false;  // differences are divided by variances, else the boxes that are to be predicted
  double divisor = 0;                // of the loss; 0: the number of matches, 1 where there is none

  CREMA_HOST_DEVICE int64_t places() const { return images * priors; }
  CREMA_HOST_DEVICE ObjectRows rows() const {
    return {objects, images, agnostic ? ObjectRows::kAnyClass : classes, background};
  }
};

// What the matches of priors may be besides rows of objects: no object, or none and no negative either.
inline constexpr int32_t kNoMatch = -1, kLeftOut = -2;

// match[image][prior] = the row of its object, kNoMatch or kLeftOut; overlap: the largest with any object of the image.
// First each object gets one prior: of all pairs that are left the one of the largest overlap, of equals that of the
// first prior, then of the first row. best: scratch, one for each row.
void MatchPriors(const MultiBoxProblem& problem, const float* priors, const float* objects, uint64_t* best,
                 int32_t* match, float* overlap);

// rank[image][prior]: greater for a larger loss as background, then for the earlier prior; 0 where the prior may not be
// a negative. scores: places x classes, of the softmax the probabilities.
void RankNegatives(const MultiBoxProblem& problem, const float* scores, const int32_t* match, const float* overlap,
                   uint64_t* rank);

struct MultiBoxMatches {
  const float *priors, *objects, *location;  // location: what is predicted, places x 4
  const int32_t* match;
  uint64_t* rank;  // read where the problem mines; in another order afterwards
};
// Where a place does not count, the label is kUncounted, and so are its targets of classes.
struct MultiBoxTargets {
  float* label;         // of each place
  float* class_target;  // places x classes, 1 for the label's; null where not wanted
  // places x 4, the numbers that tell the box; of places without an object those predicted, so that nothing is to be
  // learnt. Null where not wanted.
  float* location;
  float* weight;  // places x 4, what differences are multiplied by; null where that is 1
  float* share;   // one number: 1 divided by what the loss is divided by
};
inline constexpr int kUncounted = -1;
void MakeMultiBoxTargets(const MultiBoxProblem& problem, const MultiBoxMatches& matches,
                         const MultiBoxTargets& targets);

}  // namespace crema

#endif  // CREMA_OPS_DETECTION_MULTIBOX_H_
