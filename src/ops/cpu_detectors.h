// The part of the CPU's operations that detectors are made of.
#ifndef CREMA_OPS_CPU_DETECTORS_H_
#define CREMA_OPS_CPU_DETECTORS_H_

#include "ops/operations.h"

namespace crema {

class CpuDetectors : public Operations {
 public:
  int64_t FindBadRegion(const RoiPoolingProblem& problem, const float* regions) override {
    return crema::FindBadRegion(problem, regions);
  }
  void RoiPoolingForward(const RoiPoolingProblem& problem, const float* x, const float* regions, float* y,
                         int32_t* from) override {
    crema::RoiPoolingForward(problem, x, regions, y, from);
  }
  void RoiPoolingBackward(const RoiPoolingProblem& problem, const float* regions, const int32_t* from, const float* dy,
                          float* dx) override {
    crema::RoiPoolingBackward(problem, regions, from, dy, dx);
  }
  void PositionPoolingForward(const RoiPoolingProblem& problem, const float* x, const float* regions,
                              float* y) override {
    crema::PositionPoolingForward(problem, x, regions, y);
  }
  void PositionPoolingBackward(const RoiPoolingProblem& problem, const float* regions, const float* dy,
                               float* dx) override {
    crema::PositionPoolingBackward(problem, regions, dy, dx);
  }
  void RoiAlignForward(const RoiAlignProblem& problem, const float* x, const float* regions, float* y) override {
    crema::RoiAlignForward(problem, x, regions, y);
  }
  void RoiAlignBackward(const RoiAlignProblem& problem, const float* regions, const float* dy, float* dx) override {
    crema::RoiAlignBackward(problem, regions, dy, dx);
  }

  int64_t FindBadObject(const ObjectRows& objects, const float* values) override {
    return crema::FindBadObject(objects, values);
  }
  void MatchPriors(const MultiBoxProblem& problem, const float* priors, const float* objects, uint64_t* best,
                   int32_t* match, float* overlap) override {
    crema::MatchPriors(problem, priors, objects, best, match, overlap);
  }
  void RankNegatives(const MultiBoxProblem& problem, const float* scores, const int32_t* match, const float* overlap,
                     uint64_t* rank) override {
    crema::RankNegatives(problem, scores, match, overlap, rank);
  }
  void MakeMultiBoxTargets(const MultiBoxProblem& problem, const MultiBoxMatches& matches,
                           const MultiBoxTargets& targets) override {
    crema::MakeMultiBoxTargets(problem, matches, targets);
  }
  size_t DetectionWorkspace(const DetectionProblem& problem) override { return crema::DetectionWorkspace(problem); }
  void DetectObjects(const DetectionProblem& problem, const DetectionInputs& inputs, float* objects,
                     std::byte* workspace) override {
    crema::DetectObjects(problem, inputs, objects, workspace);
  }
  void LearnYolo(const YoloLoss& loss, uint64_t pass, const float* predictions, const float* objects, float* gradient,
                 float* losses) override {
    crema::LearnYolo(loss, pass, predictions, objects, gradient, losses);
  }
  void DecodeYolo(const YoloGrid& grid, const float* predictions, const YoloBoxes& boxes) override {
    crema::DecodeYolo(grid, predictions, boxes);
  }
  void EvaluateDetections(const DetectionEvaluation& evaluation, const float* found, const float* objects,
                          std::byte* workspace, float* results) override {
    crema::EvaluateDetections(evaluation, found, objects, workspace, results);
  }

