#include "data/transforms/annotated_transform.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "data/image_testing.h"
#include "data/transforms/part_sampler.h"

namespace crema {
namespace {

using google::protobuf::TextFormat;

void ExpectBox(const ObjectBox& box, const ObjectBox& expected) {
  EXPECT_NEAR(box.xmin, expected.xmin, 1e-6);
  EXPECT_NEAR(box.ymin, expected.ymin, 1e-6);
  EXPECT_NEAR(box.xmax, expected.xmax, 1e-6);
  EXPECT_NEAR(box.ymax, expected.ymax, 1e-6);
}

AnnotatedTransform Make(const std::string& transform, const std::string& boxes = "", Phase phase = TRAIN) {
  TransformationParameter param;
  AnnotatedDataParameter annotated;
  EXPECT_TRUE(TextFormat::ParseFromString(transform, &param));
  EXPECT_TRUE(TextFormat::ParseFromString(boxes, &annotated));
  return AnnotatedTransform(Transform(param, phase, ""), param, annotated, phase);
}

// Of `count` streams.
template <typename Body>
void ForStreams(uint64_t count, const Body& body) {
  for (uint64_t i = 0; i < count; ++i) body(RandomStream(7, i));
}

std::vector<BoxedObject> Objects(const std::vector<ObjectBox>& boxes) {
  std::vector<BoxedObject> objects;
  for (const ObjectBox& box : boxes) objects.push_back({1 + static_cast<int>(objects.size()), 0, box, false});
  return objects;
}

TEST(Boxes, AreMeasuredByHand) {
  const ObjectBox a{0, 0, 0.5f, 0.5f}, b{0.25f, 0.25f, 0.75f, 0.75f}, apart{0.5f, 0, 1, 0.5f};
  EXPECT_EQ(IntersectionArea(a, b), 0.0625f);
  EXPECT_FLOAT_EQ(IntersectionByUnion(a, b), 0.0625f / 0.4375f);
  EXPECT_EQ(Coverage(a, b), 0.25f);
  EXPECT_EQ(IntersectionArea(a, apart), 0);
  EXPECT_EQ(IntersectionByUnion(a, apart), 0);
  EXPECT_EQ((ObjectBox{0.5f, 0, 0, 1}).area(), 0);
  ExpectBox(Clipped({-1, 0.5f, 2, 0.75f}), {0, 0.5f, 1, 0.75f});
  ExpectBox(Mirrored({0.1f, 0.2f, 0.4f, 0.9f}), {0.6f, 0.2f, 0.9f, 0.9f});
}

TEST(Boxes, AreProjectedToParts) {
  ObjectBox box{0.25f, 0.25f, 0.75f, 0.75f};
  EXPECT_TRUE(Project({0.5f, 0, 1, 0.5f}, &box));
  ExpectBox(box, {0, 0.5f, 0.5f, 1});
  box = {0.25f, 0.25f, 0.75f, 0.75f};
  EXPECT_TRUE(Project({-1, -1, 3, 1}, &box));  // the image lies in a larger one
  ExpectBox(box, {0.3125f, 0.625f, 0.4375f, 0.875f});
  box = {0, 0, 0.5f, 1};
  EXPECT_FALSE(Project({0.5f, 0, 1, 1}, &box));
  box = {0.2f, 0.2f, 0.2f, 0.4f};
  EXPECT_FALSE(Project({0, 0, 1, 1}, &box));
}

TEST(PartSampler, DrawsScalesAndProportionsWithinTheImage) {
  Sampler sampler;
  ASSERT_TRUE(
      TextFormat::ParseFromString("min_scale: 0.3 max_scale: 1 min_aspect_ratio: 0.5 max_aspect_ratio: 2", &sampler));
  float least = 1, most = 0, narrow = 1, wide = 1;
  ForStreams(2000, [&](const RandomStream& random) {
    const ObjectBox part = DrawPart(sampler, random, 100);
    EXPECT_TRUE(part.xmin >= 0 && part.ymin >= 0 && part.xmax <= 1.00001f && part.ymax <= 1.00001f);
    const float scale = std::sqrt(part.area()), aspect = part.width() / part.height();
    least = std::min(least, scale);
    most = std::max(most, scale);
    narrow = std::min(narrow, aspect);
    wide = std::max(wide, aspect);
  });
  EXPECT_NEAR(least, 0.3, 0.01);
  EXPECT_NEAR(most, 1, 0.01);
  EXPECT_TRUE(narrow >= 0.499f && narrow < 0.52f) << narrow;
  EXPECT_TRUE(wide <= 2.001f && wide > 1.9f) << wide;
  ExpectBox(DrawPart(Sampler(), RandomStream(1, 1), 0), {0, 0, 1, 1});
}

TEST(PartSampler, OneObjectMustFulfilAll) {
  const ObjectBox part{0, 0, 0.5f, 0.5f};
  const auto fulfils = [&](const std::string& text, const std::vector<ObjectBox>& boxes) {
    SampleConstraint constraint;
    EXPECT_TRUE(TextFormat::ParseFromString(text, &constraint));
    return Fulfils(part, Objects(boxes), constraint);
  };
  const ObjectBox same = part, quarter{0.25f, 0.25f, 0.75f, 0.75f}, small{0, 0, 0.25f, 0.25f};
  EXPECT_TRUE(fulfils("", {}));
  EXPECT_FALSE(fulfils("min_jaccard_overlap: 0", {}));
  EXPECT_TRUE(fulfils("min_jaccard_overlap: 1", {small, same}));
  EXPECT_FALSE(fulfils("min_jaccard_overlap: 0.3", {small, quarter}));
  EXPECT_TRUE(fulfils("min_jaccard_overlap: 0.2", {small, quarter}));
  EXPECT_FALSE(fulfils("max_jaccard_overlap: 0.2", {same}));
  EXPECT_TRUE(fulfils("min_sample_coverage: 0.25", {small}));
  EXPECT_FALSE(fulfils("min_sample_coverage: 0.3", {small}));
  EXPECT_TRUE(fulfils("min_object_coverage: 1", {small}));
  EXPECT_FALSE(fulfils("min_object_coverage: 0.5", {quarter}));
  EXPECT_TRUE(fulfils("min_object_coverage: 0.9 max_sample_coverage: 0.3", {same, small}));
  EXPECT_FALSE(fulfils("min_jaccard_overlap: 1 max_object_coverage: 0.5", {same}));
  EXPECT_FALSE(fulfils("min_object_coverage: 1 max_sample_coverage: 0.5", {same}));
  // Two objects, each of which fulfils one.
  EXPECT_FALSE(fulfils("min_sample_coverage: 0.9 max_object_coverage: 0.5", {same, quarter}));
}

TEST(PartSampler, ChoosesAmongAllThatWereFound) {
  AnnotatedDataParameter param;
  ASSERT_TRUE(TextFormat::ParseFromString(
      "batch_sampler { max_sample: 1 max_trials: 1 }"
      "batch_sampler { sampler { min_scale: 0.5 max_scale: 0.5 } max_sample: 3 max_trials: 10 }"
      "batch_sampler { sampler { min_scale: 0.1 max_scale: 0.1 } sample_constraint { min_jaccard_overlap: 0.9 } }",
      &param));
  const PartSampler sampler(param);
  std::vector<ObjectBox> found;
  int whole = 0;
  ForStreams(1000, [&](const RandomStream& random) {
    const auto part = sampler.Draw(Objects({{0, 0, 1, 1}}), random, 0, &found);
    ASSERT_TRUE(part.has_value());
    EXPECT_EQ(found.size(), 4u);
    whole += part->width() == 1;
  });
  EXPECT_NEAR(whole, 250, 60);
  param.mutable_batch_sampler()->DeleteSubrange(0, 2);
  EXPECT_FALSE(PartSampler(param).Draw(Objects({{0, 0, 1, 1}}), RandomStream(1, 1), 0, &found).has_value());
}

TEST(PartSampler, JittersWhateverThereIs) {
  AnnotatedDataParameter param;
  ASSERT_TRUE(TextFormat::ParseFromString(
      "yolo_data_type: 1 yolo_data_jitter: 0.4 batch_sampler { max_sample: 1 max_trials: 1 }", &param));
  const PartSampler sampler(param);
  ASSERT_TRUE(sampler.draws());
  std::vector<ObjectBox> parts;
  float least = 1, most = 0, left = 1, right = 0;
  ForStreams(500, [&](const RandomStream& random) {
    const std::optional<ObjectBox> part = sampler.Draw({}, random, 5, &parts);
    ASSERT_TRUE(part.has_value());
    for (const float side : {part->xmax - part->xmin, part->ymax - part->ymin}) {
      EXPECT_GE(side, 0.6f - 1e-6f);
      EXPECT_LE(side, 1.0f);
      least = std::min(least, side);
      most = std::max(most, side);
    }
    EXPECT_GE(part->xmin, 0);
    EXPECT_GE(part->ymin, 0);
    EXPECT_LE(part->xmax, 1 + 1e-6f);
    EXPECT_LE(part->ymax, 1 + 1e-6f);
    left = std::min(left, part->xmin);
    right = std::max(right, part->xmax);
  });
  EXPECT_LT(least, 0.61f);
  EXPECT_GT(most, 0.99f);
  EXPECT_LT(left, 0.01f);
  EXPECT_GT(right, 0.99f);
}

// What is less than a pixel of what the net sees is as nothing to Darknet; all else that is seen of an object is
// learnt.
TEST(AnnotatedTransform, JitterLeavesOutWhatIsLessThanAPixel) {
  const auto jitters = Make("resize_height: 10 resize_width: 20", "yolo_data_type: 1 yolo_data_jitter: 0");
  const auto whole = Make("resize_height: 10 resize_width: 20");
  const std::vector<BoxedObject> all =
      Objects({{0, 0, 0.06f, 0.2f}, {0, 0, 0.04f, 0.2f}, {0.5f, 0.5f, 1, 0.59f}, {0.5f, 0.5f, 1, 0.61f}});
  ForStreams(20, [&](const RandomStream& random) {
    std::vector<ObjectBox> parts;
    std::vector<BoxedObject> objects = all;
    jitters.Look({100, 200}, random, &parts, &objects);
    ASSERT_EQ(objects.size(), 2u);
    EXPECT_EQ(objects[0].label, 1);
    EXPECT_EQ(objects[1].label, 4);
    objects = all;
    whole.Look({100, 200}, random, &parts, &objects);
    EXPECT_EQ(objects.size(), 4u);
  });
}

TEST(AnnotatedTransform, KeepsWhatTheConstraintSays) {
  const std::string half = "batch_sampler { sampler { min_scale: 0.5 max_scale: 0.5 } max_trials: 1 }";
  const auto none = Make("resize_height: 8 resize_width: 8", half);
  const auto centre = Make("resize_height: 8 resize_width: 8 emit_constraint { }", half);
  const auto most =
      Make("resize_height: 8 resize_width: 8 emit_constraint { emit_type: MIN_OVERLAP emit_overlap: 0.3 }", half);
  const auto least =
      Make("resize_height: 8 resize_width: 8 emit_constraint { emit_type: MIN_OVERLAP emit_overlap: 0.2 }", half);
  int centres = 0;
  ForStreams(200, [&](const RandomStream& random) {
    std::vector<ObjectBox> parts;
    const std::vector<BoxedObject> all = Objects({{0, 0, 1, 1}, {0, 0, 0.1f, 0.1f}, {0.4f, 0.4f, 0.6f, 0.6f}});
    std::vector<BoxedObject> objects = all;
    const AnnotatedView view = none.Look({100, 200}, random, &parts, &objects);
    ASSERT_EQ(parts.size(), 1u);
    EXPECT_EQ(view.part, (ImageArea{static_cast<int>(parts[0].ymin * 100), static_cast<int>(parts[0].xmin * 200),
                                    view.part.height, view.part.width}));
    const auto left = static_cast<float>(view.part.left), top = static_cast<float>(view.part.top);
    const ObjectBox part = {left / 200, top / 100, (left + static_cast<float>(view.part.width)) / 200,
                            (top + static_cast<float>(view.part.height)) / 100};
    EXPECT_NEAR(view.part.height, 50, 1);
    EXPECT_NEAR(view.part.width, 100, 1);
    EXPECT_EQ(objects[0].label, 1);
    ExpectBox(objects[0].box, {0, 0, 1, 1});
    const bool corner = part.xmin < 0.1f && part.ymin < 0.1f;
    EXPECT_EQ(std::count_if(objects.begin(), objects.end(), [](const auto& object) { return object.label == 2; }),
              corner);
    objects = all;
    centre.Look({100, 200}, random, &parts, &objects);
    const bool shows = part.xmin <= 0.5f && part.xmax >= 0.5f && part.ymin <= 0.5f && part.ymax >= 0.5f;
    centres += shows;
    EXPECT_EQ(!objects.empty() && objects[0].label == 1, shows);
    objects = all;
    most.Look({100, 200}, random, &parts, &objects);
    EXPECT_TRUE(objects.empty() || objects[0].label != 1);
    objects = all;
    least.Look({100, 200}, random, &parts, &objects);
    EXPECT_TRUE(!objects.empty() && objects[0].label == 1);
  });
  EXPECT_GT(centres, 0);
}

// Not the part as it was drawn, which begins and ends between pixels.
TEST(AnnotatedTransform, BoxesAreThoseOfThePixelsThatAreCutOut) {
  const auto transform = Make("resize_height: 8 resize_width: 8 expand_param { max_expand_ratio: 2 prob: 0.5 }",
                              "batch_sampler { sampler { min_scale: 0.3 max_scale: 0.9 } max_trials: 1 }");
  ForStreams(200, [&](const RandomStream& random) {
    std::vector<ObjectBox> parts;
    std::vector<BoxedObject> objects = Objects({{0.25f, 0.5f, 0.75f, 1}});
    const AnnotatedView view = transform.Look({20, 40}, random, &parts, &objects);
    const auto share = [](int place, int begin, int pixels) {
      return std::clamp(static_cast<float>(place - begin) / static_cast<float>(pixels), 0.0f, 1.0f);
    };
    const ImageArea& part = view.part;
    const ObjectBox expected = {
        share(view.left + 10, part.left, part.width), share(view.top + 10, part.top, part.height),
        share(view.left + 30, part.left, part.width), share(view.top + 20, part.top, part.height)};
    ASSERT_EQ(objects.size(), expected.area() > 0 ? 1u : 0u);
    if (!objects.empty()) ExpectBox(objects[0].box, expected);
  });
}

TEST(AnnotatedTransform, BoxesOfNothingAreLeftOut) {
  const float nan = std::nanf(""), most = std::numeric_limits<float>::max();
  const std::vector<BoxedObject> all = Objects({{nan, 0, 1, 1},
                                                {0, 0, nan, nan},
                                                {0.5f, 0.5f, 0.5f, 0.5f},
                                                {0.6f, 0.2f, 0.4f, 0.8f},
                                                {1.2f, 1.2f, 1.5f, 1.5f},
                                                {-1, -1, -0.1f, -0.1f},
                                                {0.1f, 0.1f, 0.1f + 1e-8f, 0.9f},
                                                {-most, -most, most, most}});
  const auto transform = Make("mirror: true resize_height: 8 resize_width: 8 expand_param { max_expand_ratio: 4 }",
                              "batch_sampler { max_trials: 1 }");
  ForStreams(200, [&](const RandomStream& random) {
    std::vector<ObjectBox> parts;
    std::vector<BoxedObject> objects = all;
    transform.Look({20, 40}, random, &parts, &objects);
    for (const auto& [label, instance, box, difficult] : objects) {
      EXPECT_EQ(label, 8);
      EXPECT_TRUE(box.xmin >= 0 && box.ymin >= 0 && box.xmax <= 1 && box.ymax <= 1 && box.area() > 0) << label;
    }
  });
}

TEST(AnnotatedTransform, ExpandsAroundTheImage) {
  const auto transform = Make("resize_height: 8 resize_width: 8 expand_param { prob: 0.5 max_expand_ratio: 4 }");
  int expanded = 0;
  float largest = 1;
  ForStreams(1000, [&](const RandomStream& random) {
    std::vector<ObjectBox> parts;
    std::vector<BoxedObject> objects = Objects({{0.25f, 0.5f, 0.75f, 1}});
    const AnnotatedView view = transform.Look({60, 80}, random, &parts, &objects);
    ASSERT_EQ(objects.size(), 1u);
    EXPECT_TRUE(view.top >= 0 && view.top + 60 <= view.canvas.height);
    EXPECT_TRUE(view.left >= 0 && view.left + 80 <= view.canvas.width);
    EXPECT_EQ(view.part, (ImageArea{0, 0, view.canvas.height, view.canvas.width}));
    const auto width = static_cast<float>(view.canvas.width), height = static_cast<float>(view.canvas.height);
    const auto left = static_cast<float>(view.left), top = static_cast<float>(view.top);
    ExpectBox(objects[0].box, {(left + 20) / width, (top + 30) / height, (left + 60) / width, (top + 60) / height});
    expanded += view.canvas.width > 80;
    largest = std::max(largest, width / 80);
  });
  EXPECT_NEAR(expanded, 500, 70);
  EXPECT_NEAR(largest, 4, 0.1);
}

TEST(AnnotatedTransform, MirrorsBoxesWithTheirImage) {
  const auto transform = Make("mirror: true", "", TEST);
  int mirrored = 0;
  ForStreams(100, [&](const RandomStream& random) {
    Image image;
    image.Resize(1, 4, 1);
    for (int x = 0; x < 4; ++x) image.pixels[static_cast<size_t>(x)] = static_cast<uint8_t>(x);
    std::vector<BoxedObject> objects = Objects({{0, 0, 0.25f, 1}, {-1, 0, 0.5f, 2}, {0.5f, 0, 0.5f, 1}});
    AnnotatedScratch scratch;
    std::vector<float> out(4);
    transform.Apply(&image, random, &scratch, &objects, out.data());
    ASSERT_EQ(objects.size(), 2u);
    const bool is = out[0] == 3;
    EXPECT_EQ(out[3], is ? 0 : 3);
    ExpectBox(objects[0].box, is ? ObjectBox{0.75f, 0, 1, 1} : ObjectBox{0, 0, 0.25f, 1});
    ExpectBox(objects[1].box, is ? ObjectBox{0.5f, 0, 1, 1} : ObjectBox{0, 0, 0.5f, 1});
    mirrored += is;
  });
  EXPECT_NEAR(mirrored, 50, 20);
}

// Against the same done in the plainest way: the whole canvas, its part, resized.
TEST(AnnotatedTransform, PixelsAreThoseOfThePart) {
  const auto transform = Make(
      "resize_param { height: 9 width: 7 } expand_param { max_expand_ratio: 2 } mean_value: 10 mean_value: 20 "
      "mean_value: 30.4",
      "batch_sampler { sampler { min_scale: 0.3 max_scale: 1 min_aspect_ratio: 0.5 max_aspect_ratio: 2 } }");
  ForStreams(40, [&](const RandomStream& random) {
    Image image = testing::Photograph(20, 30);
    std::vector<ObjectBox> parts;
    std::vector<BoxedObject> objects;
    const AnnotatedView view = transform.Look({20, 30}, random, &parts, &objects);
    Image canvas;
    canvas.Resize(view.canvas.height, view.canvas.width, 3);
    for (size_t i = 0; i < canvas.size(); ++i) canvas.pixels[i] = static_cast<uint8_t>(10 * (i % 3 + 1));
    for (int y = 0; y < 20; ++y) {
      std::copy_n(image.row(y), 90, canvas.row(view.top + y) + view.left * 3);
    }
    Image resized;
    ResizeBuffers buffers;
    ResizeBilinear(canvas, view.part, 9, 7, &buffers, &resized);
    std::vector<float> out(3 * 63);
    AnnotatedScratch scratch;
    transform.Apply(&image, random, &scratch, &objects, out.data());
    const float means[] = {10, 20, 30.4f};
    for (size_t i = 0; i < out.size(); ++i) {
      ASSERT_EQ(out[i], static_cast<float>(resized.pixels[i % 63 * 3 + i / 63]) - means[i / 63]) << i;
    }
  });
}

TEST(AnnotatedTransform, ColoursNeedThreeChannels) {
  EXPECT_EQ(Make("distort_param { brightness_prob: 1 }").Check({1, 5, 5}), "");
  EXPECT_EQ(Make("distort_param { hue_prob: 1 }").Check({3, 5, 5}), "");
  EXPECT_EQ(Make("distort_param { hue_prob: 1 }", "", TEST).Check({1, 5, 5}), "");
  EXPECT_NE(Make("distort_param { hue_prob: 1 }").Check({1, 5, 5}).find("set force_color: true"), std::string::npos);
}

}  // namespace
}  // namespace crema
