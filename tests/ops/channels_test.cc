#include "ops/normalization/channels.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "ops/comparison.h"

namespace crema {

namespace {

struct Case {
  ChannelGrid grid;
  std::string name() const {
    return std::to_string(grid.batch) + "x" + std::to_string(grid.channels) + "x" + std::to_string(grid.pixels) +
           (grid.layout == Layout::kPlain ? " plain" : " last") + (grid.dtype == DType::kF32 ? " f32" : " bf16");
  }
  int64_t channel(int64_t i) const {
    return grid.layout == Layout::kPlain ? i / grid.pixels % grid.channels : i % grid.channels;
  }
  GuardedTensor Values(uint64_t stream) const { return {grid.dtype, RandomValues(grid.count(), stream)}; }
  GuardedTensor Unwritten() const { return {grid.dtype, Poison(grid.count())}; }
  void Expect(const std::vector<float>& expected, const GuardedTensor& actual, const std::string& what) const {
    ExpectRounded(expected, actual.Read(), name() + " " + what);
  }
};

// Channels below, at and between the widths of vectors, one row too long to be repeated to whole blocks, and tensors
// of less than a row, of a row and a part, and of several chunks.
std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const auto& [batch, channels, pixels] : std::vector<std::array<int64_t, 3>>{
             {1, 1, 5}, {2, 1, 777}, {3, 20, 35}, {2, 33, 11}, {2, 64, 49}, {3, 96, 30}, {2, 700, 33}, {2, 1024, 40}}) {
      cases.push_back({{batch, channels, pixels, Layout::kChannelsLast, dtype}});
      if (dtype == DType::kF32) cases.push_back({{batch, channels, pixels, Layout::kPlain, dtype}});
    }
  }
  return cases;
}

struct Workspace {
  explicit Workspace(const ChannelGrid& grid) : buffer(ChannelWorkspace(grid)) {}
  std::byte* data() { return static_cast<std::byte*>(buffer.data()); }
  struct Aligned {
    explicit Aligned(size_t bytes) : storage(bytes + 64) {}
    void* data() {
      const auto address = reinterpret_cast<uintptr_t>(storage.data());
      return storage.data() + (64 - address % 64) % 64;
    }
    std::vector<std::byte> storage;
  } buffer;
};

TEST(Channels, MomentsAreThoseOfPlainLoops) {
  for (const Case& c : Cases()) {
    GuardedTensor x = c.Values(1);
    const std::vector<float> values = x.Read();
    std::vector<double> mean(c.grid.channels), variance(c.grid.channels);
    const double count = static_cast<double>(c.grid.per_channel());
    for (int64_t i = 0; i < c.grid.count(); ++i) mean[c.channel(i)] += values[i] / count;
    for (int64_t i = 0; i < c.grid.count(); ++i) {
      const double deviation = values[i] - mean[c.channel(i)];
      variance[c.channel(i)] += deviation * deviation / count;
    }
    std::vector<float> means = Poison(c.grid.channels), variances = means;
    Workspace workspace(c.grid);
    ChannelMoments(c.grid, x.data(), means.data(), variances.data(), workspace.data());
    for (int64_t i = 0; i < c.grid.channels; ++i) {
      ASSERT_NEAR(mean[i], means[i], 1e-6) << c.name() << " channel " << i;
      ASSERT_NEAR(variance[i], variances[i], 1e-6) << c.name() << " channel " << i;
    }
  }
}

