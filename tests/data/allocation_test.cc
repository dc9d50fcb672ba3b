// Counts every allocation of the test program, to show that delivering batches makes none.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "crema/annotation.pb.h"
#include "data/data_testing.h"
#include "data/image_testing.h"
#include "data/loaders/annotated_loader.h"
#include "data/loaders/datum_loader.h"
#include "data/loaders/image_list_loader.h"
#include "data/loaders/prefetcher.h"
#include "data/loaders/video_loader.h"
#include "data/video_testing.h"

namespace {
std::atomic<int64_t> allocations = 0;

void* CountedOrNull(size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(bytes ? bytes : 1);
}

void* Counted(size_t bytes) {
  if (void* data = CountedOrNull(bytes)) return data;
  throw std::bad_alloc();
}
}  // namespace

void* operator new(size_t bytes) { return Counted(bytes); }
void* operator new[](size_t bytes) { return Counted(bytes); }
// Else sanitizers bring their own, whose memory is not free's.
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return CountedOrNull(bytes); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return CountedOrNull(bytes); }
void operator delete(void* data) noexcept { std::free(data); }
void operator delete[](void* data) noexcept { std::free(data); }
void operator delete(void* data, size_t) noexcept { std::free(data); }
void operator delete[](void* data, size_t) noexcept { std::free(data); }

