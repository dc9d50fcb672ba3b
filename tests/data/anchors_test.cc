#include "data/transforms/anchors.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "crema/annotation.pb.h"
#include "data/data_testing.h"
#include "data/databases/annotated_record.h"
#include "temporary_folder.h"

namespace crema {
namespace {

TEST(OverlapOfSides, IsIntersectionByUnion) {
  EXPECT_FLOAT_EQ(OverlapOfSides({10, 20}, {10, 20}), 1);
  EXPECT_FLOAT_EQ(OverlapOfSides({10, 20}, {20, 10}), 100.0f / 300);
  EXPECT_FLOAT_EQ(OverlapOfSides({1, 1}, {4, 2}), 1.0f / 8);
}

// `each` objects about each of the centres, whose sides differ from theirs by at most a twentieth.
std::vector<BoxSides> Around(const std::vector<BoxSides>& centres, int each) {
  const RandomStream random(7, 3);
  std::vector<BoxSides> objects;
  for (uint64_t i = 0; i < static_cast<uint64_t>(each); ++i) {
    for (const BoxSides& centre : centres) {
      const auto near = [&](float side) { return side * (0.95f + 0.1f * random.Uniform(objects.size() + i)); };
      objects.push_back({near(centre.width), near(centre.height)});
    }
  }
  return objects;
}

TEST(FindAnchors, FindsTheSizesThatThereAre) {
  const std::vector<BoxSides> centres = {{10, 12}, {30, 20}, {20, 60}, {120, 80}, {300, 310}};
  for (const int each : {3, 400, 30'000}) {
    const std::vector<BoxSides> objects = Around(centres, each);
    const std::vector<BoxSides> anchors = FindAnchors(objects, 5);
    ASSERT_EQ(anchors.size(), 5U);
    for (size_t k = 0; k < 5; ++k) {
      EXPECT_NEAR(anchors[k].width, centres[k].width, 0.06 * centres[k].width) << each;
      EXPECT_NEAR(anchors[k].height, centres[k].height, 0.06 * centres[k].height) << each;
    }
    EXPECT_GT(MeanOverlap(objects, anchors), 0.9);
  }
}

TEST(FindAnchors, FitBetterTheMoreThereAre) {
  const RandomStream random(1, 1);
  std::vector<BoxSides> objects;
  for (uint64_t i = 0; i < 300; ++i)
    objects.push_back({10 + 290 * random.Uniform(2 * i), 10 + 290 * random.Uniform(2 * i + 1)});
  double last = 0;
  for (const int count : {1, 3, 5, 9, 20}) {
    const std::vector<BoxSides> anchors = FindAnchors(objects, count);
    const double overlap = MeanOverlap(objects, anchors);
    EXPECT_GT(overlap, last + 0.02) << count;
    last = overlap;
    const std::vector<BoxSides> again = FindAnchors(objects, count);
    EXPECT_EQ(MeanOverlap(objects, again), overlap);
  }
  EXPECT_GT(last, 0.75);
}

TEST(FindAnchors, NeedsAsManySizes) {
  const std::vector<BoxSides> objects = {{1, 2}, {3, 4}, {1, 2}};
  EXPECT_EQ(MeanOverlap(objects, FindAnchors(objects, 2)), 1);
  testing::ExpectThrows<UserError>([&] { FindAnchors(objects, 3); }, {"2 different sizes", "3 anchors"});
}

void AddObject(AnnotatedDatum* record, float xmin, float ymin, float xmax, float ymax) {
  NormalizedBBox* const box = record->add_annotation_group()->add_annotation()->mutable_bbox();
  box->set_xmin(xmin);
  box->set_ymin(ymin);
  box->set_xmax(xmax);
  box->set_ymax(ymax);
}

TEST(SidesOfObjects, AreThoseThatTheNetSees) {
  const TemporaryFolder folder;
  AnnotatedDatum wide, none;
  wide.set_type(AnnotatedDatum::BBOX);
  none = wide;
  *wide.mutable_datum() = testing::ImageDatum(3, 20, 40, -1);
  *none.mutable_datum() = testing::ImageDatum(3, 20, 40, -1);
  AddObject(&wide, 0.25f, 0.5f, 0.5f, 1);
  AddObject(&wide, 0.5f, 0.5f, 2, 0.75f);     // over the border
  AddObject(&wide, 0.5f, 0.5f, 0.5f, 0.75f);  // nothing
  testing::WriteRecords(folder / "db", {none.SerializeAsString(), wide.SerializeAsString()});
  const auto source = OpenRecordSource(folder / "db");
  for (const bool keeps : {false, true}) {
    const ObjectSides objects = SidesOfObjects(*source, {80, 80}, keeps);
    EXPECT_EQ(objects.left_out, 1);
    ASSERT_EQ(objects.sides.size(), 2U);
    EXPECT_FLOAT_EQ(objects.sides[0].width, 20);
    EXPECT_FLOAT_EQ(objects.sides[0].height, keeps ? 20 : 40);
    EXPECT_FLOAT_EQ(objects.sides[1].width, 40);
    EXPECT_FLOAT_EQ(objects.sides[1].height, keeps ? 10 : 20);
  }
}

TEST(SidesOfObjects, AreOfRecordsWithObjectsOnly) {
  const TemporaryFolder folder;
  AnnotatedDatum first;
  *first.mutable_datum() = testing::ImageDatum(3, 20, 40, -1);
  testing::WriteRecords(folder / "db", {first.SerializeAsString(), first.datum().SerializeAsString()});
  const auto source = OpenRecordSource(folder / "db");
  testing::ExpectThrows<UserError>([&] { SidesOfObjects(*source, {80, 80}, false); }, {"is no ", "AnnotatedDatum"});
  testing::ExpectThrows<UserError>([&] { CountObjects(*source); }, {"is no ", "AnnotatedDatum"});
}

}  // namespace
}  // namespace crema
