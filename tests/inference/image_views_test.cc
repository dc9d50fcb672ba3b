// Views of images: where they are cut out, of files and records, and the mean of what a net makes of them.
#include "inference/image_views.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "crema/error.h"
#include "crema/files.h"
#include "data/data_testing.h"
#include "data/databases/mean_file.h"
#include "image/codec.h"
#include "inference/classifier.h"
#include "inference/image_preparation.h"
#include "inference/scoring_net.h"
#include "inference/small_images.h"
#include "temporary_folder.h"

namespace crema {
namespace {

using Values = std::vector<float>;

Values Views(const ImagePreparation& preparation, const Image& image) {
  PreparationBuffers buffers;
  Values values(static_cast<size_t>(preparation.views() * preparation.input().count()));
  EXPECT_EQ(preparation.FromFile(EncodePng(image), false, &buffers, values.data()), "");
  return values;
}

Values Views(const std::string& param, const Image& image, const ImageSize& input, int views) {
  return Views(ImagePreparation(Param(param), "", input, false, views), image);
}

TEST(ImageViews, AreTheCentreTheCornersAndTheirMirrorImages) {
  Values image(2 * 4 * 5);
  for (size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>(i);
  Values out(10 * 2 * 2 * 2);
  CutViews(image.data(), {2, 4, 5}, {2, 2, 2}, 10, out.data());
  EXPECT_EQ(out, (Values{6,  7,  11, 12, 26, 27, 31, 32,  // centre
                         0,  1,  5,  6,  20, 21, 25, 26,  // upper left
                         3,  4,  8,  9,  23, 24, 28, 29,  // upper right
                         10, 11, 15, 16, 30, 31, 35, 36,  // lower left
                         13, 14, 18, 19, 33, 34, 38, 39,  // lower right
                         7,  6,  12, 11, 27, 26, 32, 31,  // and mirrored
                         1,  0,  6,  5,  21, 20, 26, 25,  //
                         4,  3,  9,  8,  24, 23, 29, 28,  //
                         11, 10, 16, 15, 31, 30, 36, 35,  //
                         14, 13, 19, 18, 34, 33, 39, 38}));
  Values five(5 * 8), two(2 * 8), one(8);
  CutViews(image.data(), {2, 4, 5}, {2, 2, 2}, 5, five.data());
  EXPECT_TRUE(std::equal(five.begin(), five.end(), out.begin()));
  CutViews(image.data(), {2, 4, 5}, {2, 2, 2}, 2, two.data());
  EXPECT_TRUE(std::equal(two.begin(), two.begin() + 8, out.begin()));
  EXPECT_TRUE(std::equal(two.begin() + 8, two.end(), out.begin() + 40));
  CutViews(image.data(), {2, 4, 5}, {2, 2, 2}, 1, one.data());
  EXPECT_TRUE(std::equal(one.begin(), one.end(), out.begin()));
}

TEST(ImageViews, AreAveraged) {
  const Values rows = {1, 2, 3, 8, 5, 5};
  Values mean(2);
  AverageViews(rows.data(), 3, 2, mean.data());
  EXPECT_EQ(mean, (Values{3, 5}));
}

// The first view is what the net sees of the image without others.
TEST(ImageViews, BeginWithTheOnlyOne) {
  const std::string param = "crop_size: 2 resize_shorter_side: 5 mean_value: 3 scale: 0.25";
  const Values one = Views(param, Ramp(6, 8), {1, 2, 2}, 1);
  for (const int views : {2, 5, 10}) {
    const Values all = Views(param, Ramp(6, 8), {1, 2, 2}, views);
    ASSERT_EQ(all.size(), one.size() * static_cast<size_t>(views));
    EXPECT_TRUE(std::equal(one.begin(), one.end(), all.begin())) << views;
  }
}

TEST(ImageViews, AreCutOutOfWhatIsResizedWithoutACropSize) {
  EXPECT_EQ(Views("resize_height: 3 resize_width: 4", Ramp(3, 4), {1, 2, 2}, 5),
            (Values{1, 2, 11, 12, 0, 1, 10, 11, 2, 3, 12, 13, 10, 11, 20, 21, 12, 13, 22, 23}));
  // Of an input that is no square.
  EXPECT_EQ(Views("resize_height: 2 resize_width: 4", Ramp(2, 4), {1, 1, 3}, 2), (Values{0, 1, 2, 2, 1, 0}));
  // Nothing is resized beyond the input: the image and its mirror image.
  EXPECT_EQ(Views("", Ramp(2, 2), {1, 2, 2}, 2), (Values{0, 1, 10, 11, 1, 0, 11, 10}));
}

TEST(ImageViews, TakeTheirPartsOfTheMeanImageAndTheBorder) {
  const TemporaryFolder folder;
  MeanImage mean;
  mean.shape = Shape{1, 4, 4};
  for (int i = 0; i < 16; ++i) mean.values.push_back(static_cast<float>(i));
  WriteMean(mean, folder / "mean");
  // Rows of the image differ by 10, of the mean by 4; columns of both by 1.
  EXPECT_EQ(Views(ImagePreparation(Param("mean_file: \"mean\""), folder / "mean", {1, 2, 2}, false, 5), Ramp(4, 4)),
            (Values{6, 6, 12, 12, 0, 0, 6, 6, 0, 0, 6, 6, 12, 12, 18, 18, 12, 12, 18, 18}));
  EXPECT_EQ(Views("pad: 1 crop_size: 2", Ramp(2, 2), {1, 2, 2}, 5),
            (Values{0, 1, 10, 11, 0, 0, 0, 0, 0, 0, 1, 0, 0, 10, 0, 0, 11, 0, 0, 0}));
}

TEST(ImageViews, OfRecordsOfBytesAndOfFloats) {
  const ImagePreparation preparation(Param("crop_size: 2 scale: 2"), "", {1, 2, 2}, false, 2);
  const Image image = Ramp(4, 4);
  const Values expected = {22, 24, 42, 44, 24, 22, 44, 42};
  PreparationBuffers buffers;
  DatumView record;
  record.size = {1, 4, 4};
  record.data = {image.pixels.data(), image.size()};
  Values values(8);
  EXPECT_EQ(preparation.FromRecord(record, &buffers, values.data()), "");
  EXPECT_EQ(values, expected);

  Datum datum;
  datum.set_channels(1);
  datum.set_height(4);
  datum.set_width(4);
  for (const uint8_t pixel : image.pixels) datum.add_float_data(pixel);
  const std::string bytes = datum.SerializeAsString();
  DatumView floats;
  ASSERT_EQ(ParseDatum(std::as_bytes(std::span(bytes)), &floats), nullptr);
  values.assign(8, 0);
  EXPECT_EQ(preparation.FromRecord(floats, &buffers, values.data()), "");
  EXPECT_EQ(values, expected);
}

TEST(ImageViews, NeedAnImageAsLargeAsTheInput) {
  const ImagePreparation preparation(Param("resize_shorter_side: 2"), "", {1, 2, 3}, false, 2);
  PreparationBuffers buffers;
  Values values(12);
  EXPECT_EQ(preparation.FromFile(EncodePng(Ramp(2, 3)), false, &buffers, values.data()), "");
  const std::string problem = preparation.FromFile(EncodePng(Ramp(2, 2)), false, &buffers, values.data());
  EXPECT_NE(problem.find("comes out as 1x2x2, and is too small to cut the net's input of 1x2x3"), std::string::npos)
      << problem;
}

// Images of one row in memory, whose values are those of Ramp; the second is broken.
class Rows : public ImageItems {
 public:
  explicit Rows(int width) : width_(width) {}
  uint64_t count() const override { return 5; }
  std::string Name(uint64_t i) const override { return "image " + std::to_string(i); }
  std::optional<ImageSize> Size(uint64_t) const override { return ImageSize{1, 1, width_}; }
  std::string Load(uint64_t i, const ImagePreparation& preparation, PreparationBuffers* buffers, float* out,
                   ItemLabel* label) const override {
    label->number = static_cast<int64_t>(i);
    if (i == 1) return "broken";
    Image image = Ramp(1, width_);
    for (int x = 0; x < width_; ++x) image.row(0)[x] = static_cast<uint8_t>(image.row(0)[x] + 10 * i);
    return preparation.FromFile(EncodePng(image), false, buffers, out);
  }

 private:
  const int width_;
};

// The scores of a view of two pixels: the first, the second, and the square of their difference.
ScoringNet Pixels() {
  return MakeScoringNet(ParseNet(R"(
layer { name: "d" type: "Input" top: "d" input_param { shape { dim: 1 dim: 1 dim: 1 dim: 2 } } }
layer { name: "f" type: "Flatten" bottom: "d" top: "f" }
layer { name: "p" type: "Power" bottom: "f" top: "p" power_param { power: 2 } }
)",
                                 "net.prototxt"),
                        "net.prototxt", {});
}

TEST(ImageViews, OfSeveralImagesFillABatchOfTheNet) {
  const auto items = std::make_shared<Rows>(2);
  std::vector<Values> of_batch[3];
  for (const int batch : {0, 1, 2}) {
    ImageRunOptions options;
    options.views = 2;
    options.batch = batch;
    Classifier classifier(Pixels(), *items, options);
    EXPECT_EQ(classifier.runner().rows(), 2 * (batch == 0 ? 5 : batch));
    uint64_t next = 0;
    classifier.Run(items, [&](const ScoredImage& image) {
      EXPECT_EQ(image.index, next++);
      EXPECT_EQ(image.problem, image.index == 1 ? "broken" : "");
      of_batch[batch].emplace_back(image.scores.begin(), image.scores.end());
    });
    ASSERT_EQ(next, 5u);
  }
  // Of x and x + 1 the squares, of either once in each place.
  const auto both = [](float x) { return (x * x + (x + 1) * (x + 1)) / 2; };
  EXPECT_EQ(
      of_batch[0],
      (std::vector<Values>{{both(0), both(0)}, {}, {both(20), both(20)}, {both(30), both(30)}, {both(40), both(40)}}));
  EXPECT_EQ(of_batch[1], of_batch[0]);
  EXPECT_EQ(of_batch[2], of_batch[0]);
}

TEST(ImageViews, TakeAsManyImagesAsHave32OfThem) {
  const Rows items(2);
  ImageRunOptions options;
  options.views = 10;
  options.transform.set_resize_height(3);
  options.transform.set_resize_width(4);
  EXPECT_EQ(Classifier(Pixels(), items, options).runner().rows(), 30);
  options.batch = 100;  // but not more than there are
  EXPECT_EQ(Classifier(Pixels(), items, options).runner().rows(), 50);
}

TEST(ImageViews, AreRefusedWhereAllCornersAreTheSame) {
  const Rows items(4);
  ImageRunOptions options;
  options.views = 10;
  testing::ExpectThrows<UserError>(
      [&] { Classifier(Pixels(), items, options); },
      {"image 0", "comes out as 1x2 (height x width) and the net's input is 1x2", "--resize=2x3", "--views=2"});
  // One direction is not enough.
  options.transform.set_resize_height(1);
  options.transform.set_resize_width(4);
  testing::ExpectThrows<UserError>([&] { Classifier(Pixels(), items, options); }, {"comes out as 1x4"});
  options.views = 2;
  EXPECT_EQ(Classifier(Pixels(), items, options).runner().rows(), 10);
}

// The input of a net for training is as large as what its images are resized to, unless something else says it.
TEST(ImageViews, AskForTheInputOfANetForTraining) {
  const ScoringNet scoring = MakeScoringNet(ParseNet(R"(
layer { name: "d" type: "Data" top: "data" top: "label" }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 4 } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)",
                                                     "net.prototxt"),
                                            "net.prototxt", {});
  const Rows items(2);
  ImageRunOptions options;
  options.views = 10;
  options.transform.set_resize_height(4);
  options.transform.set_resize_width(4);
  testing::ExpectThrows<UserError>([&] { Classifier(scoring, items, options); },
                                   {"comes out as 4x4", "--shape=data=N,C,H,W or crop_size"});
  options.net.shapes = {{"data", Shape{1, 1, 3, 3}}};
  EXPECT_EQ(Classifier(scoring, items, options).runner().rows(), 30);
}