namespace crema {
namespace {

TEST(Allocation, NoneInASteadyStream) {
  TemporaryFolder folder;
  Datum floats = testing::ImageDatum(3, 9, 8, 1);
  const std::string data = floats.data();
  floats.clear_data();
  for (const char c : data) floats.add_float_data(static_cast<float>(c));
  std::vector<Datum> datums;
  for (int i = 0; i < 50; ++i) datums.push_back(i % 5 == 0 ? floats : testing::ImageDatum(3, 9 + i % 2, 8, i));
  testing::WriteDatums(folder / "db", datums);
  TransformationParameter param;
  param.set_crop_size(5);
  param.set_mirror(true);
  param.add_mean_value(10);
  SampleOrder order;
  order.shuffle = true;
  Prefetcher prefetcher(
      std::make_shared<DatumLoader>(OpenRecordSource(folder / "db"), Transform(param, TRAIN, ""), order),
      {.batch = 7, .ahead = 4, .threads = 2});
  // On a busy machine a thread may do its first work late.
  int64_t made = 1, before = 0;
  for (int attempt = 0; attempt < 20 && made > 0; ++attempt) {
    for (int k = 0; k < 200; ++k) prefetcher.Next();
    before = allocations;
    for (int k = 0; k < 200; ++k) prefetcher.Next();
    made = allocations - before;
  }
  EXPECT_EQ(made, 0);
  ::operator delete(::operator new(1));
  EXPECT_GE(allocations - before, 1) << "the counter does not count";
}

void ExpectNoneOf(const std::shared_ptr<const ItemLoader>& loader) {
  // One thread: of several, one may meet the largest image late.
  Prefetcher prefetcher(loader, {.batch = 7, .ahead = 4, .threads = 1});
  for (int k = 0; k < 60; ++k) prefetcher.Next();
  const int64_t before = allocations;
  for (int k = 0; k < 60; ++k) prefetcher.Next();
  EXPECT_EQ(allocations - before, 0);
}

// libjpeg's own memory is not counted: it does not come from operator new.
TEST(Allocation, NoneWhereImagesAreDecodedAndChanged) {
  TemporaryFolder folder;
  std::vector<Datum> datums;
  const auto list = std::make_shared<ImageList>();
  list->root = folder.path() + "/";
  for (int i = 0; i < 12; ++i) {
    datums.push_back(testing::EncodedDatum(testing::Photograph(90 + i, 120 - i), i, true));
    const std::string name = "a name that does not fit into the string itself " + std::to_string(i) + ".jpg";
    testing::WriteFile(folder / name, datums.back().data());
    list->entries.push_back({name, i});
  }
  testing::WriteDatums(folder / "db", datums);
  TransformationParameter crop, random, turned, several, policy;
  crop.set_resize_shorter_side(50);
  crop.set_crop_size(40);
  crop.set_pad(2);
  crop.mutable_color_jitter()->set_contrast(0.5f);
  crop.add_mean_value(1);
  crop.add_std_value(2);
  random.set_crop_size(20);
  random.mutable_random_resized_crop();
  turned = crop;
  turned.set_max_rotation_angle(30);
  turned.mutable_random_erasing();
  several.set_resize_shorter_side(50);
  several.set_crop_size(40);
  several.set_multi_scale(true);
  several.set_fix_crop(true);
  policy = random;
  policy.mutable_rand_augment()->set_operations(14);
  policy.mutable_gaussian_blur()->set_probability(1);
  policy.mutable_gaussian_blur()->set_min_sigma(2);
  policy.mutable_color_jitter()->set_hue(0.1f);
  for (const TransformationParameter& param : {crop, random, turned, several, policy}) {
    ExpectNoneOf(
        std::make_shared<DatumLoader>(OpenRecordSource(folder / "db"), Transform(param, TRAIN, ""), SampleOrder()));
    ExpectNoneOf(std::make_shared<ImageListLoader>(list, Transform(param, TRAIN, ""), SampleOrder()));
  }
}

TEST(Allocation, NoneWhereVideosAreRead) {
  TemporaryFolder folder;
  const auto list = std::make_shared<ImageList>();
  list->root = folder.path() + "/";
  for (int i = 0; i < 5; ++i) {
    const std::string name = "a name that does not fit into the string itself " + std::to_string(i);
    testing::WriteVideo(folder / name, "%06d.jpg", 9, [](int frame) { return testing::Photograph(30, 40, 3, frame); });
    list->entries.push_back({.path = name, .number = 9});
  }
  VideoDataParameter volumes, segments;
  volumes.set_use_image(true);
  volumes.set_use_temporal_jitter(true);
  volumes.set_new_length(4);
  segments.set_num_segments(3);
  segments.set_modality(VideoDataParameter::RGB);
  segments.set_name_pattern("%06d.jpg");
  TransformationParameter param;
  param.set_crop_size(20);
  param.set_force_color(true);
  param.set_multi_scale(true);
  for (const VideoDataParameter& fields : {volumes, segments}) {
    const VideoClip clip(fields, TRAIN);
    ExpectNoneOf(std::make_shared<VideoLoader>(list, clip, ClipTransforms(param, TRAIN, clip, nullptr), SampleOrder()));
  }
}

TEST(Allocation, NoneWherePartsWithObjectsAreTaken) {
  TemporaryFolder folder;
  std::vector<std::string> records;
  for (int i = 0; i < 12; ++i) {
    AnnotatedDatum record;
    *record.mutable_datum() = testing::EncodedDatum(testing::Photograph(90 + i, 120 - i), i, true);
    record.set_type(AnnotatedDatum::BBOX);
    NormalizedBBox* box = record.add_annotation_group()->add_annotation()->mutable_bbox();
    box->set_xmax(0.5f);
    box->set_ymax(0.5f);
    records.push_back(record.SerializeAsString());
  }
  testing::WriteRecords(folder / "db", records);
  TransformationParameter param;
  param.set_resize_height(30);
  param.set_resize_width(30);
  param.mutable_distort_param()->set_hue_prob(1);
  AnnotatedDataParameter boxes;
  boxes.add_batch_sampler()->mutable_sampler()->set_min_scale(0.3f);
  const AnnotatedTransform transform(Transform(param, TRAIN, ""), param, boxes, TRAIN);
  ExpectNoneOf(std::make_shared<AnnotatedLoader>(OpenRecordSource(folder / "db"), transform, SampleOrder(), 2, false));
}

}  // namespace
}  // namespace crema
