#include "ops/detection/region_targets.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <set>

#include "comparison.h"
#include "ops/detection/region_targets_formulas.h"

namespace crema {
namespace {

constexpr float kHeight = 240, kWidth = 320;

// Corners of a box of 20 to 140 pixels in the image, by four numbers in [-1, 1).
std::vector<float> RandomBox(const float* random) {
  const float width = 80 + 60 * random[0], height = 80 + 60 * random[1];
  const float x = (kWidth - width) * (random[2] + 1) / 2, y = (kHeight - height) * (random[3] + 1) / 2;
  return {x, y, x + width - 1, y + height - 1};
}

// Every third row is none.
std::vector<float> RandomObjects(const RegionObjects& o, uint64_t stream) {
  const std::vector<float> random = RandomValues(o.images * o.rows * 4, stream);
  std::vector<float> objects;
  for (int64_t i = 0; i < o.images * o.rows; ++i) {
    std::vector<float> row = i % 3 == 2 ? std::vector<float>(4, -1) : RandomBox(&random[4 * i]);
    row.push_back(i % 3 == 2 ? -1 : static_cast<float>(1 + i % (o.classes - 1)));
    objects.insert(objects.end(), row.begin(), row.end());
  }
  return objects;
}

struct Anchored {
  std::vector<float> labels, offsets, inside_weights, outside_weights;
};

AnchorTargetProblem SomeAnchors() {
  AnchorTargetProblem p;
  p.objects = {2, 6, 5};
  p.anchors.height = 15;
  p.anchors.width = 20;
  p.anchors.shapes = 3;
  p.anchors.boxes[0] = {-24, -24, 40, 40};
  p.anchors.boxes[1] = {-37, -14, 53, 30};
  p.anchors.boxes[2] = {-14, -37, 30, 53};
  p.positive_overlap = 0.4f;
  p.batch = 100000;
  p.foreground = 50000;
  return p;
}

Anchored Compute(const AnchorTargetProblem& p, uint64_t pass = 0) {
  const int64_t count = p.objects.images * p.anchors.count();
  Anchored made = {Poison(count), Poison(4 * count), Poison(4 * count), Poison(4 * count)};
  std::vector<float> info;
  for (int64_t i = 0; i < p.objects.images; ++i) info.insert(info.end(), {kHeight, kWidth, 1});
  const std::vector<float> objects = RandomObjects(p.objects, 5);
  const PoisonedWorkspace workspace(AnchorTargetWorkspace(p));
  MakeAnchorTargets(p, RandomStream(1, StreamId(3, pass)), info.data(), objects.data(),
                    {made.labels.data(), made.offsets.data(), made.inside_weights.data(), made.outside_weights.data()},
                    workspace.data());
  return made;
}

int64_t CountOf(const std::vector<float>& labels, int64_t images, int64_t image, float label) {
  const auto of_image = static_cast<int64_t>(labels.size()) / images;
  return std::count(labels.begin() + image * of_image, labels.begin() + (image + 1) * of_image, label);
}

TEST(AnchorTargets, SomeOfTheAnchorsCount) {
  AnchorTargetProblem p = SomeAnchors();
  const Anchored all = Compute(p);
  p.batch = 64;
  for (const int64_t foreground : {0, 16, 64}) {
    p.foreground = foreground;
    const Anchored some = Compute(p);
    EXPECT_EQ(some.offsets, all.offsets);
    for (int64_t image = 0; image < 2; ++image) {
      const int64_t objects = CountOf(all.labels, 2, image, 1);
      ASSERT_GT(objects, 16);
      const int64_t drawn = std::min(objects, foreground);
      EXPECT_EQ(CountOf(some.labels, 2, image, 1), drawn);
      EXPECT_EQ(CountOf(some.labels, 2, image, 0), 64 - drawn);
    }
    const int64_t anchors = p.anchors.count(), pixels = p.anchors.pixels();
    for (int64_t i = 0; i < 2 * anchors; ++i) {
      const float label = some.labels[i];
      ASSERT_TRUE(label == -1 || label == all.labels[i]) << i;
      for (int64_t k = 0; k < 4; ++k) {
        const int64_t at = (i / pixels * 4 + k) * pixels + i % pixels;
        ASSERT_EQ(some.inside_weights[at], label == 1 ? 1 : 0);
        ASSERT_EQ(some.outside_weights[at], label >= 0 ? 1 / 64.0f : 0);
      }
    }
  }
}

TEST(AnchorTargets, DrawsAnewInEachPassAndOnAnyThreadsAlike) {
  AnchorTargetProblem p = SomeAnchors();
  p.batch = 32;
  p.foreground = 8;
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  const Anchored one = Compute(p);
  omp_set_num_threads(2);
  const Anchored two = Compute(p);
  omp_set_num_threads(before);
  EXPECT_EQ(one.labels, two.labels);
  EXPECT_EQ(one.offsets, two.offsets);
  EXPECT_EQ(one.outside_weights, two.outside_weights);
  EXPECT_NE(Compute(p, 1).labels, one.labels);
}

// How often each is drawn, in so many passes, lies about the mean.
TEST(AnchorTargets, DrawsAllAlike) {
  AnchorTargetProblem p = SomeAnchors();
  p.objects.images = 1;
  const Anchored all = Compute(p);
  const auto objects = static_cast<double>(CountOf(all.labels, 1, 0, 1));
  p.batch = p.foreground = 10;
  constexpr int kPasses = 2000;
  std::vector<int> drawn(all.labels.size());
  for (int pass = 0; pass < kPasses; ++pass) {
    const Anchored some = Compute(p, static_cast<uint64_t>(pass));
    for (size_t i = 0; i < drawn.size(); ++i) drawn[i] += some.labels[i] == 1;
  }
  const double share = 10 / objects, mean = kPasses * share, deviation = std::sqrt(mean * (1 - share));
  for (size_t i = 0; i < drawn.size(); ++i) {
    ASSERT_NEAR(drawn[i], all.labels[i] == 1 ? mean : 0, 5 * deviation) << i;
  }
}

struct Regions {
  std::vector<float> regions, labels, offsets, inside_weights, outside_weights;

