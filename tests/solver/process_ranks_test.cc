// Solvers that are ranks of a group of processes, which here are threads.
#include <array>
#include <bit>
#include <cstring>
#include <thread>

#include "device/meeting.h"
#include "device/processes.h"
#include "solver/data_parallel_test.h"

namespace crema {
namespace {

struct SharedGroup {
  explicit SharedGroup(int ranks) : meeting(ranks), texts(static_cast<size_t>(ranks)) {}

  Meeting meeting;
  std::vector<std::string> texts;
  int spoiled = -1;  // the sums of this rank are a little larger
};

// A rank's end of such a group.
class ThreadProcesses final : public Processes {
 public:
  ThreadProcesses(int rank, SharedGroup& group)
      : rank_(rank), group_(group), machines_(static_cast<size_t>(group.meeting.ranks()), "here") {}

  int rank() const override { return rank_; }
  int ranks() const override { return group_.meeting.ranks(); }
  int local_rank() const override { return rank_; }
  int local_ranks() const override { return ranks(); }
  const std::vector<std::string>& machines() const override { return machines_; }
  std::string library() const override { return "threads"; }

  void Broadcast(void* data, size_t bytes) override {
    const auto first = std::bit_cast<void*>(group_.meeting.Exchange(rank_, std::bit_cast<uint64_t>(data))[0]);
    if (rank_ > 0) std::memcpy(data, first, bytes);
    group_.meeting.Exchange(rank_, 0);
  }
  std::vector<std::string> Gather(const std::string& own) override {
    group_.texts[static_cast<size_t>(rank_)] = own;
    group_.meeting.Exchange(rank_, 0);
    const std::vector<std::string> all = group_.texts;
    group_.meeting.Exchange(rank_, 0);
    return all;
  }
  double SumOnHost(double value) override {
    asked_ = 0;
    for (const uint64_t requests : group_.meeting.Exchange(rank_, requests_)) asked_ |= static_cast<uint32_t>(requests);
    requests_ = 0;
    return group_.meeting.Sum(rank_, value);
  }
  std::unique_ptr<Communicator> Connect(Device&) override;
  void Ask(uint32_t requests) override { requests_ |= requests; }
  uint32_t Asked() const override { return asked_; }
  void Abort(int) override { throw std::logic_error("a test's group is not aborted"); }
  void Leave() { group_.meeting.Abort(); }

 private:
  const int rank_;
  SharedGroup& group_;
  const std::vector<std::string> machines_;
  uint32_t requests_ = 0, asked_ = 0;
};

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(ThreadProcesses& processes, SharedGroup& group) : processes_(processes), group_(group) {}
  int rank() const override { return processes_.rank(); }
  int ranks() const override { return processes_.ranks(); }
  void SumInPlace(float* data, int64_t count) override {
    group_.meeting.SumInPlace(rank(), data, count);
    if (rank() == group_.spoiled) data[0] += 1e-3f;
  }
  void Join() override {}
  double SumOnHost(double value) override { return processes_.SumOnHost(value); }
  void Abort() override {}