TEST(ImageViews, HaveNoMeanOfSequencesAndNoSizesOfTheirOwn) {
  const Rows items(2);
  ImageRunOptions options;
  options.views = 2;
  const auto scoring = [](const std::string& text) {
    return MakeScoringNet(ParseNet(text, "net.prototxt"), "net.prototxt", {});
  };
  testing::ExpectThrows<UserError>(
      [&] {
        Classifier(scoring(R"(
layer { name: "d" type: "Input" top: "d" input_param { shape { dim: 1 dim: 1 dim: 1 dim: 2 } } }
layer { name: "s" type: "Permute" bottom: "d" top: "s" permute_param { order: 3 order: 0 order: 1 order: 2 } }
layer { name: "r" type: "Reshape" bottom: "s" top: "r" reshape_param { shape { dim: 0 dim: 0 dim: -1 } } }
layer { name: "l" type: "CtcDecoder" bottom: "r" top: "l" }
)"),
                   items, options);
      },
      {"\"l\" holds sequences of labels, which have no mean; leave --views out"});
  testing::ExpectThrows<UserError>(
      [&] {
        Classifier(scoring(R"(
layer { name: "d" type: "Input" top: "d" input_param { shape { dim: 1 dim: 1 dim: 1 dim: 2 } } }
layer { name: "i" type: "Input" top: "im_info" input_param { shape { dim: 1 dim: 3 } } }
layer { name: "p" type: "Proposal" bottom: "d" bottom: "d" bottom: "im_info" top: "p" }
)"),
                   items, options);
      },
      {"the net is told the sizes of images (\"im_info\")", "leave --views out"});
}

}  // namespace
}  // namespace crema
