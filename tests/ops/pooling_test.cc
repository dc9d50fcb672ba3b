#include "ops/pooling/pooling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "pooling_runs.h"

namespace crema {
namespace {

struct Case {
  int64_t channels, height, width;
  PoolingWindow vertical, horizontal;
  bool ceil;
  // Of volumes.
  int64_t depth = 1;
  PoolingWindow along_depth = {};
};

const Case kCases[] = {
    {3, 24, 24, {2, 2, 0}, {2, 2, 0}, true},
    {3, 8, 8, {2, 2, 0}, {2, 2, 0}, true},
    {5, 7, 9, {2, 2, 0}, {2, 2, 0}, true},
    {5, 7, 9, {2, 2, 0}, {2, 2, 0}, false},
    {4, 32, 32, {3, 2, 0}, {3, 2, 0}, true},
    {4, 13, 14, {3, 2, 1}, {3, 2, 1}, true},
    {4, 14, 13, {3, 1, 1}, {3, 1, 1}, true},
    {2, 9, 9, {3, 3, 0}, {3, 3, 0}, true},
    {2, 9, 9, {2, 1, 0}, {2, 1, 0}, true},
    {2, 10, 11, {5, 3, 2}, {4, 2, 1}, true},
    {2, 7, 7, {7, 1, 0}, {7, 1, 0}, true},
    {2, 20, 21, {20, 1, 0}, {21, 1, 0}, true},
    {1, 40, 700, {3, 2, 1}, {3, 2, 1}, true},
    {2, 8, 8, {1, 3, 0}, {1, 3, 0}, true},
    {2, 5, 6, {3, 2, 2}, {3, 2, 2}, true},
    {2, 1, 1, {1, 1, 0}, {1, 1, 0}, true},
    {2, 4, 4, {2, 3, 1}, {2, 3, 1}, true},
    {1, 3, 4, {4, 2, 0}, {5, 3, 0}, true},
    {1, 2, 9000, {2, 2, 0}, {40, 7, 3}, true},
    {1, 17, 18, {17, 2, 0}, {16, 2, 0}, true},
    {2, 12, 5, {3, 2, 0}, {1, 1, 0}, false},
    {1, 8, 9, {3, 5, 0}, {2, 6, 0}, true},
    {2, 11, 7, {4, 4, 0}, {4, 4, 0}, false},
    {1, 37, 36, {17, 17, 0}, {17, 17, 0}, false},
    {3, 16, 16, {2, 2, 0}, {2, 2, 0}, true, 8, {2, 2, 0}},
    {3, 7, 9, {2, 2, 0}, {2, 2, 0}, true, 5, {2, 2, 0}},
    {3, 7, 9, {2, 2, 0}, {2, 2, 0}, false, 5, {2, 2, 0}},
    {4, 9, 10, {2, 2, 0}, {2, 2, 0}, true, 4, {1, 1, 0}},
    {4, 8, 9, {3, 2, 1}, {3, 2, 1}, true, 7, {3, 2, 1}},
    {2, 7, 20, {3, 1, 1}, {3, 1, 1}, true, 6, {3, 1, 1}},
    {2, 6, 7, {1, 1, 0}, {5, 2, 3}, true, 9, {4, 3, 2}},
    {2, 5, 5, {1, 2, 0}, {4, 4, 0}, false, 6, {3, 3, 0}},
    {2, 4, 5, {4, 1, 0}, {5, 1, 0}, true, 3, {3, 1, 0}},
    {1, 8, 7, {7, 1, 0}, {7, 1, 0}, true, 9, {7, 1, 0}},
    {2, 6, 6, {3, 2, 1}, {3, 2, 1}, true, 1, {3, 1, 1}},
    {2, 6, 7, {1, 5, 0}, {1, 3, 0}, true, 3, {1, 3, 0}},
    {1, 3, 700, {3, 2, 1}, {3, 2, 1}, true, 2, {2, 2, 1}},
    {2, 2, 2, {3, 2, 0}, {3, 2, 0}, true, 2, {3, 2, 0}},
    {1, 3, 9000, {2, 2, 0}, {40, 7, 3}, true, 2, {2, 2, 0}},
    {2, 1, 1, {1, 1, 0}, {1, 1, 0}, true, 5, {2, 2, 1}},
    {3, 5, 17, {5, 2, 0}, {17, 1, 0}, true, 3, {3, 1, 0}},
    {2, 6, 7, {8, 4, 1}, {11, 5, 2}, true},
};

PoolingProblem Problem(const Case& test, PoolingMethod method) {
  const bool padded = test.along_depth.pad > 0 || test.vertical.pad > 0 || test.horizontal.pad > 0;
  return {.method = method,
          .channels = test.channels,
          .input_depth = test.depth,
          .input_height = test.height,
          .input_width = test.width,
          .depth = test.along_depth,
          .vertical = test.vertical,
          .horizontal = test.horizontal,
          .output_depth = PooledExtent(test.depth, test.along_depth, test.ceil, padded),
          .output_height = PooledExtent(test.height, test.vertical, test.ceil, padded),
          .output_width = PooledExtent(test.width, test.horizontal, test.ceil, padded),
          .training = true,
          .backward = true};
}

PoolingProblem ChannelsLast(const Case& test, PoolingMethod method) {
  return WithChannelsLast(Problem(test, method), &test - kCases);
}

TEST(Pooling, EqualsReference) {
  for (const Case& test : kCases) {
    const std::string what = "case " + std::to_string(&test - kCases);
    for (const PoolingMethod method : {PoolingMethod::kMax, PoolingMethod::kAverage, PoolingMethod::kSum}) {
      ExpectEqualsReference(Problem(test, method), what);
      ExpectEqualsReference(ChannelsLast(test, method), what + " with channels last");
    }
  }
}

TEST(Pooling, BFloat16RoundsOnce) {
  for (const PoolingMethod method : {PoolingMethod::kMax, PoolingMethod::kAverage, PoolingMethod::kSum}) {
    for (const Case& test : kCases) {
      ExpectRoundsOnce(ChannelsLast(test, method), "case " + std::to_string(&test - kCases));
    }
    PoolingProblem problem = Problem({1, 7, 7, {7, 1, 0}, {7, 1, 0}, true}, method);
    problem.layout = Layout::kChannelsLast;
    problem.channels = 1100;
    ExpectRoundsOnce(problem, "many channels");
  }
}

TEST(Pooling, TakesManyChannelsLast) {
  for (const Case& test :
       {Case{1, 7, 7, {7, 1, 0}, {7, 1, 0}, true}, Case{1, 3, 4, {3, 1, 0}, {4, 1, 0}, true, 2, {2, 1, 0}}}) {
    for (const PoolingMethod method : {PoolingMethod::kMax, PoolingMethod::kAverage}) {
      PoolingProblem problem = Problem(test, method);
      problem.layout = Layout::kChannelsLast;
      problem.channels = 1100;
      ExpectEqualsReference(problem, "many channels");
    }
  }
}

TEST(Pooling, MeansOfWholePlanesAreAccurate) {
  const PoolingProblem problem = Problem({2, 70, 130, {70, 1, 0}, {130, 1, 0}, true}, PoolingMethod::kAverage);
  const std::vector<float> source = RandomValues(problem.inputs(), 1);
  const PoolingResults results = RunPooling(problem, "", source);
  for (int64_t plane = 0; plane < 2; ++plane) {
    const auto begin = source.begin() + plane * problem.input_plane();
    const double sum = std::accumulate(begin, begin + problem.input_plane(), 0.0);
    EXPECT_NEAR(results.destination[plane], sum / 9100, 1e-8);
  }
}

TEST(Pooling, SumsAreNotDivided) {
  // Windows of 2, 3 and 2 of the row's elements.
  PoolingProblem problem = Problem({1, 1, 5, {1, 1, 0}, {3, 2, 1}, true}, PoolingMethod::kSum);
  ASSERT_EQ(problem.output_width, 3);
  const std::vector<float> source = {1, 10, 100, 1000, 10000};
  for (const char* name : {"reference", ""}) {
    EXPECT_EQ(RunPooling(problem, name, source).destination, (std::vector<float>{11, 1110, 11000}));
  }
}

// A kernel and its reference each read the layout in their own way; that both mean the same is checked here.
TEST(Pooling, LayoutsHoldTheSameNumbers) {
  for (const PoolingMethod method : {PoolingMethod::kMax, PoolingMethod::kAverage}) {
    PoolingProblem plain = Problem({5, 7, 9, {3, 2, 1}, {2, 2, 0}, true}, method), last = plain;
    last.layout = Layout::kChannelsLast;
    const auto swap = [&](const std::vector<float>& from, int64_t pixels, bool to_last) {
      std::vector<float> to(from.size());
      for (int64_t c = 0; c < plain.channels; ++c) {
        for (int64_t i = 0; i < pixels; ++i) {
          const int64_t there = i * plain.channels + c, here = c * pixels + i;
          to[to_last ? there : here] = from[to_last ? here : there];
        }
      }
      return to;
    };
    const auto source = RandomValues(plain.inputs(), 1);
    const int64_t inputs = plain.input_height * plain.input_width, outputs = plain.output_height * plain.output_width;
    const PoolingResults expected = RunPooling(plain, "reference", source);
    const PoolingResults actual = RunPooling(last, "reference", swap(source, inputs, true));
    EXPECT_EQ(expected.destination, swap(actual.destination, outputs, false));
    if (method == PoolingMethod::kMax) {
      EXPECT_EQ(expected.indices, swap(actual.indices, outputs, false));
    }
  }
}

TEST(Pooling, TiesGoToTheFirstElementInRowMajorOrder) {
  for (const Case& test : kCases) {
    for (const PoolingProblem& problem :
         {Problem(test, PoolingMethod::kMax), ChannelsLast(test, PoolingMethod::kMax)}) {
      auto source = RandomValues(problem.inputs(), 1);
      for (float& x : source) x = x > 0 ? 1.0f : -0.0f;  // as behind a ReLU
      const PoolingResults expected = RunPooling(problem, "reference", source),
                           actual = RunPooling(problem, "", source);
      EXPECT_EQ(expected.indices, actual.indices) << "case " << &test - kCases;
      ExpectClose(expected.source_gradient, actual.source_gradient, 1e-5f, "source gradient");
    }
  }
  const PoolingProblem problem = Problem({1, 2, 2, {2, 2, 0}, {2, 2, 0}, true}, PoolingMethod::kMax);
  EXPECT_EQ(RunPooling(problem, "reference", {3, 3, 3, 3}).indices[0], 0.0f);
  EXPECT_EQ(RunPooling(problem, "reference", {2, 3, 3, 3}).indices[0], 1.0f);
  const PoolingProblem volume = Problem({1, 1, 2, {1, 1, 0}, {2, 2, 0}, true, 2, {2, 2, 0}}, PoolingMethod::kMax);
  EXPECT_EQ(RunPooling(volume, "", {3, 3, 3, 3}).indices[0], 0.0f);
  EXPECT_EQ(RunPooling(volume, "", {2, 3, 3, 3}).indices[0], 1.0f);
  EXPECT_EQ(RunPooling(volume, "", {2, 2, 3, 3}).indices[0], 2.0f);
}

TEST(Pooling, ForwardAloneKeepsNothing) {
  const Case &image = kCases[4], &volume = kCases[28];
  for (PoolingProblem problem : {Problem(image, PoolingMethod::kMax), ChannelsLast(image, PoolingMethod::kMax),
                                 Problem(volume, PoolingMethod::kMax), ChannelsLast(volume, PoolingMethod::kMax)}) {
    problem.backward = false;
    const auto kernel = MakePooling(problem, CpuDevice(), nullptr);
    EXPECT_EQ(kernel->saved().shape.count(), 0);
    const auto source = RandomValues(problem.inputs(), 1);
    auto destination = Poison(problem.outputs());
    kernel->Forward(source.data(), destination.data(), nullptr, nullptr, nullptr);
    problem.backward = true;
    EXPECT_EQ(destination, RunPooling(problem, "reference", source).destination);
  }
}

TEST(PooledExtent, FollowsCaffe) {
  EXPECT_EQ(PooledExtent(24, {2, 2, 0}, true, false), 12);
  EXPECT_EQ(PooledExtent(32, {3, 2, 0}, true, false), 16);  // ceil: the last window reaches past the input
  EXPECT_EQ(PooledExtent(32, {3, 2, 0}, false, false), 15);
  EXPECT_EQ(PooledExtent(112, {3, 2, 1}, true, true), 57);  // starts at 111, inside the input
  EXPECT_EQ(PooledExtent(4, {2, 3, 1}, true, true), 2);     // a third window would start at 5 = input + pad: dropped
  EXPECT_EQ(PooledExtent(8, {9, 1, 0}, true, false), 0);
  EXPECT_EQ(PooledExtent(8, {9, 2, 0}, true, false), 1);
  EXPECT_EQ(PooledExtent(8, {9, 2, 0}, false, false), 0);
  EXPECT_EQ(PooledExtent(6, {2, 3, 0}, true, false), 3);  // the third begins at 6, behind the input
  EXPECT_EQ(PooledExtent(6, {2, 3, 0}, true, true), 2);   // dropped as soon as the other axis is padded
}

// Training that diverges pools NaN: the gradient may be anything, but not outside the plane.
TEST(Pooling, NanKeepsWinnersInsideThePlane) {
  for (const Case& test : kCases) {
    for (const PoolingProblem& problem :
         {Problem(test, PoolingMethod::kMax), ChannelsLast(test, PoolingMethod::kMax)}) {
      for (const int64_t every : {1, 2, 5}) {
        auto source = RandomValues(problem.inputs(), 1);
        for (size_t i = 0; i < source.size(); i += every) source[i] = std::nanf("");
        for (const float x : RunPooling(problem, "", source).indices) {
          ASSERT_TRUE(x >= -1 && x < static_cast<float>(problem.input_plane()))
              << "case " << &test - kCases << ": " << x;
        }
      }
    }
  }
}

TEST(Pooling, MinusInfinityIsAValueLikeOthers) {
  const Case test{2, 4, 4, {3, 2, 1}, {3, 2, 1}, true};
  for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast}) {
    PoolingProblem problem = Problem(test, PoolingMethod::kMax);
    problem.layout = layout;
    const std::vector<float> source(problem.inputs(), -std::numeric_limits<float>::infinity());
    EXPECT_EQ(RunPooling(problem, "reference", source).indices, RunPooling(problem, "", source).indices);
  }
}

