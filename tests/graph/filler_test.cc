#include "graph/filler.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/random.h"

namespace crema {
namespace {

FillerParameter Filler(const std::string& type) {
  FillerParameter filler;
  filler.set_type(type);
  return filler;
}

std::vector<float> Filled(const FillerParameter& filler, const Shape& shape, uint64_t seed = 1, uint64_t stream = 2) {
  std::vector<float> values(static_cast<size_t>(shape.count()), std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(CheckFiller(filler, shape), "");
  Fill(filler, seed, stream, Tensor(values.data(), {shape, DType::kF32}));
  return values;
}

struct Moments {
  double mean = 0, std = 0, min = 0, max = 0;
};

Moments MomentsOf(const std::vector<float>& values) {
  Moments m;
  for (float v : values) m.mean += v / values.size();
  for (float v : values) m.std += (v - m.mean) * (v - m.mean) / values.size();
  m.std = std::sqrt(m.std);
  m.min = *std::min_element(values.begin(), values.end());
  m.max = *std::max_element(values.begin(), values.end());
  return m;
}

TEST(Filler, Constant) {
  FillerParameter filler;  // the default type
  EXPECT_EQ(Filled(filler, {2, 2}), std::vector<float>(4, 0.0f));
  filler.set_value(-1.5f);
  EXPECT_EQ(Filled(filler, {3}), std::vector<float>(3, -1.5f));
  EXPECT_EQ(Filled(filler, {}), std::vector<float>(1, -1.5f));
}

TEST(Filler, UniformCoversItsRange) {
  FillerParameter filler = Filler("uniform");
  filler.set_min(-2);
  filler.set_max(4);
  const Moments m = MomentsOf(Filled(filler, {100003}));
  EXPECT_NEAR(m.mean, 1, 0.03);
  EXPECT_NEAR(m.std, 6 / std::sqrt(12.0), 0.02);
  EXPECT_GE(m.min, -2);
  EXPECT_LT(m.min, -1.99);
  EXPECT_LE(m.max, 4);
  EXPECT_GT(m.max, 3.99);
}

TEST(Filler, GaussianHasItsMoments) {
  FillerParameter filler = Filler("gaussian");
  filler.set_mean(3);
  filler.set_std(0.5);
  const std::vector<float> values = Filled(filler, {200, 1001});
  const Moments m = MomentsOf(values);
  EXPECT_NEAR(m.mean, 3, 0.005);
  EXPECT_NEAR(m.std, 0.5, 0.005);
  const auto within = std::count_if(values.begin(), values.end(), [](float v) { return std::fabs(v - 3) < 0.5; });
  EXPECT_NEAR(static_cast<double>(within) / values.size(), 0.6827, 0.005);
  // The two numbers made of one pair of random words must not go together.
  double product = 0;
  for (size_t i = 0; i + 1 < values.size(); i += 2) product += (values[i] - 3.0) * (values[i + 1] - 3.0);
  EXPECT_NEAR(product / (values.size() / 2) / 0.25, 0, 0.02);
}

TEST(Filler, SparseGaussianKeepsAShareOfShape0) {
  FillerParameter filler = Filler("gaussian");
  filler.set_sparse(15);
  const std::vector<float> values = Filled(filler, {100, 1000});
  const auto zeros = std::count(values.begin(), values.end(), 0.0f);
  EXPECT_NEAR(1 - static_cast<double>(zeros) / values.size(), 0.15, 0.005);
  filler.set_sparse(0);
  EXPECT_EQ(Filled(filler, {10, 10}), std::vector<float>(100, 0.0f));
}

TEST(Filler, PositiveUnitballSumsToOne) {
  const std::vector<float> values = Filled(Filler("positive_unitball"), {3, 50, 2});
  for (int slice = 0; slice < 3; ++slice) {
    double sum = 0;
    for (int i = 0; i < 100; ++i) {
      EXPECT_GE(values[slice * 100 + i], 0);
      sum += values[slice * 100 + i];
    }
    EXPECT_NEAR(sum, 1, 1e-5);
  }
}

TEST(Filler, XavierAndMsraScaleByTheirFan) {
  const Shape shape{40, 30, 5, 5};  // fan_in 750, fan_out 1000
  const struct {
    FillerParameter::VarianceNorm norm;
    double fan;
  } cases[] = {{FillerParameter::FAN_IN, 750}, {FillerParameter::FAN_OUT, 1000}, {FillerParameter::AVERAGE, 875}};
  for (const auto& c : cases) {
    FillerParameter xavier = Filler("xavier"), msra = Filler("msra");
    xavier.set_variance_norm(c.norm);
    msra.set_variance_norm(c.norm);
    const Moments x = MomentsOf(Filled(xavier, shape)), m = MomentsOf(Filled(msra, shape));
    EXPECT_NEAR(x.max, std::sqrt(3 / c.fan), 1e-3 * std::sqrt(3 / c.fan));
    EXPECT_NEAR(x.min, -std::sqrt(3 / c.fan), 1e-3 * std::sqrt(3 / c.fan));
    EXPECT_NEAR(m.std, std::sqrt(2 / c.fan), 0.02 * std::sqrt(2 / c.fan));
    EXPECT_NEAR(m.mean, 0, 0.001);
  }
  FillerParameter fan_out = Filler("xavier");
  fan_out.set_variance_norm(FillerParameter::FAN_OUT);
  EXPECT_LE(MomentsOf(Filled(fan_out, {300})).max, std::sqrt(3.0 / 300));  // one axis: fan_out is the count
}

TEST(Filler, BilinearIsTheKernelThatInterpolates) {
  const std::vector<float> two = Filled(Filler("bilinear"), {1, 1, 4, 4});
  const float row[] = {0.25f, 0.75f, 0.75f, 0.25f};
  for (int y = 0; y < 4; ++y) {
    for (int x = 0; x < 4; ++x) EXPECT_FLOAT_EQ(two[y * 4 + x], row[y] * row[x]);
  }
  const std::vector<float> odd = Filled(Filler("bilinear"), {2, 1, 3, 3});
  const float odd_row[] = {0.5f, 1.0f, 0.5f};
  for (int i = 0; i < 18; ++i) EXPECT_FLOAT_EQ(odd[i], odd_row[i / 3 % 3] * odd_row[i % 3]) << i;
}

TEST(Filler, RandomValuesDependOnSeedAndStreamOnly) {
  for (const char* type : {"uniform", "gaussian", "positive_unitball", "xavier", "msra"}) {
    const FillerParameter filler = Filler(type);
    const Shape shape{90, 701};
    const int before = omp_get_max_threads();
    omp_set_num_threads(1);
    const std::vector<float> one = Filled(filler, shape);
    omp_set_num_threads(3);
    EXPECT_EQ(Filled(filler, shape), one) << type;
    omp_set_num_threads(before);
    EXPECT_NE(Filled(filler, shape, 2, 2), one) << type;
    EXPECT_NE(Filled(filler, shape, 1, 3), one) << type;
  }
}

// The values of a seed are part of what a run is: they must not change with the way they are computed.
TEST(Filler, GaussiansAreThoseOfTheFormulaBitForBit) {
  FillerParameter filler = Filler("gaussian");
  const std::pair<float, float> settings[] = {{0.0f, 0.01f}, {3.0f, 0.5f}, {0.0f, 0.0f}, {-1e-3f, 1e3f}};
  for (const auto& [mean, std] : settings) {
    filler.set_mean(mean);
    filler.set_std(std);
    const uint64_t seed = 0x123456789abcdef;
    const std::vector<float> values = Filled(filler, {1000003}, seed, 5);
    const RandomStream random(seed, 5);
    int64_t wrong = 0;
    for (size_t i = 0; i < values.size(); i += 2) {
      const auto bits = random.Bits(i / 4);
      const double radius = std * std::sqrt(-2.0 * std::log((bits[i % 4] + 0.5) * 0x1p-32));
      const double angle = 6.283185307179586 * (bits[i % 4 + 1] * 0x1p-32);
      wrong += values[i] != static_cast<float>(mean + radius * std::cos(angle));
      if (i + 1 < values.size()) wrong += values[i + 1] != static_cast<float>(mean + radius * std::sin(angle));
    }
    EXPECT_EQ(wrong, 0) << "mean " << mean << ", std " << std;
  }
}

TEST(Filler, UniformsAreThoseOfTheFormulaBitForBit) {
  FillerParameter filler = Filler("uniform");
  filler.set_min(-2);
  filler.set_max(4);
  const std::vector<float> values = Filled(filler, {100003}, uint64_t{1} << 40, uint64_t{3} << 50);
  const RandomStream random(uint64_t{1} << 40, uint64_t{3} << 50);
  int64_t wrong = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const volatile float scaled = 6 * (static_cast<float>(random.Bits(i / 4)[i % 4] >> 8) * 0x1p-24f);
    wrong += values[i] != -2 + scaled;
  }
  EXPECT_EQ(wrong, 0);
}

void ExpectProblem(const FillerParameter& filler, const Shape& shape, const std::string& part) {
  const std::string problem = CheckFiller(filler, shape);
  EXPECT_NE(problem.find(part), std::string::npos) << "\"" << problem << "\" does not say: " << part;
}

TEST(Filler, ValuesAreThoseGiven) {
  FillerParameter filler = Filler("values");
  for (const float value : {1.0f, 0.0f, -2.5f, 0.0f, 1.0f, 3e-9f}) filler.add_values(value);
  EXPECT_EQ(Filled(filler, {2, 3}), (std::vector<float>{1, 0, -2.5f, 0, 1, 3e-9f}));
  ExpectProblem(filler, {5}, "6 values are given, but the parameter (5) has 5 elements; give one for each");
  filler.set_values(2, NAN);
  ExpectProblem(filler, {6}, "one of them is not finite");
  filler.set_type("constant");
  ExpectProblem(filler, {6}, "values are for type: \"values\" alone");
}

TEST(CheckFiller, SaysWhatIsWrongAndWhatToDo) {
  ExpectProblem(Filler("xaviar"), {2}, "unknown filler type \"xaviar\"; did you mean \"xavier\"?");
  ExpectProblem(Filler("zzz"), {2}, "known: constant, uniform, gaussian, positive_unitball, xavier, msra, bilinear");
  ExpectProblem(Filler("bilinear"), {4, 4}, "is for square kernels of 4 axes, but the parameter is 4x4");
  ExpectProblem(Filler("bilinear"), {1, 1, 3, 4}, "1x1x3x4");
  FillerParameter filler = Filler("uniform");
  filler.set_min(1);
  filler.set_max(0.5);
  ExpectProblem(filler, {2}, "min 1 exceeds max 0.5");
  filler = Filler("gaussian");
  filler.set_std(-1);
  ExpectProblem(filler, {2}, "std is -1");
  filler = Filler("gaussian");
  filler.set_sparse(-2);
  ExpectProblem(filler, {2}, "sparse is -2");
  filler = Filler("xavier");
  filler.set_sparse(3);
  ExpectProblem(filler, {2}, "only gaussian can be sparse");
  filler = Filler("constant");
  filler.set_value(std::numeric_limits<float>::infinity());
  ExpectProblem(filler, {2}, "value is inf");
}

}  // namespace
}  // namespace crema
