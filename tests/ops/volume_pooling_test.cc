// Pooling of volumes, by the kernels and by the plain loops.
#include <gtest/gtest.h>

#include <algorithm>

#include "pooling_runs.h"

namespace crema {
namespace {

struct VolumeCase {
  int64_t channels, depth, height, width;
  PoolingWindow along_depth, vertical, horizontal;
  bool ceil;
};

const VolumeCase kVolumeCases[] = {
    {3, 8, 16, 16, {2, 2, 0}, {2, 2, 0}, {2, 2, 0}, true},   {3, 5, 7, 9, {2, 2, 0}, {2, 2, 0}, {2, 2, 0}, true},
    {3, 5, 7, 9, {2, 2, 0}, {2, 2, 0}, {2, 2, 0}, false},    {4, 4, 9, 10, {1, 1, 0}, {2, 2, 0}, {2, 2, 0}, true},
    {4, 7, 8, 9, {3, 2, 1}, {3, 2, 1}, {3, 2, 1}, true},     {2, 6, 7, 20, {3, 1, 1}, {3, 1, 1}, {3, 1, 1}, true},
    {2, 9, 6, 7, {4, 3, 2}, {1, 1, 0}, {5, 2, 3}, true},     {2, 6, 5, 5, {3, 3, 0}, {1, 2, 0}, {4, 4, 0}, false},
    {2, 3, 4, 5, {3, 1, 0}, {4, 1, 0}, {5, 1, 0}, true},     {1, 9, 8, 7, {7, 1, 0}, {7, 1, 0}, {7, 1, 0}, true},
    {2, 1, 6, 6, {3, 1, 1}, {3, 2, 1}, {3, 2, 1}, true},     {2, 3, 6, 7, {1, 3, 0}, {1, 5, 0}, {1, 3, 0}, true},
    {1, 2, 3, 700, {2, 2, 1}, {3, 2, 1}, {3, 2, 1}, true},   {2, 2, 2, 2, {3, 2, 0}, {3, 2, 0}, {3, 2, 0}, true},
    {1, 2, 3, 9000, {2, 2, 0}, {2, 2, 0}, {40, 7, 3}, true}, {2, 5, 1, 1, {2, 2, 1}, {1, 1, 0}, {1, 1, 0}, true},
};

PoolingProblem VolumeProblem(const VolumeCase& test, PoolingMethod method) {
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

PoolingProblem VolumeChannelsLast(const VolumeCase& test, PoolingMethod method) {
  return WithChannelsLast(VolumeProblem(test, method), &test - kVolumeCases);
}

TEST(VolumePooling, EqualsReference) {
  for (const VolumeCase& test : kVolumeCases) {
    const std::string what = "case " + std::to_string(&test - kVolumeCases);
    for (const PoolingMethod method : {PoolingMethod::kMax, PoolingMethod::kAverage, PoolingMethod::kSum}) {
      ExpectEqualsReference(VolumeProblem(test, method), what);
      ExpectEqualsReference(VolumeChannelsLast(test, method), what + " with channels last");
    }
  }
}

TEST(VolumePooling, BFloat16RoundsOnce) {
  for (const PoolingMethod method : {PoolingMethod::kMax, PoolingMethod::kAverage}) {
    for (const VolumeCase& test : kVolumeCases) {
      ExpectRoundsOnce(VolumeChannelsLast(test, method), "case " + std::to_string(&test - kVolumeCases));
    }
  }
}

TEST(VolumePooling, TakesManyChannelsLast) {
  for (const PoolingMethod method : {PoolingMethod::kMax, PoolingMethod::kAverage}) {
    PoolingProblem problem = VolumeChannelsLast({1, 2, 3, 4, {2, 1, 0}, {3, 1, 0}, {4, 1, 0}, true}, method);
    problem.channels = 1100;
    ExpectEqualsReference(problem, "many channels");
  }
}

TEST(VolumePooling, TiesGoToTheFirstElement) {
  for (const VolumeCase& test : kVolumeCases) {
    for (const PoolingProblem& problem :
         {VolumeProblem(test, PoolingMethod::kMax), VolumeChannelsLast(test, PoolingMethod::kMax)}) {
      auto source = RandomValues(problem.inputs(), 1);
      for (float& x : source) x = x > 0 ? 1.0f : -0.0f;  // as behind a ReLU
      const PoolingResults expected = RunPooling(problem, "reference", source),
                           actual = RunPooling(problem, "", source);
      EXPECT_EQ(expected.indices, actual.indices) << "case " << &test - kVolumeCases;
      ExpectClose(expected.source_gradient, actual.source_gradient, 1e-5f, "source gradient");
    }
  }
  const PoolingProblem problem =
      VolumeProblem({1, 2, 1, 2, {2, 2, 0}, {1, 1, 0}, {2, 2, 0}, true}, PoolingMethod::kMax);
  EXPECT_EQ(RunPooling(problem, "", {3, 3, 3, 3}).indices[0], 0.0f);
  EXPECT_EQ(RunPooling(problem, "", {2, 3, 3, 3}).indices[0], 1.0f);
  EXPECT_EQ(RunPooling(problem, "", {2, 2, 3, 3}).indices[0], 2.0f);
}

TEST(VolumePooling, NanKeepsWinnersInsideTheVolume) {
  for (const VolumeCase& test : kVolumeCases) {
    for (const PoolingProblem& problem :
         {VolumeProblem(test, PoolingMethod::kMax), VolumeChannelsLast(test, PoolingMethod::kMax)}) {
      for (const int64_t every : {1, 2, 5}) {
        auto source = RandomValues(problem.inputs(), 1);
        for (size_t i = 0; i < source.size(); i += every) source[i] = std::nanf("");
        for (const float x : RunPooling(problem, "", source).indices) {
          ASSERT_TRUE(x >= -1 && x < static_cast<float>(problem.input_plane()))
              << "case " << &test - kVolumeCases << ": " << x;
        }
      }
    }
  }
}

TEST(VolumePooling, ForwardAloneKeepsNothing) {
  for (PoolingProblem problem : {VolumeProblem(kVolumeCases[4], PoolingMethod::kMax),
                                 VolumeChannelsLast(kVolumeCases[4], PoolingMethod::kMax)}) {
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

// The plain loops against those of images: of windows one slice deep, each slice is an image.
TEST(VolumePoolingReference, WindowsOfOneSliceAreThoseOfImages) {
  for (const PoolingMethod method : {PoolingMethod::kMax, PoolingMethod::kAverage}) {
    const PoolingProblem volume = VolumeProblem({3, 4, 7, 9, {1, 1, 0}, {3, 2, 1}, {2, 2, 0}, true}, method);
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
TEST(VolumePoolingReference, AxesAreAlike) {
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
    for (const VolumeCase& test : kVolumeCases) {
      const PoolingProblem problem = VolumeProblem(test, method);
      VolumeCase other = test;
      std::swap(other.depth, other.width);
      std::swap(other.along_depth, other.horizontal);
      const PoolingProblem turned_problem = VolumeProblem(other, method);
      const auto source = RandomValues(problem.inputs(), 1);
      const auto expected = RunPooling(problem, "reference", source).destination;
      const auto actual =
          RunPooling(turned_problem, "reference",
                     turned(source, problem.planes(), problem.input_depth, problem.input_height, problem.input_width))
              .destination;
      ExpectClose(turned(expected, problem.planes(), problem.output_depth, problem.output_height, problem.output_width),
                  actual, 1e-6f, "case " + std::to_string(&test - kVolumeCases));
    }
  }
}

}  // namespace
}  // namespace crema
