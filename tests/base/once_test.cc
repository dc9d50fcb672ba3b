#include "base/once.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace crema {
namespace {

TEST(Once, HappensOnceForAllThreads) {
  Once once;
  int calls = 0;
  std::vector<std::thread> threads;
  std::atomic<int> seen = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      once.Do([&] { ++calls; });
      seen += calls;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(seen, 8);
}

TEST(Once, IsTriedAgainWhereItFailed) {
  Once once;
  int calls = 0;
  const auto action = [&] {
    if (++calls < 3) throw std::runtime_error("not yet");
  };
  EXPECT_THROW(once.Do(action), std::runtime_error);
  EXPECT_THROW(once.Do(action), std::runtime_error);
  once.Do(action);
  once.Do(action);
  EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace crema
