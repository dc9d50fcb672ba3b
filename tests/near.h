// How near numbers are to others.
#ifndef CREMA_TESTS_NEAR_H_
#define CREMA_TESTS_NEAR_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

namespace crema {

// The largest magnitude of what is finite.
inline double LargestOf(const std::vector<float>& values) {
  double largest = 0;
  for (const float value : values) {
    if (std::isfinite(value)) largest = std::max(largest, std::fabs(static_cast<double>(value)));
  }
  return largest;
}

// Each element is that expected to within `tolerance` of the largest magnitude expected, which counts as `floor` at
// least. A fatal failure.
inline void ExpectClose(const std::vector<float>& expected, const std::vector<float>& actual, double tolerance,
                        const std::string& what, double floor = 1e-6) {
  ASSERT_EQ(expected.size(), actual.size()) << what;
  const double allowed = tolerance * std::max(floor, LargestOf(expected));
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_TRUE(expected[i] == actual[i] || std::fabs(static_cast<double>(expected[i]) - actual[i]) <= allowed)
        << what << " element " << i << ": expected " << expected[i] << ", got " << actual[i];
  }
}

// Each element is that expected to within `tolerance` of its own magnitude, which counts as 1 at least. A fatal
// failure.
inline void ExpectNear(const std::vector<float>& expected, const std::vector<float>& actual, double tolerance,
                       const std::string& what) {
  ASSERT_EQ(expected.size(), actual.size()) << what;
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(expected[i], actual[i], tolerance * std::max(1.0, std::fabs(static_cast<double>(expected[i]))))
        << what << " element " << i;
  }
}

// The norm (L2) of the difference is within `tolerance` of that of what is expected, which is not 0.
inline void ExpectNearInNorm(const std::vector<float>& expected, const std::vector<float>& actual, double tolerance,
                             const std::string& what) {
  ASSERT_EQ(expected.size(), actual.size()) << what;
  double difference = 0, square = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(static_cast<double>(expected[i]) - actual[i], 2);
    square += std::pow(static_cast<double>(expected[i]), 2);
  }
  EXPECT_GT(square, 0) << what;
  EXPECT_LE(std::sqrt(difference), tolerance * std::sqrt(square)) << what;
}

}  // namespace crema

#endif  // CREMA_TESTS_NEAR_H_
