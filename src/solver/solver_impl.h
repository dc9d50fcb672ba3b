// The parts of a running solver, shared by the files that implement it.
#ifndef CREMA_SOLVER_SOLVER_IMPL_H_
#define CREMA_SOLVER_SOLVER_IMPL_H_

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/stopwatch.h"
#include "crema/distributed.pb.h"
#include "crema/solver.h"
#include "device/communicator.h"
#include "device/processes.h"
#include "solver/average_precision.h"
#include "solver/data_waits.h"
#include "solver/iteration_undo.h"
#include "solver/loss_window.h"
#include "solver/moving_state.h"
#include "solver/nets.h"
#include "solver/ranks/gradient_exchange.h"
#include "solver/ranks/hogwild.h"
#include "solver/ranks/rank_threads.h"
#include "solver/rules/rates.h"
#include "solver/rules/updater.h"
#include "solver/snapshots/best.h"
#include "solver/snapshots/best_file.h"
#include "solver/snapshots/run_snapshots.h"
#include "solver/snapshots/snapshot.h"
#include "solver/weight_average.h"
#include "solver/zero_loss_watch.h"

namespace crema {

struct Node;

// Where a net is in its data.
struct NetPosition {
  std::vector<std::pair<std::string, uint64_t>> records;              // delivered, by data layer
  std::vector<std::pair<std::string, std::vector<float>>> recurrent;  // what goes on to the next batch, by layer
};

struct Solver::Impl {
  struct Requests {
    bool snapshot = false, stop = false;
  };

  using Role = SolverOptions::Role;

  // `file` is in iterations.
  Impl(const SolverFile& file, SolverOptions options);
  // Rank `rank` of those that `first` leads: it trains and tells nobody.
  Impl(const SolverFile& file, const Impl& first, int rank);
  ~Impl();

  // ranks.cc
  void MakeRanks(const SolverFile& file);
  // Gives all ranks what the first one has: parameters, histories, positions, iteration.
  void CopyToRanks();
  // process_ranks.cc: of ranks that are processes.
  void ConnectProcesses(NetPlans& plans);
  // Gives all ranks what the first one has: parameters and histories; at a start also positions and iteration.
  void ShareState(bool at_start);
  // Before a snapshot: gives all ranks the first one's parameters where these are not the same bits.
  void CompareRanks();
  // Of a decision that the first rank takes.
  bool AsTheFirst(bool decision);

  // Throws UserError where the train net has Input layers; `why` they cannot be, and what to do.
  void RefuseInputs(const std::string& why) const;
  // Waits for what all ranks issued to their devices, before the first goes on alone.
  void Settle();

  // hogwild_training.cc
  // Where the solver file asks for threads that share parameters: how many.
  void ChooseHogwild();
  void MakeHogwild(const SolverFile& file);
  // Threads that each net may compute with.
  int ThreadsOfNet() const;
  // The iteration before `end` at which all threads must meet, for a test or a snapshot; or `end`.
  int NextPause(int end) const;
  // All threads train to `end`, or to where they can stop for what is asked for meanwhile, which is returned.
  Requests RunFreely(int end);
  // One iteration of this thread. What it does to parameters others do at the same time.
  void StepFreely(HogwildProgress& progress);
  // Of the iterations that all threads have done since the last call.
  void TellFinished();
  // Of all threads, as it is stored.
  std::vector<float> MeanHistory(int index);

  // training.cc
  TrainingResult Train();
  bool Step(int iterations);
  // Tells that training starts, once.
  void Start();
  void WarnIfNothingIsLeft() const;
  // What Step does.
  bool StepOn(int iterations);
  // One iteration of all ranks; returns what is asked for.
  Requests RunAndTell();
  // Whether what an iteration moves beside trained parameters is kept, for one that fails.
  bool CanTakeBack() const;
  // A snapshot of the iterations that were done, where one fails for its data; by a single process that trains alone.
  void KeepWork();
  // That where it is wanted, and away with what is of no use.
  void EndInFailure(bool keeps);
  // What falls due behind the last iteration.
  TrainingResult End(bool finished);
  // Forward, backward and update of this rank, in step with the others; returns the loss. Step k is of the batches from
  // k * iter_size on.
  float Iterate(uint64_t step);
  // Without `rate` there is no update. With `after_each` each pass overwrites the gradients, and that is called then.
  // `reader` is told of those of the last pass, where nobody else is.
  float RunPasses(uint64_t step, std::optional<float> rate, const std::function<void()>& after_each = {},
                  GradientReader* reader = nullptr);
  // By the gradients that the net keeps, of the losses themselves.
  void Update(float rate);
  float RateAt(int of_iteration) const { return LearningRateAt(param, of_iteration, plateau.drops); }
  // Behind an iteration whose loss is known in all ranks.
  void FollowPlateau();
  // `seconds` since the last one, where it was not now that the iteration ended.
  void TellDisplay(float rate, std::vector<OutputValue> outputs, std::optional<double> seconds = {});
  void TellRateStep(int of_iteration) const;
  // Makes the gradients of the last pass those of the losses themselves, and runs the pass again where that took them
  // out of the range of half precision.
  void DivideByLossScale();
  // What became of an update that a GPU was given, where that was not told yet.
  void TellIssued();
  void ForgetIssued() { issued_in_ = kNone; }