// Padding counts in the divisor, what lies behind the padding does not.
TEST(PoolingReference, AverageDividesByTheWindowClippedToThePaddedInput) {
  // 1x4 row padded to 0 1 2 3 4 0; windows of 3, stride 3: {0 1 2} and {3 4 0}
  PoolingProblem problem = Problem({1, 1, 4, {1, 1, 0}, {3, 3, 1}, true}, PoolingMethod::kAverage);
  EXPECT_EQ(problem.output_width, 2);
  auto results = RunPooling(problem, "reference", {1, 2, 3, 4});
  EXPECT_FLOAT_EQ(results.destination[0], 1.0f);
  EXPECT_FLOAT_EQ(results.destination[1], 7.0f / 3);
  // 1x4 without padding, windows of 3, stride 2, ceil: {1 2 3} and {3 4}
  problem = Problem({1, 1, 4, {1, 1, 0}, {3, 2, 0}, true}, PoolingMethod::kAverage);
  results = RunPooling(problem, "reference", {1, 2, 3, 4});
  EXPECT_FLOAT_EQ(results.destination[0], 2.0f);
  EXPECT_FLOAT_EQ(results.destination[1], 3.5f);
}

// The plain loops against those of images: of windows one slice deep, each slice is an image.
TEST(PoolingReference, WindowsOfOneSliceAreThoseOfImages) {
  for (const PoolingMethod method : {PoolingMethod::kMax, PoolingMethod::kAverage}) {
    const PoolingProblem volume = Problem({3, 7, 9, {3, 2, 1}, {2, 2, 0}, true, 4, {1, 1, 0}}, method);
    PoolingProblem images = volume;
    images.channels *= images.input_depth;
    images.input_depth = images.output_depth = 1;
    const auto source = RandomValues(volume.inputs(), 1);
    PoolingResults expected = RunPooling(images, "reference", source);
    const PoolingResults actual = RunPooling(volume, "reference", source);
    EXPECT_EQ(expected.destination, actual.destination);
    EXPECT_EQ(expected.source_gradient, actual.source_gradient);
    if (method != PoolingMethod::kMax) continue;
    const size_t pooled = images.output_plane();
    for (size_t i = 0; i < expected.indices.size(); ++i) {
      const size_t slice = i / pooled % static_cast<size_t>(volume.input_depth);
      expected.indices[i] += static_cast<float>(slice * static_cast<size_t>(images.input_plane()));
    }
    EXPECT_EQ(expected.indices, actual.indices);
  }
}

