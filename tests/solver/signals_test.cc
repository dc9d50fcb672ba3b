#include "solver/signals.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace crema {
namespace {

TEST(Signals, BecomeActionsOnce) {
  SignalActions actions(SolverAction::kStop, SolverAction::kSnapshot);
  EXPECT_EQ(actions.Take(), SolverAction::kNone);
  raise(SIGINT);
  EXPECT_EQ(actions.Take(), SolverAction::kStop);
  EXPECT_EQ(actions.Take(), SolverAction::kNone);
  raise(SIGTERM);
  EXPECT_EQ(actions.Take(), SolverAction::kStop);
  raise(SIGHUP);
  EXPECT_EQ(actions.Take(), SolverAction::kSnapshot);
  EXPECT_EQ(actions.Take(), SolverAction::kNone);
}

TEST(Signals, SnapshotComesBeforeStop) {
  SignalActions actions(SolverAction::kSnapshot, SolverAction::kStop);
  raise(SIGHUP);
  raise(SIGINT);
  EXPECT_EQ(actions.Take(), SolverAction::kSnapshot);
  EXPECT_EQ(actions.Take(), SolverAction::kStop);
}

TEST(Signals, TheThirdInterruptThatNobodyTakesEndsTheProcess) {
  const auto interrupt = [](int times) {
    for (int i = 0; i < times; ++i) raise(SIGINT);
  };
  EXPECT_EXIT(
      {
        SignalActions actions(SolverAction::kStop, SolverAction::kSnapshot);
        interrupt(2);
        actions.Take();
        raise(SIGTERM);
        raise(SIGHUP);
        interrupt(2);
        _exit(3);
      },
      testing::ExitedWithCode(3), "Ctrl-C once more ends all at once");
  EXPECT_EXIT(
      {
        SignalActions actions(SolverAction::kStop, SolverAction::kSnapshot);
        interrupt(3);
        _exit(3);
      },
      testing::KilledBySignal(SIGINT), "Ctrl-C once more ends all at once");
}

TEST(Signals, EndAProcessWhosePipeOfMessagesIsFull) {
  EXPECT_EXIT(
      {
        int ends[2];
        if (pipe2(ends, O_NONBLOCK) != 0) _exit(3);
        while (write(ends[1], "x", 1) == 1) {
        }
        fcntl(ends[1], F_SETFL, 0);
        dup2(ends[1], STDERR_FILENO);
        SignalActions actions(SolverAction::kStop, SolverAction::kSnapshot);
        alarm(20);
        for (int i = 0; i < 3; ++i) raise(SIGINT);
        _exit(4);
      },
      testing::KilledBySignal(SIGINT), "");
}

TEST(Signals, SigtermOnceMoreThatNobodyTakesEndsTheProcess) {
  EXPECT_EXIT(
      {
        SignalActions actions(SolverAction::kStop, SolverAction::kSnapshot);
        for (int i = 0; i < 3; ++i) raise(SIGTERM);  // as one
        actions.Take();
        std::this_thread::sleep_for(std::chrono::milliseconds(1100));
        raise(SIGTERM);
        _exit(3);
      },
      testing::ExitedWithCode(3), "");
  for (const int first : {SIGTERM, SIGINT}) {
    EXPECT_EXIT(
        {
          SignalActions actions(SolverAction::kStop, SolverAction::kSnapshot);
          raise(first);
          std::this_thread::sleep_for(std::chrono::milliseconds(1100));
          raise(SIGTERM);
          _exit(3);
        },
        testing::KilledBySignal(SIGTERM), "ended without a snapshot");
  }
}

TEST(Signals, NoneIgnoresThem) {
  SignalActions actions(SolverAction::kNone, SolverAction::kNone);
  for (int i = 0; i < 4; ++i) raise(SIGINT);
  raise(SIGHUP);
  EXPECT_EQ(actions.Take(), SolverAction::kNone);
}

TEST(Signals, RestoresThePreviousHandlers) {
  static volatile sig_atomic_t seen;
  seen = 0;
  auto before = std::signal(SIGHUP, [](int) { seen = 1; });
  { SignalActions actions(SolverAction::kStop, SolverAction::kStop); }
  raise(SIGHUP);
  EXPECT_EQ(seen, 1);
  std::signal(SIGHUP, before);
}

TEST(Signals, OfLaunchedProcessesAreTakenBackFromMpi) {
  struct sigaction before;
  sigaction(SIGUSR2, nullptr, &before);
  {
    SignalActions actions(SolverAction::kStop, SolverAction::kSnapshot);
    std::signal(SIGHUP, SIG_IGN);
    std::signal(SIGTERM, SIG_IGN);
    actions.TakeLaunchedSignals();
    raise(SIGHUP);
    EXPECT_EQ(actions.Take(), SolverAction::kSnapshot);
    raise(SIGTERM);
    EXPECT_EQ(actions.Take(), SolverAction::kStop);
    raise(SIGUSR1);
    EXPECT_EQ(actions.Take(), SolverAction::kSnapshot);
    raise(SIGUSR2);
    EXPECT_EQ(actions.Take(), SolverAction::kStop);
  }
  struct sigaction after;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) {
    sigaction(signal, nullptr, &after);
    EXPECT_EQ(after.sa_handler, before.sa_handler) << signal;
  }
}

TEST(Signals, FlagsHaveThreeValues) {
  EXPECT_EQ(SignalEffect("--sigint_effect", "stop"), SolverAction::kStop);
  EXPECT_EQ(SignalEffect("--sigint_effect", "snapshot"), SolverAction::kSnapshot);
  EXPECT_EQ(SignalEffect("--sigint_effect", "none"), SolverAction::kNone);
  try {
    SignalEffect("--sigint_effect", "snapshit");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("--sigint_effect"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("did you mean \"snapshot\"?"), std::string::npos);
  }
}

}  // namespace
}  // namespace crema