  size_t ProposalWorkspace(const ProposalProblem& problem) override { return crema::ProposalWorkspace(problem); }
  void ProposeRegions(const ProposalProblem& problem, const ProposalInputs& inputs, float* regions, float* scores,
                      std::byte* workspace) override {
    crema::ProposeRegions(problem, inputs, regions, scores, workspace);
  }
  int64_t FindBadRegionObject(const RegionObjects& objects, const float* values) override {
    return crema::FindBadRegionObject(objects, values);
  }
  size_t AnchorTargetWorkspace(const AnchorTargetProblem& problem) override {
    return crema::AnchorTargetWorkspace(problem);
  }
  void MakeAnchorTargets(const AnchorTargetProblem& problem, const RandomStream& random, const float* info,
                         const float* objects, const AnchorTargets& targets, std::byte* workspace) override {
    crema::MakeAnchorTargets(problem, random, info, objects, targets, workspace);
  }
  size_t RegionTargetWorkspace(const RegionTargetProblem& problem) override {
    return crema::RegionTargetWorkspace(problem);
  }
  void MakeRegionTargets(const RegionTargetProblem& problem, const RandomStream& random, const float* proposals,
                         const float* objects, const RegionTargets& targets, std::byte* workspace) override {
    crema::MakeRegionTargets(problem, random, proposals, objects, targets, workspace);
  }
  size_t HardRegionWorkspace(const HardRegionProblem& problem) override { return crema::HardRegionWorkspace(problem); }
  void KeepHardRegions(const HardRegionProblem& problem, const HardRegionInputs& inputs, float* labels, float* weights,
                       std::byte* workspace) override {
    crema::KeepHardRegions(problem, inputs, labels, weights, workspace);
  }

  void DrawDetectNetChanges(const DetectNetTransform& problem, const RandomStream& random,
                            DetectNetChange* changes) override {
    crema::DrawDetectNetChanges(problem, random, changes);
  }
  void ChangeDetectNetColors(const DetectNetTransform& problem, const DetectNetChange* changes, const float* mean,
                             const float* x, float* y) override {
    crema::ChangeDetectNetColors(problem, changes, mean, x, y);
  }
  void PlaceDetectNetImages(const DetectNetTransform& problem, const DetectNetChange* changes, const float* x,
                            float* y) override {
    crema::PlaceDetectNetImages(problem, changes, x, y);
  }
  void MakeDetectNetLabels(const DetectNetTransform& problem, const DetectNetLabels& labels,
                           const DetectNetChange* changes, const int32_t* place_of, const float* objects,
                           float* y) override {
    crema::MakeDetectNetLabels(problem, labels, changes, place_of, objects, y);
  }
  int64_t FindBadDetectNetObject(const DetectNetTransform& problem, const DetectNetLabels& labels,
                                 const float* objects) override {
    return crema::FindBadDetectNetObject(problem, labels, objects);
  }
  size_t DetectNetGroupWorkspace(const DetectNetGrid& grid) override { return crema::DetectNetGroupWorkspace(grid); }
  void GroupDetectNetBoxes(const DetectNetGrid& grid, const DetectNetGrouping& grouping, const float* coverage,
                           const float* boxes, float* objects, std::byte* workspace) override {
    crema::GroupDetectNetBoxes(grid, grouping, coverage, boxes, objects, workspace);
  }
  void ListDetectNetBoxes(const DetectNetGrid& grid, const float* coverage, const float* boxes, float* objects,
                          std::byte* workspace) override {
    crema::ListDetectNetBoxes(grid, coverage, boxes, objects, workspace);
  }
  size_t DetectNetScoreWorkspace(const DetectNetScoring& scoring) override {
    return crema::DetectNetScoreWorkspace(scoring);
  }
  void ScoreDetectNetBoxes(const DetectNetScoring& scoring, const float* truths, const float* found, float* scored,
                           std::byte* workspace) override {
    crema::ScoreDetectNetBoxes(scoring, truths, found, scored, workspace);
  }
  void MeasureDetectNetBoxes(int64_t rows, const float* scored, const DetectNetMeasures& measures) override {
    crema::MeasureDetectNetBoxes(rows, scored, measures);
  }
};

}  // namespace crema

#endif  // CREMA_OPS_CPU_DETECTORS_H_
