#include "base/parallel.h"

#include <gtest/gtest.h>

#include <vector>

namespace crema {
namespace {

class ParallelForTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { omp_set_num_threads(GetParam()); }
  void TearDown() override { omp_set_num_threads(before_); }

 private:
  const int before_ = omp_get_max_threads();
};

TEST_P(ParallelForTest, CoversEveryItemOnce) {
  for (int64_t grain : {1, 7, 64, 100}) {
    for (int64_t n : {0, 1, 63, 64, 65, 200, 1000, 4097}) {
      std::vector<int> seen(n, 0);
      ParallelFor(n, grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++seen[i];
      });
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(seen[i], 1) << "item " << i << " of " << n << ", grain " << grain;
    }
  }
}

TEST_P(ParallelForTest, RangesOfCoarseLoopsBeginAtMultiplesOf64) {
  for (int64_t n : {1000, 4097, 100003}) {
    std::vector<char> begins(n, 0);
    ParallelFor(n, 64, [&](int64_t begin, int64_t end) { begins[begin] = 1; });
    for (int64_t i = 0; i < n; ++i) ASSERT_TRUE(!begins[i] || i % 64 == 0) << "a range begins at " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, ParallelForTest, testing::Values(1, 2, 3, 5));

}  // namespace
}  // namespace crema