// The depth is an axis like the width: what lies along one gives the same as along the other.
TEST(PoolingReference, AxesAreAlike) {
  const auto turned = [](const std::vector<float>& from, int64_t planes, int64_t depth, int64_t height, int64_t width) {
    std::vector<float> to(from.size());
    for (int64_t p = 0; p < planes; ++p) {
      for (int64_t d = 0; d < depth; ++d) {
        for (int64_t h = 0; h < height; ++h) {
          for (int64_t w = 0; w < width; ++w) {
            to[((p * width + w) * height + h) * depth + d] = from[((p * depth + d) * height + h) * width + w];
          }
        }
      }
    }
    return to;
  };
  for (const PoolingMethod method : {PoolingMethod::kMax, PoolingMethod::kAverage}) {
    for (const Case& test : kCases) {
      const PoolingProblem problem = Problem(test, method);
      Case other = test;
      std::swap(other.depth, other.width);
      std::swap(other.along_depth, other.horizontal);
      const PoolingProblem turned_problem = Problem(other, method);
      const auto source = RandomValues(problem.inputs(), 1);
      const auto expected = RunPooling(problem, "reference", source).destination;
      const auto actual =
          RunPooling(turned_problem, "reference",
                     turned(source, problem.planes(), problem.input_depth, problem.input_height, problem.input_width))
              .destination;
      ExpectClose(turned(expected, problem.planes(), problem.output_depth, problem.output_height, problem.output_width),
                  actual, 1e-6f, "case " + std::to_string(&test - kCases));
    }
  }
}

