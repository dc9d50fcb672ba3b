// How DetectNetTransformation changes images: how often and how far, that boxes move with what they surround, and that
// what is drawn depends on seed and pass alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "crema/layer.h"
#include "data/databases/mean_file.h"
#include "device/device.h"
#include "ops/detection/detectnet_transform.h"
#include "ops/operations.h"
#include "temporary_folder.h"

namespace crema {
namespace {

constexpr int64_t kHeight = 64, kWidth = 96, kStride = 4, kLeft = 20, kTop = 15, kRight = 59, kBottom = 44;

// Black images with a red rectangle each, whose pixels are the columns kLeft to kRight and the rows kTop to kBottom.
class RedRectangles {
 public:
  RedRectangles(int64_t images, const DetectNetAugmentationParameter& augmentation, Phase phase = TRAIN,
                const std::string& mean_file = "")
      : images_(images), layer_(FindLayerType("DetectNetTransformation")->create()) {
    param_.add_bottom("images");
    param_.add_bottom("objects");
    param_.add_top("data");
    param_.add_top("label");
    DetectNetGroundTruthParameter* truth = param_.mutable_detectnet_groundtruth_param();
    truth->set_stride(kStride);
    truth->set_image_size_x(kWidth);
    truth->set_image_size_y(kHeight);
    truth->set_crop_bboxes(false);
    *param_.mutable_detectnet_augmentation_param() = augmentation;
    if (!mean_file.empty()) param_.mutable_transform_param()->set_mean_file(mean_file);
    const std::vector<TensorSpec> bottoms = {{Shape{images, 3, kHeight, kWidth}}, {Shape{images, 1, 2, 16}}};
    LayerSetup setup(param_, phase, bottoms, [](std::string_view) { return Location{}; });
    setup.set_needs_data(true);
    layer_->Setup(setup);
    context_.device = &CpuDevice();
    LayerPlan plan(context_, bottoms, setup.top_specs(), {false, false}, {});
    layer_->Plan(plan);
    workspace_ = Buffer(CpuDevice(), plan.forward_workspace());
    Draw();
    data.resize(setup.top_specs()[0].shape.count());
    labels.resize(setup.top_specs()[1].shape.count());
    bottom_specs_ = bottoms;
    top_specs_ = setup.top_specs();
  }

  void Forward(uint64_t seed, uint64_t pass) {
    context_.seed = seed;
    const std::vector<Tensor> bottoms = {Tensor(pixels_.data(), bottom_specs_[0]),
                                         Tensor(objects_.data(), bottom_specs_[1])};
    const std::vector<Tensor> tops = {Tensor(data.data(), top_specs_[0]), Tensor(labels.data(), top_specs_[1])};
    LayerRun run;
    run.context = &context_;
    run.ops = &OperationsOf(*context_.device);
    run.pass = pass;
    run.bottoms = bottoms;
    run.tops = tops;
    run.workspace = workspace_.data();
    layer_->Forward(run);
  }

  struct Box {
    float left, top, right, bottom;
  };
  // That of the pixels which are more red than not.
  Box Seen(int64_t image) const {
    Box box = {1e9f, 1e9f, -1e9f, -1e9f};
    const float* red = data.data() + (image * 3 + 2) * kHeight * kWidth;
    for (int64_t y = 0; y < kHeight; ++y) {
      for (int64_t x = 0; x < kWidth; ++x) {
        if (red[y * kWidth + x] < 100) continue;
        box.left = std::min(box.left, static_cast<float>(x));
        box.right = std::max(box.right, static_cast<float>(x));
        box.top = std::min(box.top, static_cast<float>(y));
        box.bottom = std::max(box.bottom, static_cast<float>(y));
      }
    }
    return box;
  }
  // That which the first covered cell tells.
  Box Told(int64_t image) const {
    constexpr int64_t kColumns = kWidth / kStride, kCells = kColumns * (kHeight / kStride);
    const float* grid = labels.data() + image * 9 * kCells;
    const int64_t cell = std::find(grid, grid + kCells, 1.0f) - grid;
    if (cell == kCells) return {0, 0, 0, 0};
    const auto x = static_cast<float>(cell % kColumns * kStride), y = static_cast<float>(cell / kColumns * kStride);
    return {grid[kCells + cell] + x, grid[2 * kCells + cell] + y, grid[3 * kCells + cell] + x,
            grid[4 * kCells + cell] + y};
  }

  std::vector<float> data, labels;

