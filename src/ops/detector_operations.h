// The operations that detectors are made of (see operations.h).
#ifndef CREMA_OPS_DETECTOR_OPERATIONS_H_
#define CREMA_OPS_DETECTOR_OPERATIONS_H_

#include <cstddef>
#include <cstdint>

#include "base/random.h"
#include "crema/tensor.h"
#include "ops/detection/detection_evaluation.h"
#include "ops/detection/detection_output.h"
#include "ops/detection/detectnet_boxes.h"
#include "ops/detection/detectnet_transform.h"
#include "ops/detection/hard_regions.h"
#include "ops/detection/multibox.h"
#include "ops/detection/object_rows.h"
#include "ops/detection/region_proposal.h"
#include "ops/detection/region_targets.h"
#include "ops/detection/yolo.h"
#include "ops/sampling/roi_align.h"
#include "ops/sampling/roi_pooling.h"

namespace crema {

class DetectorOperations {
 public:
  virtual ~DetectorOperations() = default;

  // --- Regions of images: ops/sampling/roi_pooling.h, ops/sampling/roi_align.h. FindBadRegion answers as FindBadLabel
  // does. ---
  virtual int64_t FindBadRegion(const RoiPoolingProblem& problem, const float* regions) = 0;
  virtual void RoiPoolingForward(const RoiPoolingProblem& problem, const float* x, const float* regions, float* y,
                                 int32_t* from) = 0;
  virtual void RoiPoolingBackward(const RoiPoolingProblem& problem, const float* regions, const int32_t* from,
                                  const float* dy, float* dx) = 0;
  virtual void PositionPoolingForward(const RoiPoolingProblem& problem, const float* x, const float* regions,
                                      float* y) = 0;
  virtual void PositionPoolingBackward(const RoiPoolingProblem& problem, const float* regions, const float* dy,
                                       float* dx) = 0;
  virtual void RoiAlignForward(const RoiAlignProblem& problem, const float* x, const float* regions, float* y) = 0;
  virtual void RoiAlignBackward(const RoiAlignProblem& problem, const float* regions, const float* dy, float* dx) = 0;

  // --- Detectors: ops/detection/detection_output.h, ops/detection/object_rows.h, ops/detection/multibox.h,
  // ops/detection/detection_evaluation.h. FindBadObject answers as FindBadLabel does. ---
  virtual size_t DetectionWorkspace(const DetectionProblem& problem) = 0;
  virtual void DetectObjects(const DetectionProblem& problem, const DetectionInputs& inputs, float* objects,
                             std::byte* workspace) = 0;
  virtual int64_t FindBadObject(const ObjectRows& objects, const float* values) = 0;
  virtual void MatchPriors(const MultiBoxProblem& problem, const float* priors, const float* objects, uint64_t* best,
                           int32_t* match, float* overlap) = 0;
  virtual void RankNegatives(const MultiBoxProblem& problem, const float* scores, const int32_t* match,
                             const float* overlap, uint64_t* rank) = 0;
  virtual void MakeMultiBoxTargets(const MultiBoxProblem& problem, const MultiBoxMatches& matches,
                                   const MultiBoxTargets& targets) = 0;
  // ops/detection/yolo.h. GPUs know the pass by themselves.
  virtual void LearnYolo(const YoloLoss& loss, uint64_t pass, const float* predictions, const float* objects,
                         float* gradient, float* losses) = 0;
  virtual void DecodeYolo(const YoloGrid& grid, const float* predictions, const YoloBoxes& boxes) = 0;
  virtual void EvaluateDetections(const DetectionEvaluation& evaluation, const float* found, const float* objects,
                                  std::byte* workspace, float* results) = 0;

  // --- Detectors that propose regions: ops/detection/region_proposal.h, ops/detection/region_targets.h.
  // FindBadRegionObject answers as FindBadLabel does. ---
  virtual size_t ProposalWorkspace(const ProposalProblem& problem) = 0;
  virtual void ProposeRegions(const ProposalProblem& problem, const ProposalInputs& inputs, float* regions,
                              float* scores, std::byte* workspace) = 0;
  virtual int64_t FindBadRegionObject(const RegionObjects& objects, const float* values) = 0;
  virtual size_t AnchorTargetWorkspace(const AnchorTargetProblem& problem) = 0;
  virtual void MakeAnchorTargets(const AnchorTargetProblem& problem, const RandomStream& random, const float* info,
                                 const float* objects, const AnchorTargets& targets, std::byte* workspace) = 0;
  virtual size_t RegionTargetWorkspace(const RegionTargetProblem& problem) = 0;
  virtual void MakeRegionTargets(const RegionTargetProblem& problem, const RandomStream& random, const float* proposals,
                                 const float* objects, const RegionTargets& targets, std::byte* workspace) = 0;
  // ops/detection/hard_regions.h.
  virtual size_t HardRegionWorkspace(const HardRegionProblem& problem) = 0;
  virtual void KeepHardRegions(const HardRegionProblem& problem, const HardRegionInputs& inputs, float* labels,
                               float* weights, std::byte* workspace) = 0;

  // --- DetectNet: ops/detection/detectnet_transform.h, ops/detection/detectnet_boxes.h. FindBadDetectNetObject answers
  // as FindBadLabel does; GPUs know the pass by themselves. ---
  virtual void DrawDetectNetChanges(const DetectNetTransform& problem, const RandomStream& random,
                                    DetectNetChange* changes) = 0;
  virtual void ChangeDetectNetColors(const DetectNetTransform& problem, const DetectNetChange* changes,
                                     const float* mean, const float* x, float* y) = 0;
  virtual void PlaceDetectNetImages(const DetectNetTransform& problem, const DetectNetChange* changes, const float* x,
                                    float* y) = 0;
  virtual void MakeDetectNetLabels(const DetectNetTransform& problem, const DetectNetLabels& labels,
                                   const DetectNetChange* changes, const int32_t* place_of, const float* objects,
                                   float* y) = 0;
  virtual int64_t FindBadDetectNetObject(const DetectNetTransform& problem, const DetectNetLabels& labels,
                                         const float* objects) = 0;
  virtual size_t DetectNetGroupWorkspace(const DetectNetGrid& grid) = 0;
  virtual void GroupDetectNetBoxes(const DetectNetGrid& grid, const DetectNetGrouping& grouping, const float* coverage,
                                   const float* boxes, float* objects, std::byte* workspace) = 0;
  virtual void ListDetectNetBoxes(const DetectNetGrid& grid, const float* coverage, const float* boxes, float* objects,
                                  std::byte* workspace) = 0;
  virtual size_t DetectNetScoreWorkspace(const DetectNetScoring& scoring) = 0;
  virtual void ScoreDetectNetBoxes(const DetectNetScoring& scoring, const float* truths, const float* found,
                                   float* scored, std::byte* workspace) = 0;
  virtual void MeasureDetectNetBoxes(int64_t rows, const float* scored, const DetectNetMeasures& measures) = 0;
};

}  // namespace crema

#endif  // CREMA_OPS_DETECTOR_OPERATIONS_H_
