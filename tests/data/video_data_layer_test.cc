// Frames of videos: the layer VideoData, in the forms of C3D and of Temporal Segment Networks.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <tuple>

#include "crema/blob.pb.h"
#include "data/data_testing.h"
#include "data/image_testing.h"
#include "data/source_driver.h"
#include "data/video_testing.h"

namespace crema {
namespace {

using testing::FlowAt;
using testing::kHeight;
using testing::kPlane;
using testing::kWidth;
using testing::VideoDataTest;

using Frames = std::vector<int>;

TEST_F(VideoDataTest, C3dGivesVolumesFromTheFrameOfTheLine) {
  testing::SourceDriver driver = Driver("use_image: true new_length: 4 sampling_rate: 3", "mean_value: 1 scale: 2");
  EXPECT_EQ(driver.setup().top_specs()[0].shape, (Shape{2, 3, 4, kHeight, kWidth}));
  EXPECT_EQ(driver.setup().top_specs()[1].shape, (Shape{2}));
  EXPECT_TRUE(driver.setup().warnings().empty());
  driver.Forward();
  EXPECT_EQ(driver.value(1), (std::vector<float>{7, 1}));
  size_t at = 0;
  for (const int first : {3, 10}) {
    for (int c = 0; c < 3; ++c) {
      for (int l = 0; l < 4; ++l) {
        for (int y = 0; y < kHeight; ++y) {
          for (int x = 0; x < kWidth; ++x, ++at) {
            const int pixel = c == 0 ? first + 3 * l : c == 1 ? 10 * y : 20 * x;
            ASSERT_EQ(driver.value(0)[at], 2.0f * static_cast<float>(pixel - 1)) << c << l << y << x;
          }
        }
      }
    }
  }
  EXPECT_EQ(driver.layer().DescribeItem(1),
            "video \"" + folder_ / "videos" + "/a b\" (" + folder_ / "list.txt" + ":2)");
}

TEST_F(VideoDataTest, C3dsTemporalJitterDrawsTheFirstFrameInTraining) {
  WriteList("a b 20 0\n");
  const std::string fields = "use_image: true use_temporal_jitter: true new_length: 4 sampling_rate: 4";
  testing::SourceDriver test = Driver(fields);
  test.Forward();
  EXPECT_EQ(FramesOf(test, 0, 4, true), (Frames{1, 5, 9, 13}));
  testing::SourceDriver train = Driver(fields, "", TRAIN);
  std::set<int> firsts;
  for (int k = 0; k < 40; ++k) {
    train.Forward();
    for (int item = 0; item < 2; ++item) {
      const Frames frames = FramesOf(train, item, 4, true);
      firsts.insert(frames[0]);
      EXPECT_EQ(frames, (Frames{frames[0], frames[0] + 4, frames[0] + 8, frames[0] + 12}));
    }
  }
  EXPECT_EQ(firsts, (std::set<int>{1, 2, 3, 4, 5}));
}

TEST_F(VideoDataTest, C3dsRateIsDrawnForEachItem) {
  WriteList("a b 2 0\n");
  testing::SourceDriver driver =
      Driver("use_image: true new_length: 3 use_sampling_rate_jitter: true max_sampling_rate: 3");
  std::set<int> rates;
  for (int k = 0; k < 20; ++k) {
    driver.Forward();
    const Frames frames = FramesOf(driver, 1, 3, true);
    rates.insert(frames[1] - frames[0]);
    EXPECT_EQ(frames[0], 2);
    EXPECT_EQ(frames[2] - frames[1], frames[1] - frames[0]);
  }
  EXPECT_EQ(rates, (std::set<int>{1, 2, 3}));
}

TEST_F(VideoDataTest, SeveralClassesOfAVideo) {
  WriteList("a b 1 2,0\na b 5 3\n");
  testing::SourceDriver driver = Driver("use_image: true new_length: 2 use_multiple_label: true num_of_labels: 4");
  EXPECT_EQ(driver.setup().top_specs()[1].shape, (Shape{2, 4}));
  driver.Forward();
  EXPECT_EQ(driver.value(1), (std::vector<float>{1, 0, 1, 0, 0, 0, 0, 1}));
}

TEST_F(VideoDataTest, SegmentsAreTakenFromTheMiddleOfEachPartInTests) {
  WriteList("a b 20 5\nshort 4 6\n");
  testing::SourceDriver driver = Driver("num_segments: 3 modality: RGB new_length: 2");
  EXPECT_EQ(driver.setup().top_specs()[0].shape, (Shape{2, 18, kHeight, kWidth}));
  driver.Forward();
  EXPECT_EQ(driver.value(1), (std::vector<float>{5, 6}));
  // Parts of 6 frames, (6 - 2 + 1) / 2 frames before the first of each.
  EXPECT_EQ(FramesOf(driver, 0, 6, false), (Frames{3, 4, 9, 10, 15, 16}));
  // Blue, green, red of each frame.
  EXPECT_EQ(driver.value(0)[kPlane + 2 * kWidth], 20);
  EXPECT_EQ(driver.value(0)[4 * kPlane + 2 * kWidth], 20);
  EXPECT_EQ(driver.value(0)[2 * kPlane + 3], 60);
  // Parts of one frame: the second frame and the third, each time.
  EXPECT_EQ(FramesOf(driver, 1, 6, false), (Frames{2, 3, 2, 3, 2, 3}));
  ASSERT_EQ(driver.setup().warnings().size(), 1u);
  const std::string warning = driver.setup().warnings()[0].message;
  EXPECT_NE(warning.find("1 of 2 videos have segments shorter than new_length"), std::string::npos) << warning;
  EXPECT_NE(warning.find("list.txt:2"), std::string::npos) << warning;
  // The whole of a video that is as long as a segment.
  testing::SourceDriver whole = Driver("num_segments: 2 modality: RGB new_length: 4");
  whole.Forward();
  EXPECT_EQ(FramesOf(whole, 1, 8, false), (Frames{1, 2, 3, 4, 1, 2, 3, 4}));
}

TEST_F(VideoDataTest, SegmentsAreDrawnWithinTheirPartsInTraining) {
  WriteList("a b 20 5\n");
  testing::SourceDriver driver = Driver("num_segments: 3 modality: RGB new_length: 2", "", TRAIN);
  std::vector<std::set<int>> firsts(3);
  std::set<Frames> seen;
  for (int k = 0; k < 60; ++k) {
    driver.Forward();
    const Frames frames = FramesOf(driver, 0, 6, false);
    seen.insert(frames);
    for (size_t i = 0; i < 3; ++i) {
      firsts[i].insert(frames[2 * i]);
      EXPECT_EQ(frames[2 * i + 1], frames[2 * i] + 1);
    }
  }
  EXPECT_EQ(firsts[0], (std::set<int>{1, 2, 3, 4, 5}));
  EXPECT_EQ(firsts[1], (std::set<int>{7, 8, 9, 10, 11}));
  EXPECT_EQ(firsts[2], (std::set<int>{13, 14, 15, 16, 17}));
  EXPECT_GT(seen.size(), 20u) << "parts are drawn apart from each other";
}

TEST_F(VideoDataTest, MirroredFlowIsTurned) {
  WriteList("a b 20 5\n");
  testing::SourceDriver driver =
      Driver("num_segments: 2 new_length: 3", "mirror: true is_flow: true mean_value: 128 scale: 0.5");
  EXPECT_EQ(driver.setup().top_specs()[0].shape, (Shape{2, 12, kHeight, kWidth}));
  EXPECT_TRUE(driver.setup().warnings().empty());
  const Frames frames = {5, 6, 7, 15, 16, 17};
  std::set<bool> mirrored;
  for (int k = 0; k < 10; ++k) {
    driver.Forward();
    for (size_t item = 0; item < 2; ++item) {
      const float* data = driver.value(0).data() + item * 12 * kPlane;
      const bool mirrors = data[kPlane] > data[kPlane + 1];
      mirrored.insert(mirrors);
      for (size_t image = 0; image < 12; ++image) {
        for (int at = 0; at < kPlane; ++at) {
          const bool downwards = image % 2 == 1;
          const int x = mirrors ? kWidth - 1 - at % kWidth : at % kWidth;
          const int flow = FlowAt(frames[image / 2], downwards, x);
          const int wanted = mirrors && !downwards ? 255 - flow : flow;
          ASSERT_EQ(data[image * kPlane + static_cast<size_t>(at)], 0.5f * static_cast<float>(wanted - 128))
              << image << " " << at << " " << mirrors;
        }
      }
    }
  }
  EXPECT_EQ(mirrored.size(), 2u);
  // Where the file does not say that it is flow, it is only mirrored, as in the fork, with a warning.
  testing::SourceDriver plain = Driver("num_segments: 2 new_length: 3", "mirror: true");
  ASSERT_EQ(plain.setup().warnings().size(), 1u);
  EXPECT_NE(plain.setup().warnings()[0].message.find("add is_flow: true"), std::string::npos);
}

TEST_F(VideoDataTest, AllFramesOfAnItemAreCutAndMirroredAlike) {
  for (const std::string fields : {"use_image: true new_length: 5", "num_segments: 1 modality: RGB new_length: 5"}) {
    const bool volume = fields.starts_with("use_image");
    WriteList("a b 10 0\n");
    testing::SourceDriver driver = Driver(fields, "crop_size: 4 mirror: true", TRAIN);
    std::set<std::vector<float>> seen;
    for (int k = 0; k < 30; ++k) {
      driver.Forward();
      for (size_t item = 0; item < 2; ++item) {
        const auto plane = [&](int frame, int channel) {
          const int index = volume ? 5 * channel + frame : 3 * frame + channel;
          const float* begin = driver.value(0).data() + item * 15 * 16 + static_cast<size_t>(index * 16);
          return std::vector<float>(begin, begin + 16);
        };
        for (int frame = 1; frame < 5; ++frame) {
          EXPECT_EQ(plane(frame, 1), plane(0, 1));
          EXPECT_EQ(plane(frame, 2), plane(0, 2));
          EXPECT_EQ(plane(frame, 0)[0], plane(0, 0)[0] + static_cast<float>(frame));
        }
        seen.insert({plane(0, 1)[0], plane(0, 2)[0], plane(0, 2)[1]});
      }
    }
    EXPECT_GT(seen.size(), 15u);
  }
}

TEST_F(VideoDataTest, AllFramesOfAnItemAreAugmentedAlike) {
  for (const char* const pattern : {"%06d.jpg", "image_%04d.jpg"}) {
    testing::WriteVideo(folder_ / "videos/still", pattern, 5, [](int) { return testing::Photograph(20, 20); });
  }
  WriteList("still 1 0\nstill 1 0\n");
  for (const std::string policy : {"rand_augment { operations: 3 }", "trivial_augment {}"}) {
    testing::SourceDriver driver = Driver("use_image: true new_length: 5",
                                          policy + " color_jitter { hue: 0.5 } gaussian_blur {} mean_value: 90", TRAIN);
    std::set<std::vector<float>> seen;
    for (int k = 0; k < 15; ++k) {
      driver.Forward();
      for (size_t item = 0; item < 2; ++item) {
        for (size_t channel = 0; channel < 3; ++channel) {
          const auto first = driver.value(0).begin() + static_cast<int64_t>((item * 3 + channel) * 5 * 400);
          for (int frame = 1; frame < 5; ++frame) EXPECT_TRUE(std::equal(first, first + 400, first + frame * 400));
          seen.insert({first, first + 400});
        }
      }
    }
    EXPECT_GT(seen.size(), 80u);
  }
}

TEST_F(VideoDataTest, MeansAreThoseOfChannelsAndRepeated) {
  WriteList("a b 20 5\n");
  const std::string fields = "num_segments: 3 modality: RGB new_length: 1";
  testing::SourceDriver plain = Driver(fields);
  plain.Forward();
  for (const auto& [transform, means] :
       {std::pair<std::string, std::vector<int>>("mean_value: 4", std::vector<int>(9, 4)),
        {"mean_value: [1, 2, 3]", {1, 2, 3, 1, 2, 3, 1, 2, 3}},
        {"mean_value: [1, 2, 3, 4, 5, 6, 7, 8, 9]", {1, 2, 3, 4, 5, 6, 7, 8, 9}}}) {
    testing::SourceDriver driver = Driver(fields, transform);
    driver.Forward();
    for (size_t c = 0; c < 9; ++c) {
      EXPECT_EQ(driver.value(0)[c * kPlane + 13], plain.value(0)[c * kPlane + 13] - static_cast<float>(means[c]));
    }
  }
  // Flow: of its two components.
  testing::SourceDriver flow = Driver("num_segments: 1 new_length: 2", "mean_value: [1, 100]");
  flow.Forward();
  for (size_t image = 0; image < 4; ++image) {
    const float value = flow.value(0)[image * kPlane] + (image % 2 == 0 ? 1 : 100);
    EXPECT_EQ(value, FlowAt(image < 2 ? 10 : 11, image % 2 == 1, 0));
  }
}

TEST_F(VideoDataTest, MeanFilesAreOfWholeItems) {
  WriteList("a b 20 5\n");
  // Value i of the mean is i; the shape is that of an item.
  const auto write = [&](const Shape& shape) {
    BlobProto blob;
    for (int axis = 0; axis < shape.axes(); ++axis) blob.mutable_shape()->add_dim(shape[axis]);
    for (int64_t i = 0; i < shape.count(); ++i) blob.add_data(static_cast<float>(i));
    testing::WriteFile(folder_ / "mean", blob.SerializeAsString());
  };
  const std::string mean = "mean_file: \"" + folder_ / "mean" + "\"";
  for (const auto& [fields, shape, images] :
       {std::tuple<std::string, Shape, int>("use_image: true use_temporal_jitter: true new_length: 4",
                                            {1, 3, 4, kHeight, kWidth}, 12),
        {"num_segments: 2 modality: RGB new_length: 2", {1, 12, kHeight, kWidth}, 12},
        {"num_segments: 2 new_length: 3", {12, kHeight, kWidth}, 12}}) {
    SCOPED_TRACE(fields);
    write(shape);
    testing::SourceDriver plain = Driver(fields), driver = Driver(fields, mean);
    plain.Forward();
    driver.Forward();
    for (int at = 0; at < 2 * images * kPlane; ++at) {
      const auto i = static_cast<size_t>(at);
      ASSERT_EQ(driver.value(0)[i], plain.value(0)[i] - static_cast<float>(at % (images * kPlane))) << at;
    }
  }
  // Mirrored flow: 255 - v, then the mean where it is shown.
  write({12, kHeight, kWidth});
  const std::string flow = "num_segments: 2 new_length: 3", mirror = " mirror: true is_flow: true ";
  testing::SourceDriver plain = Driver(flow, mirror), driver = Driver(flow, mirror + mean);
  plain.Forward();
  driver.Forward();
  for (size_t item = 0; item < 2; ++item) {
    const float* const of_item = plain.value(0).data() + item * 12 * kPlane;
    const bool mirrors = of_item[kPlane] > of_item[kPlane + 1];
    for (int at = 0; at < 12 * kPlane; ++at) {
      const int column = at % kWidth, place = mirrors ? at - column + kWidth - 1 - column : at;
      ASSERT_EQ(driver.value(0)[item * 12 * kPlane + static_cast<size_t>(at)], of_item[at] - static_cast<float>(place));
    }
  }
}

TEST_F(VideoDataTest, FramesAreResizedAndNamedAsTheFileSays) {
  testing::WriteVideo(folder_ / "videos/d", "img_%05d.jpg", 12, testing::ColorFrame);
  WriteList("d 12 1\n");
  testing::SourceDriver driver =
      Driver("num_segments: 2 modality: RGB name_pattern: \"img_%05d.jpg\"", "resize_height: 4 resize_width: 3");
  EXPECT_EQ(driver.setup().top_specs()[0].shape, (Shape{2, 6, 4, 3}));
  driver.Forward();
  EXPECT_EQ(driver.value(0)[0], 4);
  testing::SourceDriver other =
      Driver("use_image: true new_height: 6 new_width: 5 new_length: 1 name_pattern: \"img_%05d.jpg\"");
  EXPECT_EQ(other.setup().top_specs()[0].shape, (Shape{2, 3, 1, 6, 5}));
  other.Forward();
  EXPECT_EQ(other.value(0)[0], 12);
}

TEST_F(VideoDataTest, ShuffledEpochsResumeAndTakeTurns) {
  std::string list;
  for (int i = 0; i < 7; ++i) list += "a b 20 " + std::to_string(i) + "\n";
  WriteList(list);
  const std::string fields = "num_segments: 3 new_length: 2 shuffle: true rand_skip: 5 threads: 2";
  const std::string transform =
      "crop_size: 5 mirror: true is_flow: true multi_scale: true fix_crop: true more_fix_crop: true";
  testing::SourceDriver whole = Driver(fields, transform, TRAIN);
  std::vector<std::vector<float>> data, labels;
  for (int k = 0; k < 14; ++k) {
    whole.Forward();
    data.push_back(whole.value(0));
    labels.push_back(whole.value(1));
  }
  std::vector<int> seen(7);
  for (const std::vector<float>& batch : labels) {
    for (const float label : batch) ++seen[static_cast<size_t>(label)];
  }
  for (const int count : seen) EXPECT_NEAR(count, 4, 1);
  testing::SourceDriver resumed = Driver(fields + " prefetch: 1 ", transform, TRAIN);
  resumed.layer().set_position(5 * 2);
  for (size_t k = 5; k < 14; ++k) {
    resumed.Forward();
    EXPECT_EQ(resumed.value(0), data[k]);
  }
  EXPECT_EQ(resumed.layer().next_batch(), 14u);
  EXPECT_EQ(resumed.layer().data_extent().epoch, 7u);
  // As one of three workers.
  testing::SourceDriver worker = Driver(fields, transform, TRAIN);
  worker.layer().ReadBatches({1, 1, 3});
  for (size_t k = 1; k < 14; k += 3) {
    worker.Forward();
    EXPECT_EQ(worker.value(0), data[k]);
    EXPECT_EQ(worker.value(1), labels[k]);
  }
}

TEST_F(VideoDataTest, RanksReadTheirShares) {
  std::string list;
  for (int i = 0; i < 12; ++i) list += "a b 20 " + std::to_string(i) + "\n";
  WriteList(list);
  for (int rank = 0; rank < 3; ++rank) {
    const LayerParameter param = testing::ParseSource("VideoData", Layer("num_segments: 1 modality: RGB"));
    LayerSetup setup(param, TRAIN, {}, [](std::string_view) { return Location{}; });
    const auto layer = FindLayerType("VideoData")->create();
    layer->Setup(setup);
    std::vector<float> data(static_cast<size_t>(setup.top_specs()[0].shape.count())), labels(2);
    Tensor tops[] = {{data.data(), setup.top_specs()[0]}, {labels.data(), setup.top_specs()[1]}};
    const Context context{.seed = 1, .rank = rank, .ranks = 3};
    LayerRun run;
    run.context = &context;
    run.tops = tops;
    for (int k = 0; k < 4; ++k) {
      layer->Forward(run);
      const int first = (2 * (3 * k + rank)) % 12;
      EXPECT_EQ(labels, (std::vector<float>{static_cast<float>(first), static_cast<float>(first + 1)}));
    }
  }
}

}  // namespace
}  // namespace crema