 private:
  void Draw() {
    pixels_.assign(images_ * 3 * kHeight * kWidth, 0);
    objects_.assign(images_ * 32, 0);
    for (int64_t image = 0; image < images_; ++image) {
      float* red = pixels_.data() + (image * 3 + 2) * kHeight * kWidth;
      for (int64_t y = kTop; y <= kBottom; ++y) std::fill(red + y * kWidth + kLeft, red + y * kWidth + kRight + 1, 200);
      float* rows = objects_.data() + image * 32;
      rows[0] = 1;
      rows[1] = 16;
      rows[16] = kLeft;
      rows[17] = kTop;
      rows[18] = kRight - kLeft;
      rows[19] = kBottom - kTop;
      rows[21] = 1;
    }
  }

  int64_t images_;
  LayerParameter param_;
  Context context_;
  std::unique_ptr<Layer> layer_;
  Buffer workspace_;
  std::vector<TensorSpec> bottom_specs_, top_specs_;
  std::vector<float> pixels_, objects_;
};

DetectNetAugmentationParameter Nothing() {
  DetectNetAugmentationParameter param;
  param.set_crop_prob(0);
  param.set_scale_prob(0);
  param.set_flip_prob(0);
  param.set_rotation_prob(0);
  param.set_hue_rotation_prob(0);
  param.set_desaturation_prob(0);
  return param;
}

// Largest distance of a side that is seen from that which is told, and of the middles.
struct Distances {
  float side = 0, middle = 0;
};
Distances Compare(const RedRectangles& rectangles, int64_t images) {
  Distances most;
  for (int64_t image = 0; image < images; ++image) {
    const RedRectangles::Box seen = rectangles.Seen(image), told = rectangles.Told(image);
    for (const float distance :
         {seen.left - told.left, seen.top - told.top, seen.right - told.right, seen.bottom - told.bottom}) {
      most.side = std::max(most.side, std::fabs(distance));
    }
    most.middle = std::max({most.middle, std::fabs(seen.left + seen.right - told.left - told.right) / 2,
                            std::fabs(seen.top + seen.bottom - told.top - told.bottom) / 2});
  }
  return most;
}

TEST(DetectNetBoxes, SurroundWhatTheySurroundedBefore) {
  constexpr int64_t kImages = 60;
  DetectNetAugmentationParameter param = Nothing();
  param.set_flip_prob(0.5);
  param.set_crop_prob(1);
  param.set_shift_x(16);
  param.set_shift_y(10);
  RedRectangles moved(kImages, param);
  moved.Forward(1, 0);
  EXPECT_LT(Compare(moved, kImages).side, 0.01f);  // whole pixels

  param.set_scale_prob(1);
  param.set_scale_min(0.8f);
  param.set_scale_max(1.0f);
  RedRectangles scaled(kImages, param);
  scaled.Forward(2, 0);
  EXPECT_LT(Compare(scaled, kImages).side, 1.01f);
}

// Boxes keep their sides, so that only the middles follow.
TEST(DetectNetBoxes, FollowARotationWithTheirMiddles) {
  constexpr int64_t kImages = 40;
  DetectNetAugmentationParameter param = Nothing();
  param.set_rotation_prob(1);
  param.set_max_rotate_degree(15);
  param.set_flip_prob(0.5);
  param.set_scale_prob(0.5);
  param.set_scale_min(0.7f);
  param.set_scale_max(0.9f);
  RedRectangles turned(kImages, param);
  turned.Forward(3, 0);
  const Distances most = Compare(turned, kImages);
  EXPECT_LT(most.middle, 1.01f);
  EXPECT_GT(most.side, 2);  // they were turned indeed
}

TEST(DetectNetBoxes, StayInTest) {
  RedRectangles same(2, DetectNetAugmentationParameter(), TEST);
  same.Forward(1, 0);
  EXPECT_EQ(Compare(same, 2).side, 0);
}

// A mean image of half the height and width, whose columns become brighter to the right: it is stretched, subtracted
// before images move, and so flipped with them.
TEST(DetectNetMean, IsStretchedAndMovesAlong) {
  TemporaryFolder folder;
  constexpr int64_t kSmallHeight = kHeight / 2, kSmallWidth = kWidth / 2;
  MeanImage mean = {Shape{3, kSmallHeight, kSmallWidth}, {}};
  for (int64_t i = 0; i < mean.shape.count(); ++i) mean.values.push_back(static_cast<float>(i % kSmallWidth));
  WriteMean(mean, folder / "mean.binaryproto");
  DetectNetAugmentationParameter param = Nothing();
  param.set_flip_prob(1);
  RedRectangles flipped(1, param, TRAIN, folder / "mean.binaryproto");
  flipped.Forward(1, 0);
  // Of the blue channel, where images are black, and away from the borders: bicubic interpolation keeps what is linear
  // to 0.05.
  for (int64_t x = 4; x < kWidth - 4; ++x) {
    const int64_t before = kWidth - 1 - x;
    EXPECT_NEAR(flipped.data[kWidth + x], -((static_cast<float>(before) + 0.5f) / 2 - 0.5f), 0.05) << x;
  }
}

TEST(DetectNetMean, MistakesAreNamed) {
  TemporaryFolder folder;
  const auto mistake = [&](const std::string& name) {
    try {
      RedRectangles(1, Nothing(), TRAIN, folder / name);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(mistake("absent").find("does not exist"), std::string::npos) << mistake("absent");
  WriteMean({Shape{1, 2, 2}, {1, 2, 3, 4}}, folder / "grey");
  EXPECT_NE(mistake("grey").find("is 1x2x2, but it must have 3 channels"), std::string::npos) << mistake("grey");
}

TEST(DetectNetChanges, DependOnSeedAndPassAlone) {
  DetectNetAugmentationParameter param;
  RedRectangles rectangles(4, param);
  rectangles.Forward(5, 7);
  const std::vector<float> data = rectangles.data, labels = rectangles.labels;
  rectangles.Forward(5, 8);
  EXPECT_NE(rectangles.data, data);
  rectangles.Forward(6, 7);
  EXPECT_NE(rectangles.data, data);
  rectangles.Forward(5, 7);
  EXPECT_EQ(rectangles.data, data);
  EXPECT_EQ(rectangles.labels, labels);
}

TEST(DetectNetChanges, AreAsOftenAndAsLargeAsAskedFor) {
  constexpr int64_t kImages = 20000;
  DetectNetTransform problem;
  problem.images = kImages;
  problem.height = problem.out_height = 100;
  problem.width = 200;
  problem.out_width = 150;
  problem.changes = true;
  problem.hue_probability = 0.8f;
  problem.most_hue = 30;
  problem.desaturation_probability = 0.6f;
  problem.most_desaturation = 0.5f;
  problem.flip_probability = 0.3f;
  problem.scale_probability = 0.4f;
  problem.least_scale = 0.8f;
  problem.most_scale = 1.2f;
  problem.crop_probability = 0.5f;
  problem.shift_x = 20;
  std::vector<DetectNetChange> changes(kImages);
  DrawDetectNetChanges(problem, RandomStream(3, 4), changes.data());
  double hues = 0, pale = 0, flips = 0, scaled = 0, middle = 0, hue = 0, saturation = 0, width = 0, left = 0, cut = 0;
  float hue_least = 0, hue_most = 0;
  int least = 1000, most = 0, first = 1000, last = -1000;
  for (const DetectNetChange& change : changes) {
    hues += change.hue != 0;
    hue += change.hue;
    hue_least = std::min(hue_least, change.hue);
    hue_most = std::max(hue_most, change.hue);
    pale += change.saturation < 1;
    saturation += change.saturation;
    flips += change.flips;
    scaled += change.scales;
    if (change.scales) width += change.width;
    least = std::min(least, change.width);
    most = std::max(most, change.width);
    if (change.scales) continue;
    ++cut;
    left += change.left;
    middle += change.left == 25;
    first = std::min(first, change.left);
    last = std::max(last, change.left);
  }
  // Five standard deviations of a share are 0.018 at most.
  EXPECT_NEAR(hues / kImages, 0.8, 0.018);
  EXPECT_NEAR(hue / kImages, 0, 0.7);
  EXPECT_NEAR(hue_least, -30, 0.1);
  EXPECT_NEAR(hue_most, 30, 0.1);
  EXPECT_NEAR(pale / kImages, 0.6, 0.018);
  EXPECT_NEAR(saturation / kImages, 1 - 0.6 * 0.25, 0.01);
  EXPECT_NEAR(flips / kImages, 0.3, 0.018);
  EXPECT_NEAR(scaled / kImages, 0.4, 0.02);  // with a scale of nearly 1 the size stays
  EXPECT_NEAR(width / scaled, 200, 1.5);
  EXPECT_EQ(least, 160);
  EXPECT_EQ(most, 240);
  // Parts begin anywhere from -10 to 60, or half of them in the middle, at 25.
  EXPECT_EQ(first, -10);
  EXPECT_EQ(last, 60);
  EXPECT_NEAR(left / cut, 25, 0.8);
  EXPECT_NEAR(middle / cut, 0.5 + 0.5 / 71, 0.025);
}

}  // namespace
}  // namespace crema