  // testing.cc: in all ranks, of which the first does it and decides whether to go on.
  bool Test(bool to_the_end = false);
  // What `best` has found, told to observers and at the end.
  std::optional<BestFound> FoundBest() const;

  // resume.cc
  std::vector<DataPosition> earlier_epochs;  // of data layers whose data sets changed between runs
  NetPosition PositionOf(const Net& of) const;
  // Throws EnvironmentError, and NotFinite where a parameter is no number, as TrySnapshot does.
  void Snapshot();
  // As Snapshot, but as RunSnapshots tries; by the first rank. Whether one was written.
  bool TrySnapshot(bool at_end = false);
  void Restore(const LoadedState& loaded);

  template <typename Event>
  void Tell(void (Observer::*method)(const Event&), const Event& event) const {
    for (Observer* observer : options.observers) (observer->*method)(event);
  }
  void Warn(Location where, std::string message) const;
  SolverAction RequestedAction() const;
  // What any rank was asked since the last call, by the end of the iteration.
  Requests TakeRequests() const;
  // Tells the other processes, with the next loss, what this one is asked.
  void AskTheOthers() const;
  // Runs `action` in all processes, and throws where it failed in any of them.
  void InAll(const std::function<void()>& action) const;
  bool DueEvery(int interval) const { return interval > 0 && iteration % interval == 0; }
  bool TestIsDue() const { return DueEvery(param.test_interval()) && (iteration > 0 || param.test_initialization()); }

  SolverParameter param;
  SolverOptions options;
  std::shared_ptr<RunSnapshots> snapshots;  // of all ranks of a process
  uint64_t seed = 0;
  bool seed_drawn = false;
  std::unique_ptr<Net> net;
  std::vector<std::unique_ptr<Net>> test_nets;
  std::set<std::string> given_to_tests;  // names of layers of theirs alone
  ApVersion ap_version = ApVersion::kIntegral;
  std::unique_ptr<Updater> updater;
  std::optional<WeightAverage> average;  // of solvers that ask for it, of the first rank
  // Of several ranks (SolverOptions::devices). The first one has the others, and the ends of all.
  int rank = 0, ranks = 1;
  Device* device = nullptr;  // of this rank
  std::vector<std::unique_ptr<Communicator>> group;
  Communicator* communicator = nullptr;  // null: there is one rank, or ranks share parameters
  std::unique_ptr<GradientExchange> exchange;
  std::vector<std::unique_ptr<Impl>> others;
  std::unique_ptr<HogwildProgress> hogwild;  // of the first rank, where ranks are threads that share parameters
  bool settled = true;
  bool shows_sizes = false;     // debug_info
  bool updates_singly = false;  // parameters change within the backward pass, and no gradient outlives it
  LossWindow losses;
  PlateauState plateau;

  int iteration = 0;
  IterationUndo undo;
  bool data_not_finite = false;  // what training ended for
  // The last display read a batch that no iteration will: what a snapshot would hold is gone.
  bool read_past_end = false;
  // What a snapshot of a tested iteration holds, since a resumed run tests again.
  struct BeforeTest {
    int iteration = -1;                     // of the latest test
    std::vector<NetPosition> positions;     // of the test nets
    std::optional<MovingState> statistics;  // where tests move those of what they show
    BestState best;
  };
  BeforeTest before_test;
  std::optional<Best> best;           // of solvers that ask for it
  std::optional<BestFile> best_file;  // which may be there of a run that did
  bool busy = false;                  // Train, Step or Test runs
  bool out_of_patience = false;
  struct UnwrittenBest {
    int iteration = 0;
    float value = 0;
  };
  std::optional<UnwrittenBest> unwritten_best;  // of the latest test

  // Asked for by snapshots; and what the one had that was restored.
  std::function<ClusterState()> cluster_state;
  std::optional<ClusterState> restored_cluster;