 private:
  ThreadProcesses& processes_;
  SharedGroup& group_;
};

std::unique_ptr<Communicator> ThreadProcesses::Connect(Device&) {
  return std::make_unique<ThreadCommunicator>(*this, group_);
}

// Calls `of_rank` for all ranks at once; the failure of each.
std::vector<std::exception_ptr> InThreads(int ranks, SharedGroup& group,
                                          const std::function<void(ThreadProcesses&)>& of_rank) {
  std::vector<std::exception_ptr> failures(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      ThreadProcesses processes(r, group);
      try {
        of_rank(processes);
      } catch (...) {
        failures[static_cast<size_t>(r)] = std::current_exception();
        try {
          throw;
        } catch (const FailedTogether&) {
        } catch (...) {
          processes.Leave();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return failures;
}

class ProcessRanks : public DataParallel {
 protected:
  struct OfRank {
    std::vector<float> parameters;
    Recorder told;
    TrainingResult result;
  };

  std::vector<OfRank> RunProcesses(int ranks, const std::string& more, int max_iter, int spoiled = -1,
                                   const SolverOptions& given = {}, int asked = -1) {
    SharedGroup group(ranks);
    group.spoiled = spoiled;
    std::vector<OfRank> all(static_cast<size_t>(ranks));
    const SolverFile file = ParseSolver(SolverText(more, max_iter), "solver.prototxt");
    const auto failures = InThreads(ranks, group, [&](ThreadProcesses& processes) {
      OfRank& own = all[static_cast<size_t>(processes.rank())];
      SolverOptions options = given;
      options.path = folder_ / "solver.prototxt";
      options.processes = &processes;
      options.observers = {&own.told};
      int iterations = 0;
      if (processes.rank() == asked) {
        options.requested_action = [&] { return ++iterations == 4 ? SolverAction::kStop : SolverAction::kNone; };
      }
      Solver solver(file, options);
      own.result = solver.Train();
      own.parameters = Values(solver.net());
    });
    for (const std::exception_ptr& failure : failures) {
      if (failure) std::rethrow_exception(failure);
    }
    return all;
  }
};

TEST_F(ProcessRanks, AreAsThreads) {
  for (const std::string rule : {"momentum: 0.9", "type: \"Adam\" base_lr: 0.01 momentum: 0.9 clip_gradients: 0.2"}) {
    const std::string settings = rule + " display: 2 test_iter: 3 test_interval: 3 snapshot: 4 average_loss: 3";
    const Result threads = Run(3, settings, 9);
    const std::vector<OfRank> processes = RunProcesses(3, settings, 9);
    EXPECT_EQ(processes[0].parameters, threads.parameters);
    EXPECT_EQ(processes[1].parameters, threads.parameters);
    EXPECT_EQ(processes[0].told.order, threads.told.order);
    EXPECT_EQ(processes[0].told.starts.at(0).ranks, 3);
    EXPECT_TRUE(processes[2].told.order.empty()) << "only the first rank tells anything";
  }
}

TEST_F(ProcessRanks, GoOnFromTheFirstRanksSnapshot) {
  const std::string settings = "type: \"Adam\" base_lr: 0.01 snapshot: 3 average_loss: 4 test_iter: 2 test_interval: 2";
  const std::vector<OfRank> whole = RunProcesses(2, settings, 7);
  SolverOptions options;
  options.snapshot = folder_ / "snap_iter_3.solverstate";
  const std::vector<OfRank> resumed = RunProcesses(2, settings, 7, -1, options);
  EXPECT_EQ(resumed[0].told.iterations.size(), 4u);
  EXPECT_EQ(resumed[0].parameters, whole[0].parameters);
  EXPECT_EQ(resumed[1].parameters, whole[0].parameters);
}

TEST_F(ProcessRanks, ShareARateThatGoesByTheLoss) {
  const std::string settings =
      "lr_policy: \"plateau\" gamma: 0.7 base_lr: 1 momentum: 0.9 average_loss: 2 display: 1 "
      "plateau_winsize: 1 plateau_winsize: 1 plateau_winsize: 1 plateau_winsize: 1 plateau_winsize: 1 "
      "plateau_winsize: 1 plateau_winsize: 1 plateau_winsize: 1";
  const Result threads = Run(2, settings + " snapshot: 5", 12);
  EXPECT_GT(threads.told.steps.size(), 1u);
  const auto processes = RunProcesses(2, settings, 12);
  SolverOptions options;
  options.snapshot = folder_ / "snap_iter_5.solverstate";
  const auto resumed = RunProcesses(2, settings, 12, -1, options);
  for (size_t r = 0; r < 2; ++r) {
    EXPECT_EQ(processes[r].parameters, threads.parameters);
    EXPECT_EQ(resumed[r].parameters, threads.parameters);
  }
}

TEST_F(ProcessRanks, StopTogetherWhereOneIsAsked) {
  for (const int asked : {0, 2}) {
    const std::vector<OfRank> all = RunProcesses(3, "", 50, -1, {}, asked);
    for (const OfRank& one : all) {
      EXPECT_TRUE(one.result.stopped_early);
      EXPECT_EQ(one.result.iteration, 4);
      EXPECT_EQ(one.parameters, all[0].parameters);
    }
    EXPECT_EQ(all[0].told.snapshots.size(), 1u);
  }
}

TEST_F(ProcessRanks, TakeOverTheFirstRanksParametersWhereSumsDiffer) {
  const std::vector<OfRank> all = RunProcesses(3, "momentum: 0.9 snapshot_after_train: true", 5, 1);
  EXPECT_NE(all[0].told.notices.find("the parameters of rank 1 were not those of rank 0"), std::string::npos)
      << all[0].told.notices;
  EXPECT_EQ(all[1].parameters, all[0].parameters);
  EXPECT_EQ(all[2].parameters, all[0].parameters);
}

TEST_F(ProcessRanks, FailTogether) {
  SharedGroup group(4);
  const auto failures = InThreads(4, group, [](ThreadProcesses& processes) {
    Together(processes, [] {});
    Together(processes, [&] {
      if (processes.rank() == 1 || processes.rank() == 3) throw EnvironmentError("no disk");
      if (processes.rank() == 2) throw UserError("no file");
    });
  });
  const auto of_rank = [&](size_t r) {
    try {
      std::rethrow_exception(failures[r]);
    } catch (const FailedTogether& failed) {
      return failed;
    }
  };
  EXPECT_EQ(of_rank(0).own, nullptr);
  EXPECT_EQ(of_rank(1).ranks, (std::vector<int>{1, 3}));
  EXPECT_THROW(std::rethrow_exception(of_rank(1).own), EnvironmentError);
  EXPECT_EQ(of_rank(2).ranks, (std::vector<int>{2}));
  EXPECT_THROW(std::rethrow_exception(of_rank(2).own), UserError);
  EXPECT_EQ(of_rank(3).own, nullptr) << "rank 1 tells the same";
  for (size_t r = 0; r < 4; ++r) EXPECT_FALSE(of_rank(r).by_user) << "rank 1 failed by its environment";
}

TEST_F(ProcessRanks, AMistakeIsOneOfAll) {
  try {
    RunProcesses(2, "momentum: 2", 5);
    ADD_FAILURE() << "accepted";
  } catch (const FailedTogether& failed) {
    EXPECT_TRUE(failed.by_user);
    EXPECT_EQ(failed.ranks, (std::vector<int>{0, 1}));
  }
}

}  // namespace
}  // namespace crema