// Images as large, and as far from 0, as in segmentation of photographs that nobody centred.
TEST(Channels, SumsOfLargeImagesKeepTheirDigits) {
  const Case c{{1, 2, 1 << 20, Layout::kPlain, DType::kF32}};
  std::vector<float> values = RandomValues(c.grid.count(), 1), gradient = RandomValues(c.grid.count(), 2);
  for (float& value : values) value += 100;
  for (float& g : gradient) g += 1;
  std::vector<double> mean(2), variance(2), sum(2), product(2);
  const double count = static_cast<double>(c.grid.per_channel());
  for (int64_t i = 0; i < c.grid.count(); ++i) mean[c.channel(i)] += values[i] / count;
  for (int64_t i = 0; i < c.grid.count(); ++i) {
    const double deviation = values[i] - mean[c.channel(i)];
    variance[c.channel(i)] += deviation * deviation / count;
  }
  std::vector<float> means = Poison(2), variances = means, sums = means, products = means;
  ChannelMoments(c.grid, values.data(), means.data(), variances.data(), nullptr);
  for (int64_t i = 0; i < c.grid.count(); ++i) {
    sum[c.channel(i)] += gradient[i];
    product[c.channel(i)] += gradient[i] * (values[i] - means[c.channel(i)]);
  }
  ChannelGradientSums(c.grid, {gradient.data(), nullptr}, values.data(), means.data(), sums.data(), products.data(),
                      nullptr);
  for (int64_t k = 0; k < 2; ++k) {
    EXPECT_NEAR(mean[k], means[k], 4e-6) << "channel " << k;  // half of the last bit of 100
    EXPECT_NEAR(variance[k], variances[k], 1e-6 * variance[k]) << "channel " << k;
    EXPECT_NEAR(sum[k], sums[k], 2e-7 * count) << "channel " << k;
    EXPECT_NEAR(product[k], products[k], 2e-7 * count) << "channel " << k;
  }
  // Equal numbers are their own mean.
  for (const int64_t pixels : {3, 4 * 28, 56 * 56, 1 << 20}) {
    values.assign(static_cast<size_t>(pixels), 1000.1f);
    ChannelMoments({1, 1, pixels}, values.data(), means.data(), variances.data(), nullptr);
    EXPECT_EQ(means[0], 1000.1f) << pixels;
    EXPECT_NEAR(variances[0], 0, 1e-9) << pixels;
  }
  values[5] = std::numeric_limits<float>::quiet_NaN();
  ChannelMoments({1, 1, 1 << 20}, values.data(), means.data(), variances.data(), nullptr);
  EXPECT_TRUE(std::isnan(means[0]) && std::isnan(variances[0]));
}

TEST(Channels, AffineMapIsThatOfPlainLoops) {
  for (const Case& c : Cases()) {
    const int64_t channels = c.grid.channels;
    const std::vector<float> mean = RandomValues(channels, 2), scale = RandomValues(channels, 3),
                             shift = RandomValues(channels, 4);
    for (int options = 0; options < 16; ++options) {
      const bool addend = options & 1, relu = options & 2, coefficients = options & 4, in_place = options & 8;
      GuardedTensor x = c.Values(1), added = c.Values(5), y = c.Unwritten();
      const std::vector<float> values = x.Read(), more = added.Read();
      std::vector<float> expected(c.grid.count());
      for (int64_t i = 0; i < c.grid.count(); ++i) {
        const int64_t k = c.channel(i);
        double value = coefficients ? (values[i] - mean[k]) * scale[k] + shift[k] : values[i];
        if (addend) value += more[i];
        expected[i] = static_cast<float>(relu && value < 0 ? 0 : value);
      }
      Workspace workspace(c.grid);
      RunChannelAffine(c.grid,
                       {.x = x.data(),
                        .mean = coefficients ? mean.data() : nullptr,
                        .scale = coefficients ? scale.data() : nullptr,
                        .shift = coefficients ? shift.data() : nullptr,
                        .addend = addend ? added.data() : nullptr,
                        .relu = relu,
                        .y = in_place ? x.data() : y.data()},
                       workspace.data());
      c.Expect(expected, in_place ? x : y, "options " + std::to_string(options));
    }
  }
}

TEST(Channels, GradientSumsAreThoseOfPlainLoops) {
  for (const Case& c : Cases()) {
    const int64_t channels = c.grid.channels;
    const std::vector<float> mean = RandomValues(channels, 2);
    for (int options = 0; options < 8; ++options) {
      const bool masked = options & 1, with_product = options & 2, centered = options & 4;
      GuardedTensor dy = c.Values(6), y = c.Values(7), x = c.Values(1);
      const std::vector<float> gradient = dy.Read(), top = y.Read(), values = x.Read();
      std::vector<double> sum(channels), product(channels);
      for (int64_t i = 0; i < c.grid.count(); ++i) {
        const int64_t k = c.channel(i);
        const double g = masked && !(top[i] > 0) ? 0 : gradient[i];
        sum[k] += g;
        product[k] += g * (values[i] - (centered ? mean[k] : 0));
      }
      std::vector<float> sums = Poison(channels), products = sums;
      Workspace workspace(c.grid);
      ChannelGradientSums(c.grid, {dy.data(), masked ? y.data() : nullptr}, with_product ? x.data() : nullptr,
                          centered ? mean.data() : nullptr, sums.data(), with_product ? products.data() : nullptr,
                          workspace.data());
      for (int64_t k = 0; k < channels; ++k) {
        ASSERT_NEAR(sum[k], sums[k], 5e-5) << c.name() << " channel " << k << " options " << options;
        if (!with_product) continue;
        ASSERT_NEAR(product[k], products[k], 5e-5) << c.name() << " channel " << k << " options " << options;
      }
    }
  }
}

