// Databases of compressed images.
#include <gtest/gtest.h>

#include <thread>

#include "data/data_testing.h"
#include "data/image_testing.h"
#include "data/loaders/datum_loader.h"
#include "data/loaders/encoded_image.h"
#include "data/loaders/prefetcher.h"

namespace crema {
namespace {

using testing::EncodedDatum;
using testing::ExpectThrows;
using testing::Photograph;

std::shared_ptr<const DatumLoader> Loader(const std::string& path, const TransformationParameter& param = {},
                                          Phase phase = TRAIN) {
  SampleOrder order;
  order.shuffle = phase == TRAIN;
  return std::make_shared<DatumLoader>(OpenRecordSource(path), Transform(param, phase, ""), order);
}

// What the stream holds at a position.
std::vector<float> Load(const DatumLoader& loader, uint64_t position) {
  std::vector<float> data(loader.item_shape().count());
  float label = 0;
  ItemScratch scratch;
  loader.Load(position, data.data(), &label, scratch);
  return data;
}

TransformationParameter Everything() {
  TransformationParameter param;
  param.set_crop_size(16);
  param.set_mirror(true);
  param.set_mirror_vertical(true);
  param.set_max_rotation_angle(20);
  param.mutable_random_resized_crop();
  param.mutable_random_erasing();
  param.mutable_trivial_augment();
  param.mutable_gaussian_blur();
  param.mutable_color_jitter()->set_brightness(0.4f);
  param.mutable_color_jitter()->set_contrast(0.4f);
  param.mutable_color_jitter()->set_saturation(0.4f);
  for (const float mean : {104.0f, 117.0f, 123.0f}) param.add_mean_value(mean);
  param.add_std_value(58);
  return param;
}

TEST(EncodedRecords, EqualRawRecordsOfTheSamePixels) {
  TemporaryFolder folder;
  std::vector<Datum> encoded, raw;
  for (int i = 0; i < 9; ++i) {
    const Image image = Photograph(30, 40, i % 3 == 0 ? 1 : 3, static_cast<uint64_t>(i));
    encoded.push_back(EncodedDatum(image, i));
    raw.push_back(testing::ImageDatum(image.channels, 30, 40, i));
    ToPlanes(image, reinterpret_cast<uint8_t*>(raw.back().mutable_data()->data()));
  }
  // Of one number of channels each.
  for (const int channels : {1, 3}) {
    std::vector<Datum> first, second;
    for (int i = 0; i < 9; ++i) {
      if ((i % 3 == 0) != (channels == 1)) continue;
      first.push_back(encoded[i]);
      second.push_back(raw[i]);
    }
    const std::string suffix = std::to_string(channels);
    testing::WriteDatums(folder / ("encoded" + suffix), first);
    testing::WriteDatums(folder / ("raw" + suffix), second);
    TransformationParameter resize;
    resize.set_resize_shorter_side(25);
    resize.set_crop_size(20);
    TransformationParameter all = Everything();
    if (channels == 1) all.mutable_mean_value()->Truncate(1);
    for (const TransformationParameter& param : {TransformationParameter(), resize, all}) {
      const auto of_encoded = Loader(folder / ("encoded" + suffix), param),
                 of_raw = Loader(folder / ("raw" + suffix), param);
      EXPECT_EQ(of_encoded->item_shape(), of_raw->item_shape());
      EXPECT_TRUE(of_encoded->decodes());
      EXPECT_FALSE(of_raw->decodes());
      for (uint64_t position = 0; position < 12; ++position) {
        EXPECT_EQ(Load(*of_encoded, position), Load(*of_raw, position));
      }
    }
  }
}

TEST(EncodedRecords, GreyAmongColoredOnesNeedForceColor) {
  TemporaryFolder folder;
  testing::WriteDatums(folder / "db", {EncodedDatum(Photograph(6, 5, 3), 0), EncodedDatum(Photograph(6, 5, 1), 1)});
  ExpectThrows<UserError>([&] { Load(*Loader(folder / "db", {}, TEST), 1); },
                          {"record \"00000001\" of " + folder / "db", "1x6x5", "3x6x5", "force_color"});
  TransformationParameter param;
  param.set_force_color(true);
  const std::vector<float> colored = Load(*Loader(folder / "db", param, TEST), 1);
  const Image grey = Photograph(6, 5, 1);
  for (size_t i = 0; i < 90; ++i) EXPECT_EQ(colored[i], grey.pixels[i % 30]);
  param.set_force_color(false);
  param.set_force_gray(true);
  const auto loader = Loader(folder / "db", param, TEST);
  EXPECT_EQ(loader->item_shape(), (Shape{1, 6, 5}));
  EXPECT_EQ(Load(*loader, 1), std::vector<float>(grey.pixels.begin(), grey.pixels.begin() + 30));
}

TEST(EncodedRecords, SizesMustAgreeOrBeMadeSo) {
  TemporaryFolder folder;
  testing::WriteDatums(folder / "db", {EncodedDatum(Photograph(20, 30), 0), EncodedDatum(Photograph(24, 20), 1)});
  ExpectThrows<UserError>([&] { Load(*Loader(folder / "db", {}, TEST), 1); },
                          {"\"00000001\"", "3x24x20", "3x20x30", "crop_size", "resize_height"});
  TransformationParameter param;
  param.set_crop_size(25);
  ExpectThrows<UserError>([&] { Loader(folder / "db", param, TEST); },
                          {"\"00000000\"", "crop_size 25 exceeds", "resize_shorter_side: 25"});
  param.set_resize_shorter_side(25);
  EXPECT_EQ(Load(*Loader(folder / "db", param, TEST), 1).size(), 3u * 25 * 25);
}

TEST(EncodedRecords, BrokenImagesAreNamedWithTheRemedy) {
  TemporaryFolder folder;
  const Datum good = EncodedDatum(Photograph(32, 32), 0, true);
  Datum cut = EncodedDatum(Photograph(32, 32), 0, true);
  cut.mutable_data()->resize(cut.data().size() / 2);
  testing::WriteDatums(folder / "db", {good, cut});
  TransformationParameter random;
  random.set_crop_size(4);
  random.mutable_random_resized_crop();
  for (const TransformationParameter& param : {TransformationParameter(), random}) {
    const auto loader =
        std::make_shared<DatumLoader>(OpenRecordSource(folder / "db"), Transform(param, TRAIN, ""), SampleOrder());
    Load(*loader, 0);
    ExpectThrows<UserError>([&] { Load(*loader, 1); },
                            {"record \"00000001\" of " + folder / "db", "damaged or cut short", "db_tool verify"});
  }
}

// What is decoded smaller ends with a pixel that stands for fewer of the file's, which Exif may put first.
TEST(EncodedRecords, AreasOfTurnedImagesLieWhereTheyShould) {
  constexpr int kHeight = 200, kWidth = 251;
  Image upright, stored;
  upright.Resize(kHeight, kWidth, 1);
  stored.Resize(kHeight, kWidth, 1);
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      upright.row(y)[x] = static_cast<uint8_t>(x);
      stored.row(kHeight - 1 - y)[kWidth - 1 - x] = static_cast<uint8_t>(x);
    }
  }
  const std::vector<uint8_t> png = EncodePng(upright), jpeg = testing::WithOrientation(EncodeJpeg(stored, 100), 3);
  TransformationParameter param;
  param.set_crop_size(12);
  param.mutable_random_resized_crop();
  const Transform transform(param, TRAIN, "");
  const ImageSize item{1, 12, 12};
  std::vector<float> expected(144), got(144);
  ItemScratch scratch;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const RandomStream random(seed, 5);
    ASSERT_EQ(LoadEncodedImage(png, transform, random, item, scratch, expected.data()), "");
    ASSERT_EQ(LoadEncodedImage(jpeg, transform, random, item, scratch, got.data()), "");
    for (size_t i = 0; i < 144; ++i) ASSERT_NEAR(got[i], expected[i], 2.5) << seed << " " << i;
  }
}