  std::vector<float> Region(int64_t row) const {
    return {regions.begin() + row * kRegionNumbers, regions.begin() + (row + 1) * kRegionNumbers};
  }
};

RegionTargetProblem SomeRegions() {
  RegionTargetProblem p;
  p.objects = {2, 9, 4};
  p.classes = 4;
  p.proposals = 400;
  p.batch = 40;
  p.foreground = 10;
  p.foreground_overlap = 0.3f;
  p.background_below = 0.3f;
  p.background_above = 0.05f;
  p.variance = {{0.1f, 0.1f, 0.2f, 0.2f}};
  return p;
}

// The first of the two images has proposals, of which every fifth is none; the second has those that are none.
std::vector<float> RandomProposals(const RegionTargetProblem& p) {
  const std::vector<float> random = RandomValues(p.objects.images * p.proposals * 4, 7);
  std::vector<float> proposals;
  for (int64_t i = 0; i < p.objects.images * p.proposals; ++i) {
    const std::vector<float> box = RandomBox(&random[4 * i]);
    proposals.push_back(i < p.proposals && i % 5 != 4 ? 0 : kNoRegion);
    proposals.insert(proposals.end(), box.begin(), box.end());
  }
  return proposals;
}

Regions Compute(const RegionTargetProblem& p, uint64_t pass = 0) {
  const int64_t rows = p.objects.images * p.batch, numbers = rows * 4 * p.objects.classes;
  Regions made = {Poison(rows * kRegionNumbers), Poison(rows), Poison(numbers), Poison(numbers), Poison(numbers)};
  const std::vector<float> objects = RandomObjects(p.objects, 5), proposals = RandomProposals(p);
  const PoisonedWorkspace workspace(RegionTargetWorkspace(p));
  MakeRegionTargets(p, RandomStream(1, StreamId(3, pass)), proposals.data(), objects.data(),
                    {made.regions.data(), made.labels.data(), made.offsets.data(), made.inside_weights.data(),
                     made.outside_weights.data()},
                    workspace.data());
  return made;
}

float LargestOverlap(const RegionTargetProblem& p, int64_t image, const std::vector<float>& region) {
  const std::vector<float> objects = RandomObjects(p.objects, 5);
  float largest = 0;
  for (int64_t row = image * p.objects.rows; row < (image + 1) * p.objects.rows; ++row) {
    const float* object = &objects[row * kRegionObjectNumbers];
    if (object[4] < 0) continue;
    largest = std::max(largest, boxes::Overlap(anchors::FromPixels(&region[1]), anchors::FromPixels(object)));
  }
  return largest;
}

TEST(RegionTargets, ObjectsThenBackgroundEachOnce) {
  const RegionTargetProblem p = SomeRegions();
  const Regions made = Compute(p);
  std::set<std::vector<float>> different;
  for (int64_t row = 0; row < p.batch; ++row) {
    const std::vector<float> region = made.Region(row);
    const float overlap = LargestOverlap(p, 0, region);
    EXPECT_EQ(region[0], 0);
    EXPECT_TRUE(different.insert(region).second) << row;
    EXPECT_EQ(made.labels[row] > 0, row < p.foreground);
    EXPECT_EQ(overlap >= 0.3f, row < p.foreground) << overlap;
    EXPECT_GE(overlap, 0.05f);
    for (int64_t i = 0; i < 4 * p.objects.classes; ++i) {
      const auto at = static_cast<size_t>(row * 4 * p.objects.classes + i);
      const bool own = row < p.foreground && static_cast<float>(i / 4) == made.labels[row];
      ASSERT_EQ(made.inside_weights[at], own ? 1 : 0);
      ASSERT_EQ(made.outside_weights[at], own ? 1 : 0);
      ASSERT_EQ(made.offsets[at] != 0, own && LargestOverlap(p, 0, region) < 1);
    }
  }
}

// The second image has its 6 objects alone.
TEST(RegionTargets, TooFewBeginAnew) {
  const RegionTargetProblem p = SomeRegions();
  const Regions made = Compute(p);
  std::set<std::vector<float>> different;
  for (int64_t row = p.batch; row < 2 * p.batch; ++row) {
    different.insert(made.Region(row));
    EXPECT_GT(made.labels[row], 0);
    if (row < p.batch + 6) continue;
    EXPECT_EQ(made.Region(row), made.Region(row - 6));
    EXPECT_EQ(made.labels[row], made.labels[row - 6]);
  }
  EXPECT_EQ(different.size(), 6);
}

TEST(RegionTargets, DrawsAnewInEachPassAndOnAnyThreadsAlike) {
  const RegionTargetProblem p = SomeRegions();
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  const Regions one = Compute(p);
  omp_set_num_threads(2);
  const Regions two = Compute(p);
  omp_set_num_threads(before);
  EXPECT_EQ(one.regions, two.regions);
  EXPECT_EQ(one.labels, two.labels);
  EXPECT_EQ(one.offsets, two.offsets);
  EXPECT_NE(Compute(p, 1).regions, one.regions);
}

TEST(RegionTargets, RanksTellTheirKindAndIndex) {
  const RandomStream random(1, 2);
  using region_targets::Kind;
  for (const int64_t index : {int64_t{0}, int64_t{77}, (int64_t{1} << 31) - 2}) {
    for (const Kind kind : {Kind::kOther, Kind::kBackground, Kind::kObject}) {
      const uint64_t rank = region_targets::RankOf(kind, random, 5, index);
      EXPECT_EQ(region_targets::KindOf(rank), kind);
      EXPECT_EQ(region_targets::IndexOf(rank), index);
    }
  }
}

}  // namespace
}  // namespace crema
