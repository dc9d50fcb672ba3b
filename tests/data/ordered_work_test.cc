#include "data/loaders/ordered_work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>

namespace crema {
namespace {

TEST(OrderedWork, TakesAllInOrder) {
  for (const int threads : {1, 2, 8}) {
    for (const int64_t count : {0, 1, 3, 5000}) {
      int64_t expected = 0;
      std::atomic<int> outside = 0;
      WorkInOrder<int64_t>(
          count, threads,
          [&](int64_t i, int thread, int64_t* result) {
            if (thread < 0 || thread >= threads) ++outside;
            *result = i * i;
          },
          [&](int64_t i, int64_t result) {
            ASSERT_EQ(i, expected++);
            ASSERT_EQ(result, i * i);
          });
      EXPECT_EQ(expected, count);
      EXPECT_EQ(outside, 0);
    }
  }
}

TEST(OrderedWork, IsNeverFarAhead) {
  constexpr int kThreads = 3;
  std::atomic<int64_t> taken = 0, farthest = 0;
  WorkInOrder<int>(
      2000, kThreads,
      [&](int64_t i, int, int*) {
        const int64_t ahead = i - taken;
        int64_t before = farthest;
        while (ahead > before && !farthest.compare_exchange_weak(before, ahead)) {
        }
      },
      [&](int64_t, int) { ++taken; });
  EXPECT_LE(farthest, 4 * kThreads);
}

TEST(OrderedWork, ThrowsTheFirstFailureAfterWhatIsBeforeIt) {
  for (const int threads : {1, 2, 8}) {
    int64_t taken = 0;
    try {
      WorkInOrder<int>(
          1000, threads,
          [&](int64_t i, int, int*) {
            if (i == 500 || i == 501 || i == 510) throw std::runtime_error(std::to_string(i));
          },
          [&](int64_t, int) { ++taken; });
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "500");
    }
    EXPECT_EQ(taken, 500);
    EXPECT_THROW(WorkInOrder<int>(
                     1000, threads, [](int64_t, int, int*) {},
                     [](int64_t i, int) {
                       if (i == 7) throw std::logic_error("seven");
                     }),
                 std::logic_error);
  }
}

}  // namespace
}  // namespace crema