// As a whole: JPEGs of several sizes, decoded smaller where they can be.
TEST(EncodedRecords, ThreadsDoNotChangeTheBatches) {
  TemporaryFolder folder;
  std::vector<Datum> datums;
  for (int i = 0; i < 23; ++i) {
    datums.push_back(EncodedDatum(Photograph(60 + 9 * i, 150 - 4 * i, 3, static_cast<uint64_t>(i)), i, i % 4 != 0));
  }
  testing::WriteDatums(folder / "db", datums);
  std::vector<float> expected;
  for (const int threads : {1, 2, 5}) {
    for (const int batch : {1, 6}) {
      Prefetcher prefetcher(Loader(folder / "db", Everything()), {.batch = batch, .ahead = 3, .threads = threads});
      std::vector<float> got;
      for (int k = 0; k < 60 / batch; ++k) {
        const Batch& b = prefetcher.Next();
        got.insert(got.end(), b.data, b.data + batch * prefetcher.loader().item_shape().count());
      }
      if (expected.empty()) expected = got;
      EXPECT_TRUE(got == expected) << threads << " threads, batches of " << batch;
    }
  }
}

TEST(EncodedRecords, SeveralThreadsShareABatch) {
  TemporaryFolder folder;
  testing::WriteImages(folder / "db", 40, 1, 2, 2);
  Prefetcher prefetcher(Loader(folder / "db", {}, TEST), {.batch = 37, .ahead = 1, .threads = 6});
  for (int k = 0; k < 50; ++k) {
    const Batch& batch = prefetcher.Next();
    for (int i = 0; i < 37; ++i) ASSERT_EQ(batch.labels[i], static_cast<float>((37 * k + i) % 40));
  }
}

TEST(EncodedRecords, TheFirstOfSeveralErrorsIsTold) {
  TemporaryFolder folder;
  std::vector<Datum> datums;
  for (int i = 0; i < 40; ++i) datums.push_back(testing::ImageDatum(1, 2, i >= 25 ? 3 : 2, i));
  testing::WriteDatums(folder / "db", datums);
  for (int round = 0; round < 20; ++round) {
    Prefetcher prefetcher(Loader(folder / "db", {}, TEST), {.batch = 20, .ahead = 2, .threads = 1 + round % 5});
    EXPECT_EQ(prefetcher.Next().labels[19], 19);
    ExpectThrows<UserError>([&] { prefetcher.Next(); }, {"\"00000025\""});
  }
}

}  // namespace
}  // namespace crema
