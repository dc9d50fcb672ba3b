// Average precisions of detectors, against numbers worked out by hand.
#include "solver/average_precision.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace crema {
namespace {

constexpr ApVersion kVersions[] = {ApVersion::kElevenPoint, ApVersion::kMaxIntegral, ApVersion::kIntegral};

double Of(const ClassDetections& detections, ApVersion version) { return AveragePrecision(detections, version); }

// As the top of a DetectionEvaluate layer.
Tensor Rows(std::vector<float>& numbers) {
  return Tensor(numbers.data(), {Shape{1, 1, static_cast<int64_t>(numbers.size()) / 5, 5}, DType::kF32});
}

TEST(AveragePrecision, OfAPerfectDetectorIsOne) {
  for (const ApVersion version : kVersions) {
    EXPECT_EQ(Of({3, {{0.5f, true}, {0.9f, true}, {0.7f, true}}}, version), 1.0);
    // What is wrong comes behind all that is right.
    EXPECT_NEAR(Of({3, {{0.5f, true}, {0.9f, true}, {0.1f, false}, {0.7f, true}}}, version), 1.0, 1e-7);
  }
}

TEST(AveragePrecision, OfNothingRightIsZero) {
  for (const ApVersion version : kVersions) {
    EXPECT_EQ(Of({2, {}}, version), 0.0);
    EXPECT_EQ(Of({2, {{0.5f, false}, {0.4f, false}}}, version), 0.0);
    EXPECT_EQ(Of({0, {{0.5f, false}}}, version), 0.0);
  }
}

// By falling score: right, wrong, wrong, right, right; precision 1, 1/2, 1/3, 1/2, 3/5 at a recall of 1/4, 1/4, 1/4,
// 2/4, 3/4.
const ClassDetections kSome = {4, {{0.6f, false}, {0.9f, true}, {0.5f, true}, {0.7f, false}, {0.1f, true}}};

TEST(AveragePrecision, ElevenPointTakesTheHighestPrecisionsAtElevenRecalls) {
  // 0, 0.1, 0.2: 1; 0.3 to 0.7: 3/5; 0.8 to 1: none.
  EXPECT_NEAR(Of(kSome, ApVersion::kElevenPoint), (3 * 1.0 + 5 * 0.6) / 11, 1e-7);
  // Seven of ten, all of them right: to the fork, whose recalls are floats, that is less than 0.7.
  ClassDetections seven = {10, {}};
  for (int i = 0; i < 7; ++i) seven.scores.emplace_back(0.5f, true);
  EXPECT_NEAR(Of(seven, ApVersion::kElevenPoint), 7.0 / 11, 1e-7);
}

TEST(AveragePrecision, MaxIntegralIsTheAreaUnderTheHighestPrecisions) {
  EXPECT_NEAR(Of(kSome, ApVersion::kMaxIntegral), 0.25 * (1 + 0.6 + 0.6), 1e-7);
}

TEST(AveragePrecision, IntegralIsTheAreaUnderThePrecisions) {
  EXPECT_NEAR(Of(kSome, ApVersion::kIntegral), 0.25 * (1 + 0.5 + 0.6), 1e-7);
}

TEST(AveragePrecision, OfEqualScoresTheFirstOneCountsFirst) {
  EXPECT_NEAR(Of({1, {{0.5f, true}, {0.5f, false}}}, ApVersion::kIntegral), 1.0, 1e-7);
  EXPECT_NEAR(Of({1, {{0.5f, false}, {0.5f, true}}}, ApVersion::kIntegral), 0.5, 1e-7);
}

TEST(MeanAveragePrecision, AddsUpBatchesAndLeavesOutClassesWithoutObjects) {
  MeanAveragePrecision mean;
  std::vector<float> first = {-1, 1,  2,    -1, -1,                         // two objects of class 1,
                              -1, 2,  0,    -1, -1,                         // none of class 2
                              -1, 4,  1,    -1, -1,                         // one of class 4
                              0,  1,  0.9f, 1,  0,  0,  1,  0.3f, 0,  1,    // class 1: right, wrong
                              0,  2,  0.8f, 0,  1,  0,  4,  0.7f, 0,  0,    // class 2: wrong; class 4: a difficult one
                              -1, -1, -1,   -1, -1, -1, -1, -1,   -1, -1};  // left over
  std::vector<float> second = {-1, 1, 2,    -1, -1, -1, 2, 0,   -1, -1, -1, 4, 0,    -1, -1,
                               0,  1, 0.5f, 1,  0,  1,  4, NAN, 0,  1,  1,  4, 0.6f, 1,  0};
  mean.Add(Rows(first));
  mean.Add(Rows(second));
  // Class 1: of four objects two are found, before anything that is wrong. Class 4: the only one is found; a score that
  // is no number comes last.
  const std::vector<ClassPrecision> classes = mean.OfClasses(ApVersion::kIntegral);
  ASSERT_EQ(classes.size(), 2u);
  EXPECT_EQ(classes[0].label, 1);
  EXPECT_NEAR(classes[0].value, 0.5, 1e-7);
  EXPECT_EQ(classes[1].label, 4);
  EXPECT_NEAR(classes[1].value, 1.0, 1e-7);
  EXPECT_NEAR(mean.Mean(ApVersion::kIntegral), 0.75, 1e-7);
  EXPECT_NEAR(mean.Mean(ApVersion::kElevenPoint), (6.0 / 11 + 1) / 2, 1e-7);
}

TEST(MeanAveragePrecision, OfNoBatchesIsZero) {
  EXPECT_EQ(MeanAveragePrecision().Mean(ApVersion::kIntegral), 0.0);
  EXPECT_TRUE(MeanAveragePrecision().OfClasses(ApVersion::kIntegral).empty());
}

TEST(ApVersions, AreNamedAsInSolverFiles) {
  EXPECT_EQ(ApVersionOf("11point"), ApVersion::kElevenPoint);
  EXPECT_EQ(ApVersionOf("MaxIntegral"), ApVersion::kMaxIntegral);
  EXPECT_EQ(ApVersionOf("Integral"), ApVersion::kIntegral);
  EXPECT_FALSE(ApVersionOf("integral"));
}

}  // namespace
}  // namespace crema