TEST(StochasticPooling, DrawsInProportionToTheValues) {
  PoolingProblem problem = Problem({20000, 2, 2, {2, 2, 0}, {2, 2, 0}, true}, PoolingMethod::kStochastic);
  std::vector<float> source;
  for (int64_t i = 0; i < problem.planes(); ++i) source.insert(source.end(), {1, 2, 0, 5});
  const PoolingResults results = RunPooling(problem, "reference", source);
  const auto share = [&](float value) {
    return std::count(results.destination.begin(), results.destination.end(), value) / 20000.0;
  };
  EXPECT_NEAR(share(1), 1 / 8.0, 0.01);
  EXPECT_NEAR(share(2), 2 / 8.0, 0.01);
  EXPECT_NEAR(share(5), 5 / 8.0, 0.01);
  EXPECT_EQ(share(0), 0);
  // The gradient goes where the value came from.
  const auto gradient = RandomValues(problem.planes(), 2);
  for (int64_t i = 0; i < problem.planes(); ++i) {
    for (int j = 0; j < 4; ++j) {
      EXPECT_EQ(results.source_gradient[4 * i + j], source[4 * i + j] == results.destination[i] ? gradient[i] : 0.0f);
    }
  }
}

TEST(StochasticPooling, WeighsByTheValuesWhenNotTraining) {
  PoolingProblem problem = Problem({1, 2, 2, {2, 2, 0}, {2, 2, 0}, true}, PoolingMethod::kStochastic);
  problem.training = false;
  const PoolingResults results = RunPooling(problem, "reference", {1, 2, 0, 5});
  EXPECT_FLOAT_EQ(results.destination[0], 30.0f / 8);
  const float gradient = RandomValues(1, 2)[0];
  EXPECT_NEAR(results.source_gradient[3], gradient * (10 - 30.0f / 8) / 8, 1e-6f);
  EXPECT_FLOAT_EQ(RunPooling(problem, "reference", {0, 0, 0, 0}).destination[0], 0.0f);
}

TEST(PoolingChoice, StochasticLeavesAReason) {
  KernelChoice choice;
  ASSERT_NE(MakePooling(Problem(kCases[0], PoolingMethod::kStochastic), CpuDevice(), &choice), nullptr);
  EXPECT_EQ(choice.kernel, "reference");
  EXPECT_EQ(choice.skipped,
            (std::vector<std::string>{"vectorised maximum: takes the maximum only",
                                      "average of whole planes: takes averages and sums only",
                                      "vectorised average: takes averages and sums only",
                                      "maximum with channels last: takes images with channels last only",
                                      "average with channels last: takes images with channels last only"}));
}

}  // namespace
}  // namespace crema
