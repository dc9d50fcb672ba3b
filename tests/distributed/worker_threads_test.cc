#include "distributed/training/worker_threads.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "crema/error.h"

namespace crema {
namespace {

using AskedToStop = std::function<bool()>;

void Nap() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

std::string WaitForStop(const AskedToStop& asked_to_stop) {
  while (!asked_to_stop()) Nap();
  return "stopped";
}

// What it tells, or throws, when something has happened to a worker.
std::string TendUntilTold(LocalWorkers& workers, int64_t now) {
  while (true) {
    const std::vector<std::string> told = workers.Tend(now);
    if (!told.empty()) return told[0];
    Nap();
  }
}

TEST(WorkerThreads, WorkUnderTheirNamesUntilAskedToStop) {
  std::mutex mutex;
  std::vector<std::string> names(3);
  std::atomic<int> at_work{0}, stopped{0};
  {
    WorkerThreads workers(3, [&](size_t index, const std::string& name, const AskedToStop& asked_to_stop) {
      char shown[16] = "";
      pthread_getname_np(pthread_self(), shown, sizeof shown);
      EXPECT_EQ(shown, name);
      {
        const std::lock_guard lock(mutex);
        names[index] = name;
      }
      ++at_work;
      const std::string reason = WaitForStop(asked_to_stop);
      ++stopped;
      return reason;
    });
    while (at_work < 3) Nap();
    EXPECT_TRUE(workers.Tend(0).empty());
    EXPECT_EQ(stopped, 0);
  }
  EXPECT_EQ(stopped, 3);
  EXPECT_EQ(names, (std::vector<std::string>{"local-0", "local-1", "local-2"}));
}

TEST(WorkerThreads, EndByThemselves) {
  std::atomic<bool> over{false};
  WorkerThreads workers(2, [&](size_t, const std::string&, const AskedToStop&) {
    while (!over) Nap();
    return std::string("all iterations are done");
  });
  workers.Wind(10);  // in vain
  over = true;
  workers.Wind(60'000);
  EXPECT_TRUE(workers.Tend(0).empty()) << "their ends are known";
}

TEST(WorkerThreads, AreNotStartedAgainWhenNothingIsLeftToDo) {
  std::atomic<int> starts{0};
  WorkerThreads workers(2, [&](size_t, const std::string&, const AskedToStop&) {
    ++starts;
    return std::string("all iterations are done");
  });
  // That they are not wanted is known only after they were seen to have ended.
  int ended = 0;
  const auto on_end = [&](const std::string&) { ++ended; };
  while (ended == 0) {
    EXPECT_TRUE(workers.Tend(0, on_end, [&] { return ended == 0; }).empty());
    Nap();
  }
  workers.Wind(60'000, on_end);
  EXPECT_EQ(ended, 2);
  EXPECT_EQ(starts, 2);
}

TEST(WorkerThreads, ThatFailAreStartedAgainFourTimesInARow) {
  std::atomic<int> starts{0};
  WorkerThreads workers(2, [&](size_t index, const std::string&, const AskedToStop& asked_to_stop) -> std::string {
    if (index == 0) return WaitForStop(asked_to_stop);
    ++starts;
    throw EnvironmentError("the disk is gone");
  });
  int64_t now = 1000;
  for (int death = 1; death < 5; ++death) {
    EXPECT_EQ(TendUntilTold(workers, now), "worker local-1 failed (the disk is gone) and is started again");
    EXPECT_EQ(starts, death) << "not at once";
    now += 10'000;
  }
  try {
    TendUntilTold(workers, now);
    FAIL() << "started for ever";
  } catch (const EnvironmentError& error) {
    EXPECT_STREQ(error.what(), "worker local-1 failed (the disk is gone), for the 5th time in a row");
  }
  EXPECT_EQ(starts, 5);
}

TEST(WorkerThreads, ThatRanForAMinuteAreForgiven) {
  std::atomic<bool> fails{false};
  WorkerThreads workers(1, [&](size_t, const std::string&, const AskedToStop&) -> std::string {
    while (!fails.exchange(false)) Nap();
    throw std::runtime_error("again");
  });
  int64_t now = 0;
  for (int death = 0; death < 12; ++death) {
    EXPECT_TRUE(workers.Tend(now).empty());
    now += 70'000;
    fails = true;
    EXPECT_EQ(TendUntilTold(workers, now), "worker local-0 failed (again) and is started again");
    now += 10'000;
  }
  fails = true;
  workers.Tend(now);
}

TEST(WorkerThreads, ThatEndWithoutAReasonAreStartedAgain) {
  std::atomic<int> starts{0};
  WorkerThreads workers(1, [&](size_t, const std::string&, const AskedToStop& asked_to_stop) {
    return starts++ == 0 ? std::string("refused") : WaitForStop(asked_to_stop);
  });
  EXPECT_EQ(TendUntilTold(workers, 0), "worker local-0 ended (refused) and is started again");
  workers.Tend(10'000);
  while (starts < 2) Nap();
}

TEST(WorkerThreads, OfEachEndIsTold) {
  std::atomic<bool> over{false};
  WorkerThreads workers(2, [&](size_t index, const std::string&, const AskedToStop&) -> std::string {
    if (index == 1) throw EnvironmentError("the disk is gone");
    while (!over) Nap();
    return "all iterations are done";
  });
  std::vector<std::string> ended;
  const auto on_end = [&](const std::string& name) { ended.push_back(name); };
  while (ended.empty()) workers.Tend(0, on_end);
  EXPECT_EQ(ended, (std::vector<std::string>{"local-1"}));
  over = true;
  while (ended.size() < 2) workers.Wind(0, on_end);
  EXPECT_EQ(ended[1], "local-0");
}

TEST(WorkerThreads, AMistakeStaysOne) {
  WorkerThreads workers(1, [&](size_t, const std::string&, const AskedToStop&) -> std::string {
    throw UserError("there is no database \"db\"");
  });
  try {
    TendUntilTold(workers, 0);
    FAIL() << "started again";
  } catch (const UserError& error) {
    EXPECT_EQ(error.diagnostics().at(0).message.find("worker local-0 failed ("), 0u) << error.what();
    EXPECT_NE(std::string(error.what()).find("there is no database \"db\""), std::string::npos);
    EXPECT_EQ(std::string(error.what()).find("in a row"), std::string::npos);
  }
}

bool Blocks(int number) {
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  return sigismember(&blocked, number) == 1;
}

TEST(WorkerThreads, GetNoSignals) {
  std::atomic<int> blocked{0};
  {
    WorkerThreads workers(1, [&](size_t, const std::string&, const AskedToStop& asked_to_stop) {
      blocked += Blocks(SIGINT) + Blocks(SIGTERM) + Blocks(SIGHUP);
      std::thread([&] { blocked += Blocks(SIGINT); }).join();
      return WaitForStop(asked_to_stop);
    });
    while (blocked < 4) Nap();
  }
  EXPECT_EQ(blocked, 4);
  EXPECT_FALSE(Blocks(SIGINT));
}

}  // namespace
}  // namespace crema
