#include "ops/sampling/mix_up.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <vector>

#include "base/bfloat16.h"
#include "comparison.h"
#include "ops/sampling/mix_up_formulas.h"

namespace crema {
namespace {

constexpr int kDraws = 100000;

std::vector<double> Shares(float alpha, int draws = kDraws) {
  std::vector<double> shares(static_cast<size_t>(draws));
  const RandomStream random(11, 12);
  for (size_t i = 0; i < shares.size(); ++i) shares[i] = mix_up::DrawShare(random, i * mix_up::kCounters, alpha);
  return shares;
}

TEST(MixUp, SharesHaveTheMomentsOfBeta) {
  for (const float alpha : {0.02f, 0.2f, 0.5f, 0.999f, 1.0f, 1.5f, 8.0f, 1000.0f}) {
    SCOPED_TRACE(alpha);
    double mean = 0, variance = 0, fourth = 0;
    for (const double share : Shares(alpha)) {
      ASSERT_GE(share, 0);
      ASSERT_LE(share, 1);
      const double square = (share - 0.5) * (share - 0.5);
      mean += share / kDraws;
      variance += square / kDraws;
      fourth += square * square / kDraws;
    }
    const double a = alpha, expected = 1 / (4 * (2 * a + 1)), expected_fourth = 3 / (16 * (2 * a + 1) * (2 * a + 3));
    const double error = 4 / std::sqrt(kDraws);  // four standard deviations, by the spread of each
    EXPECT_NEAR(mean, 0.5, error * std::sqrt(expected));
    EXPECT_NEAR(variance, expected, error * std::sqrt(expected_fourth - expected * expected));
    EXPECT_NEAR(fourth, expected_fourth, 2 * error * expected_fourth);
  }
}

// The largest distance from the distribution function, which Kolmogorov's test compares with 1.95 / sqrt(n) (0.1 %).
TEST(MixUp, SharesAreDistributedAsBeta) {
  const auto distance = [](float alpha, double (*function)(double)) {
    std::vector<double> shares = Shares(alpha);
    std::sort(shares.begin(), shares.end());
    double largest = 0;
    for (int i = 0; i < kDraws; ++i) {
      const double expected = function(shares[static_cast<size_t>(i)]);
      largest = std::max({largest, std::fabs(expected - static_cast<double>(i) / kDraws),
                          std::fabs(expected - static_cast<double>(i + 1) / kDraws)});
    }
    return largest * std::sqrt(kDraws);
  };
  EXPECT_LT(distance(0.5f, [](double x) { return 2 / M_PI * std::asin(std::sqrt(x)); }), 1.95);
  EXPECT_LT(distance(1, [](double x) { return x; }), 1.95);
  EXPECT_LT(distance(2, [](double x) { return x * x * (3 - 2 * x); }), 1.95);
  EXPECT_LT(distance(3, [](double x) { return x * x * x * (10 - 15 * x + 6 * x * x); }), 1.95);
}

TEST(MixUp, SharesOfExtremeDistributions) {
  for (const float alpha : {1e-45f, 1e-30f, 1e-6f}) {
    int ones = 0;
    for (const double share : Shares(alpha, 2000)) {
      ASSERT_TRUE(share < 1e-9 || share > 1 - 1e-9) << alpha << " " << share;
      ones += share > 0.5;
    }
    EXPECT_NEAR(ones, 1000, 120) << alpha;
  }
  for (const float alpha : {1e12f, 1e20f, FLT_MAX}) {
    for (const double share : Shares(alpha, 2000)) ASSERT_NEAR(share, 0.5, 4e-6) << alpha;
  }
}

std::vector<ImageMix> Draw(const MixUpProblem& problem, uint64_t pass = 0) {
  std::vector<ImageMix> mixes(static_cast<size_t>(problem.images));
  DrawMixes(problem, RandomStream(3, StreamId(5, pass)), mixes.data());
  return mixes;
}

TEST(MixUp, EveryOtherImageHasEqualChances) {
  MixUpProblem problem;
  problem.images = 5;
  problem.alpha = 1;
  int chosen[5][5] = {};
  for (uint64_t pass = 0; pass < 4000; ++pass) {
    const std::vector<ImageMix> mixes = Draw(problem, pass);
    for (size_t i = 0; i < mixes.size(); ++i) ++chosen[i][mixes[i].other];
  }
  for (int i = 0; i < 5; ++i) {
    for (int other = 0; other < 5; ++other) EXPECT_NEAR(chosen[i][other], other == i ? 0 : 1000, i == other ? 0 : 120);
  }
}

TEST(MixUp, OneImageIsNotMixed) {
  MixUpProblem problem;
  problem.alpha = 1;
  const ImageMix mix = Draw(problem)[0];
  EXPECT_EQ(mix.share, 1);
  EXPECT_EQ(mix.other, 0);
}

TEST(MixUp, DrawsAnewInEachPassAndTheSameAgain) {
  MixUpProblem problem;
  problem.images = 100;
  problem.alpha = 1;
  const auto shares = [&](uint64_t pass) {
    std::vector<float> values;
    for (const ImageMix& mix : Draw(problem, pass)) values.push_back(mix.share);
    return values;
  };
  EXPECT_EQ(shares(1), shares(1));
  const std::vector<float> one = shares(1), other = shares(2);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_NE(one[i], other[i]);
}

TEST(MixUp, MixesAsManyAsWantedInEachWay) {
  MixUpProblem problem;
  problem.images = 20000;
  problem.height = problem.width = 1000;
  problem.alpha = problem.cutmix_alpha = 1;
  problem.cutmix_share = 0.3f;
  problem.probability = 0.6f;
  int cut = 0, blended = 0;
  for (const ImageMix& mix : Draw(problem)) {
    if (mix.share == 1) continue;
    ++(mix.cuts() ? cut : blended);
  }
  EXPECT_NEAR(cut / 20000.0, 0.18, 0.015);
  EXPECT_NEAR(blended / 20000.0, 0.42, 0.015);
}

TEST(MixUp, RectanglesAreWithinTheImageAndGiveTheShare) {
  MixUpProblem problem;
  problem.images = 20000;
  problem.height = 30;
  problem.width = 41;
  problem.cutmix_alpha = 1;
  double rows = 0, columns = 0, share = 0;
  int cut = 0;
  for (const ImageMix& mix : Draw(problem)) {
    if (!mix.cuts()) {
      ASSERT_EQ(mix.share, 1);
      continue;
    }
    ASSERT_GE(mix.top, 0);
    ASSERT_GE(mix.left, 0);
    ASSERT_LE(mix.bottom, 30);
    ASSERT_LE(mix.right, 41);
    const int area = (mix.bottom - mix.top) * (mix.right - mix.left);
    ASSERT_FLOAT_EQ(mix.share, static_cast<float>(1 - area / (30.0 * 41.0)));
    rows += mix.top + mix.bottom;
    columns += mix.left + mix.right;
    share += mix.share;
    ++cut;
  }
  EXPECT_GT(cut, 19000);
  EXPECT_NEAR(rows / (2 * cut), 15, 0.3);
  EXPECT_NEAR(columns / (2 * cut), 20.5, 0.4);
  // Of a side of length s in an extent of 1, s - s^2 / 4 is inside on average; s^2 is drawn uniformly.
  EXPECT_NEAR(share / cut, 1 - (0.5 - 0.4 * 0.5 + 1.0 / 48), 0.02);
}

struct Batch {
  MixUpProblem problem;
  bool channels_last = false;
  std::vector<ImageMix> mixes;
  std::vector<float> x, label;
};

Batch MakeBatch(bool channels_last) {
  Batch batch;
  MixUpProblem& problem = batch.problem;
  problem.images = 40;
  problem.classes = 7;
  problem.height = 90;
  problem.width = 75;
  (channels_last ? problem.channels : problem.planes) = 3;
  problem.alpha = problem.cutmix_alpha = 1;
  problem.cutmix_share = 0.5f;
  problem.probability = 0.9f;
  batch.channels_last = channels_last;
  batch.mixes = Draw(problem);
  batch.x = RandomValues(problem.images * problem.image_size(), 3);
  for (int64_t i = 0; i < problem.images; ++i) batch.label.push_back(static_cast<float>(i * 5 % 7));
  return batch;
}

// How much of the image's own element remains.
float Remains(const Batch& batch, const ImageMix& mix, int64_t element) {
  if (!mix.cuts()) return mix.share;
  const int64_t pixel = batch.channels_last ? element / 3 : element % (90 * 75);
  const int64_t row = pixel / 75, column = pixel % 75;
  const bool inside = row >= mix.top && row < mix.bottom && column >= mix.left && column < mix.right;
  return inside ? 0.0f : 1.0f;
}

TEST(MixUp, ImagesAreWhatTheTableSays) {
  for (const bool channels_last : {false, true}) {
    const Batch batch = MakeBatch(channels_last);
    const int64_t size = batch.problem.image_size();
    std::vector<float> y = Poison(batch.problem.images * size), x = batch.x;
    const TensorSpec spec{Shape{batch.problem.images, size}};
    MixImages(batch.problem, batch.mixes.data(), Tensor(x.data(), spec), Tensor(y.data(), spec));
    EXPECT_EQ(x, batch.x);
    for (int64_t i = 0; i < batch.problem.images; ++i) {
      const ImageMix& mix = batch.mixes[static_cast<size_t>(i)];
      for (int64_t k = 0; k < size; ++k) {
        const float remains = Remains(batch, mix, k), own = x[i * size + k], other = x[mix.other * size + k];
        const float expected = remains == 1 ? own : remains == 0 ? other : remains * own + (1 - remains) * other;
        ASSERT_NEAR(y[i * size + k], expected, remains > 0 && remains < 1 ? 2e-7 : 0) << i << " " << k;
      }
    }
  }
}

TEST(MixUp, BFloat16IsTheRoundedMix) {
  const Batch batch = MakeBatch(true);
  const int64_t n = batch.problem.images * batch.problem.image_size();
  std::vector<BFloat16> x(batch.x.begin(), batch.x.end()), y(static_cast<size_t>(n));
  std::vector<float> rounded(x.begin(), x.end()), expected(static_cast<size_t>(n));
  const Shape shape{n};
  MixImages(batch.problem, batch.mixes.data(), Tensor(rounded.data(), {shape}), Tensor(expected.data(), {shape}));
  MixImages(batch.problem, batch.mixes.data(), Tensor(x.data(), {shape, DType::kBF16}),
            Tensor(y.data(), {shape, DType::kBF16}));
  for (int64_t i = 0; i < n; ++i) ASSERT_EQ(float{y[i]}, float{BFloat16(expected[i])}) << i;
}

TEST(MixUp, TargetsAreTheSharesOfLabels) {
  const Batch batch = MakeBatch(false);
  std::vector<float> target = Poison(40 * 7);
  MixLabels(batch.problem, batch.mixes.data(), batch.label.data(), target.data());
  int of_one_class = 0, mixed = 0;
  for (size_t i = 0; i < 40; ++i) {
    const ImageMix& mix = batch.mixes[i];
    const auto own = static_cast<size_t>(batch.label[i]), other = static_cast<size_t>(batch.label[mix.other]);
    float sum = 0;
    for (size_t c = 0; c < 7; ++c) {
      const float share = (c == own ? mix.share : 0) + (c == other ? 1 - mix.share : 0);
      EXPECT_FLOAT_EQ(target[i * 7 + c], share) << i << " " << c;
      sum += target[i * 7 + c];
    }
    EXPECT_FLOAT_EQ(sum, 1) << i;
    if (own == other) {
      EXPECT_EQ(target[i * 7 + own], 1);
    }
    of_one_class += own == other && mix.share < 1;
    mixed += own != other && mix.share < 1;
  }
  EXPECT_GT(of_one_class, 0) << "the case shows nothing of images of one class";
  EXPECT_GT(mixed, 20);
}

TEST(MixUp, WithoutMixesAllIsTheLabels) {
  MixUpProblem problem;
  problem.images = 2;
  problem.classes = 3;
  const float label[] = {2, 0};
  std::vector<float> target = Poison(6);
  MixLabels(problem, nullptr, label, target.data());
  EXPECT_EQ(target, (std::vector<float>{0, 0, 1, 1, 0, 0}));
}

}  // namespace
}  // namespace crema