TEST(Channels, GradientMapIsThatOfPlainLoops) {
  for (const Case& c : Cases()) {
    const int64_t channels = c.grid.channels;
    const std::vector<float> mean = RandomValues(channels, 2), a = RandomValues(channels, 3),
                             b = RandomValues(channels, 4), constant = RandomValues(channels, 5);
    for (int options = 0; options < 32; ++options) {
      const bool relu = options & 1, centered = options & 2, in_place = options & 4, wants_dx = options & 8,
                 wants_masked = options & 16;
      if (!wants_dx && !wants_masked) continue;
      GuardedTensor dy = c.Values(6), y = c.Values(7), x = c.Values(1), dx = c.Unwritten(), masked = c.Unwritten();
      const std::vector<float> gradient = dy.Read(), top = y.Read(), values = x.Read();
      std::vector<float> expected(c.grid.count()), arrived(c.grid.count());
      for (int64_t i = 0; i < c.grid.count(); ++i) {
        const int64_t k = c.channel(i);
        const double g = relu && !(top[i] > 0) ? 0 : gradient[i];
        arrived[i] = static_cast<float>(g);
        expected[i] = static_cast<float>(a[k] * g + (centered ? b[k] * (values[i] - mean[k]) + constant[k] : 0));
      }
      GuardedTensor& out = in_place ? dy : dx;
      Workspace workspace(c.grid);
      RunChannelGradientMap(c.grid,
                            {.g = {dy.data(), relu ? y.data() : nullptr},
                             .x = centered ? x.data() : nullptr,
                             .mean = mean.data(),
                             .a = a.data(),
                             .b = centered ? b.data() : nullptr,
                             .c = constant.data(),
                             .dx = wants_dx ? out.data() : nullptr,
                             .masked = wants_masked ? masked.data() : nullptr},
                            workspace.data());
      if (wants_dx) c.Expect(expected, out, "dx, options " + std::to_string(options));
      if (wants_masked) c.Expect(arrived, masked, "masked, options " + std::to_string(options));
    }
  }
}

// In bf16: ties to even, subnormals kept, overflow to infinity, and a NaN stays one whatever its lower half holds.
TEST(Channels, AffineMapRoundsEveryKindOfNumber) {
  const float infinity = std::numeric_limits<float>::infinity(), full_nan = std::bit_cast<float>(0x7fffffffu);
  const std::vector<float> shift = {0x1.01p0f, 0x1.03p0f, 0x1.010002p0f, 0x1p-130f, 0x1.fffffep127f,
                                    infinity,  -infinity, full_nan,      -full_nan, 0.0f};
  const int64_t channels = static_cast<int64_t>(shift.size());
  const Case c{{1, channels, 50, Layout::kChannelsLast, DType::kBF16}};
  GuardedTensor x(DType::kBF16, std::vector<float>(c.grid.count())), y = c.Unwritten();
  Workspace workspace(c.grid);
  RunChannelAffine(c.grid, {.x = x.data(), .shift = shift.data(), .y = y.data()}, workspace.data());
  const std::vector<float> actual = y.Read();
  const std::vector<float> expected = {0x1p0f, 0x1.04p0f, 0x1.02p0f, 0x1p-130f, infinity, infinity, -infinity};
  for (int64_t i = 0; i < c.grid.count(); ++i) {
    const int64_t k = i % channels;
    if (k < 7) {
      ASSERT_EQ(expected[k], actual[i]) << "channel " << k;
    } else {
      ASSERT_EQ(k < 9, std::isnan(actual[i])) << "channel " << k;
    }
  }
}

}  // namespace

}  // namespace crema