 private:
  void Check(const SolverFile& file);
  void ChooseSeed(const LoadedState* loaded);
  // With the parameters of `shared`, where there is one.
  void BuildTrainNet(NetPlans& plans, const Net* shared = nullptr);
  // Where the batches of a net do not follow each other.
  void WarnOfRecurrentLayers() const;
  // Whether a gradient of any parameter is computed.
  bool Learns() const;
  void WarnOfNothingToLearn() const;
  // Where there is something to learn: tells what ZeroLossWatch noticed, if anything.
  void WarnOfZeroLosses(const std::string& notice) const;
  void WarnOfSizes(const NetPlans& plans) const;
  // And tells what is to be said of all nets.
  void BuildTestNets(NetPlans& plans, const SolverFile& file);
  // Throws UserError where eval_type is not what a test net can be tested for.
  void CheckEvalType(const SolverFile& file) const;
  // Throws UserError where one of the nets writes what another one reads.
  void RefuseOverwriting() const;
  bool TestsMoveStatistics() const;
  void CheckNamesForHdf5() const;
  void CheckSnapshotSize() const;
  void MakeUpdater();
  void LoadWeights();

  // tests_own_layers.cc
  struct TestsLayer {
    const Net* net;
    const Node* node;
  };
  // Into the layers that only test nets have; returns their names.
  std::set<std::string> LoadIntoTestNets(const std::vector<LayerWeights>& weights);
  // Of these those that weights were loaded into, each once: snapshots hold them, too.
  std::vector<TestsLayer> GivenToTests() const;
  // The train net, and what weights files gave test nets beside it.
  NetParameter ModelToWrite(bool with_gradients = false) const;
  // Of layers that only a test net has, and no weights file filled.
  void WarnOfTestsOwnLayers() const;
  // Throws UserError where workers test without what weights files gave the test net.
  void CheckTournamentTests(const SolverFile& file) const;

  void RestoreBest(const BestState& state);
  // What the data and recurrent layers of one net had read; `name`: as in SolverState.
  void RestorePosition(const LoadedState& loaded, const std::string& name, Net* target);
  // Where the train net does not compute what it did when a snapshot was written.
  void WarnOfOtherNet(const NetParameter& before) const;
  // Forward, backward and update of all ranks; returns the loss.
  float RunIteration();
  // A forward pass of all ranks, and of this one, at the end of training; returns the loss.
  float Forward();
  float ForwardOfRank();
  // The mean over the ranks, on each of them.
  double Mean(double value);
  // Ends an iteration in which the loss of some rank was not finite.
  [[noreturn]] void EndTogether(double own_loss, const std::exception_ptr& own_failure);
  void AwaitDevice();
  Impl& Rank(int index) { return index == 0 ? *this : *others[index - 1]; }
  float ClipScale();
  // Tells the observers where gradients of this norm are clipped; returns what they are scaled by.
  float TellClipping(int of_iteration, double norm);
  // Tells the observers where gradients were not finite; throws where no smaller loss scale would help. Returns whether
  // they were not.
  bool TellOverflow(int of_iteration, const LossScale& loss_scale, bool left_out);
  // Both, of an update that a GPU was given at the end of that iteration and has done.
  void TellUpdate(int of_iteration);
  bool TestHere(bool to_the_end);
  void TestOne(int index, bool to_the_end, bool* stopped);
  // Once for each test net.
  void TellOfPartlyTested(int index);
  // Keeps the parameters where this test is better than all before.
  void Judge(const TestResult& result);
  // At the end of training: tries again what that could not write in the test of this iteration.
  void BestAtEnd();
  // Throws EnvironmentError.
  void WriteBest();
  // The parameters of iteration 0, where nothing else came of the run: the next try would keep them as an earlier best.
  // What was set aside for them gets its name back.
  void RemoveUntrainedBest();
  [[noreturn]] void FailNonFinite(const std::string& what);
  // Throws NotFinite where a parameter holds a NaN.
  void RefuseNan() const;

  bool started_ = false;
  Stopwatch since_display_;
  int iteration_of_display_ = 0;
  Stopwatch since_finished_;
  DataWaits data_waits_;
  static constexpr int kNone = -2;
  std::optional<uint64_t> following_step_;  // behind the latest
  ZeroLossWatch zero_losses_;
  std::set<int> lengths_told_of_;         // of which test nets
  int issued_in_ = kNone;                 // the iteration whose update a GPU was given, not told yet
  std::unique_ptr<RankThreads> threads_;  // last: they end before what they work on does
};

// Every element of every output as a number.
std::vector<OutputValue> OutputValues(const Net& net);

}  // namespace crema

#endif  // CREMA_SOLVER_SOLVER_IMPL_H_
