// How good a detector is, from what a DetectionEvaluate layer says of each object that it found.
#ifndef CREMA_SOLVER_AVERAGE_PRECISION_H_
#define CREMA_SOLVER_AVERAGE_PRECISION_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "crema/observer.h"
#include "crema/tensor.h"

namespace crema {

// How one number is made of precision (the right ones among the best so many found) and recall (these among all true
// objects): SolverParameter.ap_version.
enum class ApVersion {
  kElevenPoint,  // mean of the highest precisions at a recall of 0, 0.1 ... 1 or more (PASCAL VOC 2007)
  kMaxIntegral,  // area under the highest precisions at a recall or more (VOC 2012)
  kIntegral      // area under the precisions
};

const std::vector<std::string>& ApVersionNames();
std::optional<ApVersion> ApVersionOf(const std::string& name);

// What was found of one class.
struct ClassDetections {
  int64_t objects = 0;                         // there are
  std::vector<std::pair<float, bool>> scores;  // of each found one, and whether it is right
};

// 0 to 1. Of equal scores the first one counts first; 0 without objects.
double AveragePrecision(const ClassDetections& detections, ApVersion version);

// The detections of all batches of a test.
class MeanAveragePrecision {
 public:
  // Adds the top of a DetectionEvaluate layer: rows of five numbers.
  void Add(const Tensor& evaluated);

  // Of each class that has objects, by class.
  std::vector<ClassPrecision> OfClasses(ApVersion version) const;
  // The mean over these classes; 0 where there is none.
  double Mean(ApVersion version) const;

 private:
  std::map<int, ClassDetections> classes_;
};

}  // namespace crema

#endif  // CREMA_SOLVER_AVERAGE_PRECISION_H_
