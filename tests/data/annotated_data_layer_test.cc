#include <gtest/gtest.h>

#include <limits>

#include "crema/annotation.pb.h"
#include "data/data_testing.h"
#include "data/databases/annotated_record.h"
#include "data/databases/record_source.h"
#include "data/image_testing.h"
#include "data/source_driver.h"

namespace crema {
namespace {

using testing::ExpectThrows;

class Driver : public testing::SourceDriver {
 public:
  explicit Driver(const std::string& text, Phase phase = TEST,
                  std::vector<std::pair<std::string, Shape>> overrides = {})
      : SourceDriver("AnnotatedData", text, phase, std::move(overrides)) {}
};

void AddObject(AnnotatedDatum* record, int label, const ObjectBox& box, bool difficult = false) {
  AnnotationGroup* group = nullptr;
  for (AnnotationGroup& other : *record->mutable_annotation_group()) {
    if (other.group_label() == label) group = &other;
  }
  if (!group) group = record->add_annotation_group();
  group->set_group_label(label);
  Annotation* annotation = group->add_annotation();
  annotation->set_instance_id(group->annotation_size() - 1);
  NormalizedBBox* to = annotation->mutable_bbox();
  to->set_xmin(box.xmin);
  to->set_ymin(box.ymin);
  to->set_xmax(box.xmax);
  to->set_ymax(box.ymax);
  to->set_difficult(difficult);
}

AnnotatedDatum Record(const Datum& datum) {
  AnnotatedDatum record;
  record.set_type(AnnotatedDatum::BBOX);
  *record.mutable_datum() = datum;
  return record;
}

void Write(const std::string& path, const std::vector<AnnotatedDatum>& records) {
  std::vector<std::string> values;
  for (const AnnotatedDatum& record : records) values.push_back(record.SerializeAsString());
  testing::WriteRecords(path, values);
}

// Record i has i % 4 objects.
void WriteMany(const std::string& path, int count) {
  std::vector<AnnotatedDatum> records;
  for (int i = 0; i < count; ++i) {
    const Image image = testing::Photograph(30 + i, 40 + 2 * i, 3, static_cast<uint64_t>(i));
    records.push_back(Record(testing::EncodedDatum(image, -1, i % 2 == 1)));
    for (int k = 0; k < i % 4; ++k) {
      const float at = 0.1f * static_cast<float>(k + i % 3);
      AddObject(&records.back(), 1 + k % 2, {at, at, at + 0.4f, at + 0.5f}, k == 2);
    }
  }
  Write(path, records);
}

std::string Net(const std::string& path, const std::string& boxes = "", const std::string& transform = "",
                const std::string& data = "") {
  return "top: \"data\" top: \"label\" data_param { source: \"" + path + "\" batch_size: 3 backend: LMDB " + data +
         " } annotated_data_param { " + boxes + " } transform_param { " + transform + " }";
}

constexpr const char* kSamplers =
    "batch_sampler { max_sample: 1 max_trials: 1 } batch_sampler { sampler { min_scale: 0.3 max_scale: 1 "
    "min_aspect_ratio: 0.5 max_aspect_ratio: 2 } sample_constraint { min_jaccard_overlap: 0.3 } max_sample: 1 "
    "max_trials: 50 }";
constexpr const char* kTransform =
    "mirror: true mean_value: 104 mean_value: 117 mean_value: 123 resize_param { prob: 1 resize_mode: WARP height: 24 "
    "width: 20 interp_mode: LINEAR } emit_constraint { emit_type: CENTER } expand_param { prob: 0.5 max_expand_ratio: "
    "4 } distort_param { brightness_prob: 0.5 brightness_delta: 32 contrast_prob: 0.5 contrast_lower: 0.5 "
    "contrast_upper: 1.5 hue_prob: 0.5 hue_delta: 18 saturation_prob: 0.5 saturation_lower: 0.5 saturation_upper: 1.5 "
    "random_order_prob: 0.1 } noise_param { prob: 0 }";

TEST(AnnotatedDataLayer, DeliversImagesAndTheirObjects) {
  TemporaryFolder folder;
  std::vector<AnnotatedDatum> records(4);
  for (int i = 0; i < 4; ++i) records[i] = Record(testing::ImageDatum(1, 2, 3, i));
  AddObject(&records[0], 2, {0.25f, 0.5f, 0.75f, 1});
  AddObject(&records[0], 1, {0, 0, 1, 1}, true);
  AddObject(&records[0], 2, {-0.5f, 0, 0.5f, 2});
  AddObject(&records[2], 3, {0.5f, 0.5f, 1, 1});
  AddObject(&records[2], 3, {0.5f, 0.5f, 0.5f, 1});  // nothing
  Write(folder / "db", records);
  Driver driver(Net(folder / "db", "label_map_file: \"absent\"", "scale: 0.5"));
  EXPECT_EQ(driver.setup().top_specs()[0].shape, (Shape{3, 1, 2, 3}));
  EXPECT_EQ(driver.setup().top_specs()[1].shape, (Shape{1, 1, 9, 8}));
  ASSERT_EQ(driver.setup().warnings().size(), 1u);
  EXPECT_NE(driver.setup().warnings()[0].message.find("1 of 5 objects have boxes that have no area"),
            std::string::npos);
  driver.Forward();
  std::vector<float> expected = {0, 2, 0, 0.25f, 0.5f, 0.75f, 1, 0,  //
                                 0, 2, 1, 0,     0,    0.5f,  1, 0,  //
                                 0, 1, 0, 0,     0,    1,     1, 1,  //
                                 2, 3, 0, 0.5f,  0.5f, 1,     1, 0};
  expected.resize(72, -1);
  EXPECT_EQ(driver.value(1), expected);
  EXPECT_EQ(driver.value(0)[7], 0.5f * 8);
  EXPECT_EQ(driver.layer().DescribeItem(2), "record \"00000002\" of " + folder / "db");
  driver.Forward();  // record 3, 0, 1
  expected = {1, 2, 0, 0.25f, 0.5f, 0.75f, 1, 0, 1, 2, 1, 0, 0, 0.5f, 1, 0, 1, 1, 0, 0, 0, 1, 1, 1};
  expected.resize(72, -1);
  EXPECT_EQ(driver.value(1), expected);
}

// In pixels, of which the last belongs to the object, and of each image by themselves; without difficult ones.
TEST(AnnotatedDataLayer, ThreeTopsAreForRegions) {
  TemporaryFolder folder;
  std::vector<AnnotatedDatum> records(3);
  for (int i = 0; i < 3; ++i) records[i] = Record(testing::ImageDatum(3, 5, 4, i));
  AddObject(&records[0], 2, {0.25f, 0.5f, 0.75f, 1});
  AddObject(&records[0], 1, {0, 0, 1, 1}, true);
  AddObject(&records[2], 3, {0.5f, 0.5f, 0.55f, 0.525f});  // half a pixel and less
  Write(folder / "db", records);
  Driver driver("top: \"data\" top: \"im_info\" top: \"gt_boxes\" data_param { source: \"" + folder / "db" +
                "\" batch_size: 3 } transform_param { resize_height: 20 resize_width: 8 }");
  EXPECT_EQ(driver.setup().top_specs()[0].shape, (Shape{3, 3, 20, 8}));
  EXPECT_EQ(driver.setup().top_specs()[1].shape, (Shape{3, 3}));
  EXPECT_EQ(driver.setup().top_specs()[2].shape, (Shape{3, 2, 5}));
  driver.value(2)[10] = 7;  // what a batch before left
  driver.Forward();
  EXPECT_EQ(driver.value(1), (std::vector<float>{20, 8, 1, 20, 8, 1, 20, 8, 1}));
  EXPECT_EQ(driver.value(2), (std::vector<float>{2,  10, 5,  19, 2,  -1, -1, -1, -1, -1,  //
                                                 -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,  //
                                                 4,  10, 4,  10, 3,  -1, -1, -1, -1, -1}));
}

TEST(AnnotatedDataLayer, AFourthTopIsTheSecondOfTwo) {
  TemporaryFolder folder;
  std::vector<AnnotatedDatum> records(2);
  for (int i = 0; i < 2; ++i) records[i] = Record(testing::ImageDatum(3, 5, 4, i));
  AddObject(&records[1], 2, {0.25f, 0.5f, 0.75f, 1});
  Write(folder / "db", records);
  const std::string rest = " data_param { source: \"" + folder / "db" + "\" batch_size: 2 }";
  Driver two("top: \"data\" top: \"label\"" + rest),
      four("top: \"data\" top: \"im_info\" top: \"gt_boxes\" top: \"label\"" + rest);
  EXPECT_EQ(four.setup().top_specs()[2].shape, (Shape{2, 1, 5}));
  EXPECT_EQ(four.setup().top_specs()[3], two.setup().top_specs()[1]);
  two.Forward();
  four.Forward();
  EXPECT_EQ(four.value(3), two.value(1));
  EXPECT_EQ(four.value(2)[0], -1);
  EXPECT_EQ(four.value(2)[9], 2);
}

TEST(AnnotatedDataLayer, OneTopIsTheImagesAlone) {
  TemporaryFolder folder;
  WriteMany(folder / "db", 5);
  Driver driver("top: \"data\" data_param { source: \"" + folder / "db" +
                "\" batch_size: 2 } transform_param { resize_height: 5 resize_width: 7 }");
  EXPECT_EQ(driver.setup().top_specs()[0].shape, (Shape{2, 3, 5, 7}));
  driver.Forward();
  EXPECT_GE(driver.value(0)[0], 0);
}

TEST(AnnotatedDataLayer, ThreadsAndResumingDoNotChangeBatches) {
  TemporaryFolder folder;
  WriteMany(folder / "db", 11);
  const auto net = [&](const std::string& data) {
    return Net(folder / "db", kSamplers, kTransform, "shuffle: true " + data);
  };
  Driver one(net("threads: 1"), TRAIN), many(net("threads: 5 prefetch: 7"), TRAIN), resumed(net(""), TRAIN);
  EXPECT_EQ(one.setup().top_specs()[0].shape, (Shape{3, 3, 24, 20}));
  EXPECT_EQ(one.setup().top_specs()[1].shape, (Shape{1, 1, 9, 8}));
  resumed.layer().set_position(15);
  std::vector<float> first;
  for (int k = 0; k < 20; ++k) {
    one.Forward();
    many.Forward();
    EXPECT_EQ(one.value(0), many.value(0)) << k;
    EXPECT_EQ(one.value(1), many.value(1)) << k;
    if (k == 0) first = one.value(0);
    if (k < 5) continue;
    resumed.Forward();
    EXPECT_EQ(one.value(0), resumed.value(0)) << k;
    EXPECT_EQ(one.value(1), resumed.value(1)) << k;
  }
  many.Forward(true);
  EXPECT_EQ(one.value(0), many.value(0));
  Driver again(net(""), TRAIN);
  again.Forward(false, 2);
  EXPECT_NE(again.value(0), first);
}

TEST(AnnotatedDataLayer, TestChangesOnlyTheSize) {
  TemporaryFolder folder;
  WriteMany(folder / "db", 4);
  std::string without_mirror = kTransform;
  without_mirror.erase(without_mirror.find("mirror: true"), 12);
  Driver plain(
      Net(folder / "db", "", "mean_value: 104 mean_value: 117 mean_value: 123 resize_height: 24 resize_width: 20"));
  Driver driver(Net(folder / "db", kSamplers, without_mirror));
  for (int k = 0; k < 3; ++k) {
    plain.Forward();
    driver.Forward();
    EXPECT_EQ(driver.value(0), plain.value(0));
    EXPECT_EQ(driver.value(1), plain.value(1));
  }
}

TEST(AnnotatedDataLayer, RoomForObjects) {
  TemporaryFolder folder;
  WriteMany(folder / "db", 4);
  EXPECT_EQ(CountObjects(*OpenRecordSource(folder / "db")).most, 3);
  const std::string resize = "resize_height: 5 resize_width: 5";
  EXPECT_EQ(Driver(Net(folder / "db", "max_boxes: 7", resize)).setup().top_specs()[1].shape, (Shape{1, 1, 21, 8}));
  Driver given(Net(folder / "db", "", resize), TEST, {{"label", Shape{1, 1, 12, 8}}});
  EXPECT_EQ(given.setup().top_specs()[1].shape, (Shape{1, 1, 12, 8}));
  given.Forward();
  ExpectThrows<UserError>(
      [&] {
        Driver(Net(folder / "db", "", resize), TEST, {{"label", Shape{1, 1, 10, 8}}});
      },
      {"expected 1,1,R,8"});
  Driver small(Net(folder / "db", "max_boxes: 2", resize));
  small.Forward();
  ExpectThrows<UserError>([&] { small.Forward(); }, {"data_param.source", "record \"00000003\"", "holds 3 objects",
                                                     "room for 2", "raise max_boxes"});
  const Driver absent(Net("absent", "max_boxes: 7", resize + " force_color: true"));
  EXPECT_EQ(absent.setup().top_specs()[1].shape, (Shape{1, 1, 21, 8}));
  ExpectThrows<UserError>([&] { Driver(Net("absent", "", resize)); }, {"data_param.source", "set max_boxes"});
  testing::WriteRecords(folder / "none", {Record(testing::ImageDatum(3, 4, 4, 0)).SerializeAsString()});
  EXPECT_EQ(Driver(Net(folder / "none")).setup().top_specs()[1].shape, (Shape{1, 1, 3, 8}));
}

TEST(AnnotatedDataLayer, TellsOfBoxesThatAreNone) {
  TemporaryFolder folder;
  std::vector<AnnotatedDatum> records(3, Record(testing::ImageDatum(3, 4, 4, 0)));
  AddObject(&records[0], 1, {0.1f, 0.1f, 0.5f, 0.5f});
  AddObject(&records[1], 1, {0.5f, 0.1f, 0.5f, 0.5f});
  AddObject(&records[2], 1, {0.1f, 0.1f, 0.5f, -0.5f});
  Write(folder / "empty", records);
  Driver empty(Net(folder / "empty"));
  ASSERT_EQ(empty.setup().warnings().size(), 1u);
  const std::string& warning = empty.setup().warnings()[0].message;
  EXPECT_NE(warning.find("2 of 3 objects have boxes that have no area"), std::string::npos) << warning;
  EXPECT_NE(warning.find("first in record \"00000001\""), std::string::npos) << warning;
  empty.Forward();
  AddObject(&records[2], 1, {0.1f, 0.1f, std::numeric_limits<float>::infinity(), 0.5f});
  Write(folder / "endless", records);
  Driver endless(Net(folder / "endless"));
  ExpectThrows<UserError>([&] { endless.Forward(); }, {"record \"00000002\"", "an object of label 1", "is not finite"});
}

TEST(AnnotatedDataLayer, SaysWhatIsWrongWithRecords) {
  TemporaryFolder folder;
  testing::WriteImages(folder / "images", 2, 3, 4, 4);
  ExpectThrows<UserError>([&] { Driver(Net(folder / "images")); },
                          {"data_param.source", "record \"00000000\"", "is no AnnotatedDatum", "layer \"Data\""});
  WriteMany(folder / "db", 2);
  ExpectThrows<UserError>([&] { testing::SourceDriver("Data", Net(folder / "db")); }, {"layer \"AnnotatedData\""});
  AnnotatedDatum untyped = Record(testing::ImageDatum(3, 4, 4, 0));
  untyped.clear_type();
  Write(folder / "untyped", {untyped});
  Driver driver(Net(folder / "untyped"));
  ExpectThrows<UserError>([&] { driver.Forward(); }, {"does not say what its annotations are", "anno_type: BBOX"});
  Driver(Net(folder / "untyped", "anno_type: BBOX")).Forward();
  AnnotatedDatum floats = Record(Datum());
  floats.mutable_datum()->set_channels(1);
  floats.mutable_datum()->set_height(1);
  floats.mutable_datum()->set_width(1);
  floats.mutable_datum()->add_float_data(1);
  Write(folder / "floats", {floats});
  ExpectThrows<UserError>([&] { Driver(Net(folder / "floats")); },
                          {"data_param.source", "record \"00000000\"", "holds float_data"});
  Write(folder / "some_floats", {Record(testing::ImageDatum(1, 1, 1, 0)), floats});
  Driver some_floats(Net(folder / "some_floats"));
  ExpectThrows<UserError>([&] { some_floats.Forward(); }, {"record \"00000001\"", "holds float_data"});
  std::string bytes = untyped.SerializeAsString();
  testing::WriteRecords(folder / "cut", {untyped.SerializeAsString(), bytes.substr(0, bytes.size() - 1)});
  ExpectThrows<UserError>([&] { Driver(Net(folder / "cut")); },
                          {"data_param.source", "record \"00000001\"", "ends in the middle of a field"});
  Write(folder / "sizes", {Record(testing::ImageDatum(3, 4, 4, 0)), Record(testing::ImageDatum(3, 5, 4, 0))});
  Driver sizes(Net(folder / "sizes"));
  // No crop_size, which the layer refuses.
  ExpectThrows<UserError>([&] { sizes.Forward(); },
                          {"record \"00000001\"", "one size, with batch_size 1, too: set resize_param { height: 300"});
  Write(folder / "mixed", {Record(testing::EncodedDatum(testing::Photograph(4, 4), 0)),
                           Record(testing::EncodedDatum(testing::Photograph(4, 4, 1), 0))});
  const std::string means = "mean_value: 1 mean_value: 2 mean_value: 3 ";
  Driver mixed(Net(folder / "mixed", "", means));
  ExpectThrows<UserError>([&] { mixed.Forward(); }, {"record \"00000001\"", "1 channel(s)", "set force_color: true"});
  Driver(Net(folder / "mixed", "", means + "force_color: true")).Forward();
  Write(folder / "grey", {Record(testing::ImageDatum(1, 4, 4, 0))});
  ExpectThrows<UserError>([&] { Driver(Net(folder / "grey", "", kTransform), TRAIN); }, {"data_param.source"});
}

}  // namespace
}  // namespace crema
