#include "ops/sampling/resampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "comparison.h"
#include "ops/sampling/resampling_formulas.h"

namespace crema {
namespace {

using Filter = Resampling::Filter;

Resampling Problem(Filter filter, int64_t height, int64_t width, int64_t result_height, int64_t result_width) {
  Resampling p = {.planes = 2, .filter = filter};
  p.rows = ResamplingBetweenEdges(filter, true, height, result_height);
  p.columns = ResamplingBetweenEdges(filter, true, width, result_width);
  return p;
}

std::vector<float> Forward(const Resampling& p, const std::vector<float>& x) {
  std::vector<float> y = Poison(p.planes * p.result_plane());
  std::vector<std::byte> workspace(ResamplingWorkspace(p));
  ResamplingForward(p, x.data(), y.data(), workspace.data());
  return y;
}

// How much element i of the result is made of each element of the source.
std::vector<double> Shares(const Resampling::Axis& axis, Filter filter, int64_t i) {
  std::vector<double> shares(static_cast<size_t>(axis.extent));
  double sum = 0;
  for (int64_t k = 0; k < axis.extent; ++k) {
    const double distance = (axis.PlaceOf(i) - static_cast<double>(k)) / axis.width;
    shares[k] = std::fabs(distance) < resampling::RadiusOf(filter) ? resampling::WeightOf(filter, distance) : 0;
    sum += shares[k];
  }
  for (double& share : shares) share /= sum;
  return shares;
}

TEST(Resampling, IsTheWeightedMeanOfAllElements) {
  for (const Filter filter : {Filter::kLinear, Filter::kCubic}) {
    // Result rows of several parts, and parts cut short by how far they reach and by how many elements they are of.
    for (const Resampling& p :
         {Problem(filter, 5, 7, 11, 13), Problem(filter, 9, 8, 4, 3), Problem(filter, 3, 300, 5, 601),
          Problem(filter, 4, 5000, 3, 300), Problem(filter, 2, 5000, 2, 3)}) {
      const std::vector<float> x = RandomValues(p.planes * p.plane(), 1), y = Forward(p, x);
      for (int64_t column = 0; column < p.columns.result; ++column) {
        const std::vector<double> columns = Shares(p.columns, filter, column);
        for (int64_t row = 0; row < p.rows.result; ++row) {
          const std::vector<double> rows = Shares(p.rows, filter, row);
          for (int64_t plane = 0; plane < p.planes; ++plane) {
            double mean = 0;
            for (int64_t i = 0; i < p.plane(); ++i) {
              mean += rows[i / p.columns.extent] * columns[i % p.columns.extent] * x[plane * p.plane() + i];
            }
            ASSERT_NEAR(y[plane * p.result_plane() + row * p.columns.result + column], mean, 2e-6)
                << p.columns.extent << " to " << p.columns.result << " at " << row << ", " << column;
          }
        }
      }
    }
  }
}

TEST(Resampling, WhatHasNoWeightMayBeInfinite) {
  Resampling p = {.filter = Filter::kLinear};
  p.rows = ResamplingBetweenEdges(Filter::kLinear, false, 6, 2);
  p.columns = ResamplingBetweenEdges(Filter::kLinear, false, 6, 2);
  std::vector<float> x(36, std::numeric_limits<float>::infinity());
  for (const int64_t read : {7, 10, 25, 28}) x[read] = 0.25f;  // the places that are looked at
  EXPECT_EQ(Forward(p, x), std::vector<float>(4, 0.25f));
}

}  // namespace
}  // namespace crema
