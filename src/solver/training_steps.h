// Single steps of a training, for who decides from outside which batches are used and what parameters become: the
// processes that train together.
//
//   worker                                         coordinator
//   steps.WriteValues(W)                           steps.Start(), steps.ReadValues(W)
//   steps.ReadBatches(first, run, stride)
//   result = steps.Train(iteration, step), ...     steps.AddLoss(result.loss), ...
//   steps.ReadValues(mine)                         steps.WriteValues(mean of those of the workers)
//   or, in each iteration,
//   steps.Gradients(iteration, step, gradients)    steps.Update(iteration, mean of the gradients)
#ifndef CREMA_SOLVER_TRAINING_STEPS_H_
#define CREMA_SOLVER_TRAINING_STEPS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "crema/distributed.pb.h"
#include "crema/solver.h"

namespace crema {

class PlainUpdate;

// A view of a solver on one device, which must outlive it. Used by one thread at a time.
class TrainingSteps {
 public:
  enum class Kind {
    kTrained,     // by gradients
    kStatistics,  // running sums of a BatchNorm layer (layers/batch_norm.cc), changed by its forward passes
  };

  // A parameter of the net that training changes.
  struct Block {
    std::string name;  // "conv1[0]"
    Shape shape;
    Kind kind = Kind::kTrained;
    int64_t offset = 0, count = 0;  // of its numbers, among those of all blocks
    // Of statistics: those of one layer have the same group, counted from 0, and are its 0 sum of means, 1 sum of
    // variances, 2 sum of weights. Else -1.
    int group = -1, statistics_blob = -1;
    int parameter = 0;  // counted as Net::parameters() does
  };

  // What a step gave.
  struct StepResult {
    double loss = 0;             // mean over iter_size batches
    std::vector<float> outputs;  // shown_outputs() numbers, of the last batch
  };

  // How many numbers ShownOutputs has.
  size_t shown_outputs() const;

  // Throws UserError where BatchNorm layers share some of their statistics but not all.
  explicit TrainingSteps(Solver& solver);
  TrainingSteps(const TrainingSteps&) = delete;
  TrainingSteps& operator=(const TrainingSteps&) = delete;

  // The trained ones, then statistics, both in the order of Net::parameters(). Parameters that are not in it keep their
  // values.
  const std::vector<Block>& blocks() const { return blocks_; }
  // Numbers in all blocks, and in the trained ones.
  int64_t value_count() const { return value_count_; }
  int64_t trained_count() const { return trained_count_; }
  // value_count() numbers, each block in C order. Reading waits for a GPU, and throws NotFinite where an update by
  // Train was to clip gradients that were not finite, or no loss scale kept them finite.
  void ReadValues(float* values) const;
  void WriteValues(const float* values);

  // The numbers of the parameters that no block has, which training does not change, in the order of
  // Net::parameters(), each in C order.
  int64_t fixed_count() const;
  void ReadFixed(float* values) const;
  void WriteFixed(const float* values);

  // What the update rule remembers: one or two numbers of each trained one, all the first ones before all the second
  // ones, in the order of the values.
  int64_t history_count() const;
  void ReadHistory(float* history) const;
  void WriteHistory(const float* history);
  // As at the start of a training: zero.
  void ClearHistory();

  // --- Workers ----------------------------------------------------------------------------------------------------

  // Of the steps that follow in the train net: run_steps steps from first_step on, then as many from first_step +
  // stride_steps on, and so on. Step k is batches [k * iter_size, (k + 1) * iter_size) of the stream. Batches that were
  // made ahead are kept where these are the ones that come next anyway. Throws UserError as Net::ReadBatches does.
  void ReadBatches(uint64_t first_step, uint64_t run_steps, uint64_t stride_steps);
  // Records that a step uses, in the data layer that uses most; 1 where none has a batch.
  uint64_t records_per_step() const;
  // One iteration: forward and backward of the next iter_size batches, which are those of `step`, clipping, and the
  // update with the learning rate of `iteration`. The random numbers are the step's. Where step == iteration, what
  // Solver::Step does, bit by bit. Throws NotFinite, and then has changed no parameter; but the norm of gradients that
  // a GPU clips is looked at in the next call only, or by ReadValues.
  StepResult Train(int iteration, uint64_t step);
  // The same without clipping and update: writes the gradients of the trained_count() numbers, divided by iter_size.
  // Needs SolverOptions::exchanges_gradients. Where gradients are known one after the other (on the CPU, with overlap:
  // BACKWARD), `on_gradients` is called within the last backward pass whenever all from number `first` on are written:
  // those, and the statistics, do not change any more in this step.
  StepResult Gradients(int iteration, uint64_t step, float* gradients,
                       const std::function<void(int64_t first)>& on_gradients = {});
  // Those of ReadValues behind the trained ones.
  void ReadStatistics(float* statistics) const;

  // Mean of an output of one number over the batches of a test by the first test net, which workers have with mode
  // TOURNAMENT. Test k is of the batches from k * test_iter on: the same in all workers. `goes_on` is asked behind each
  // batch; where it says no there is none. Throws UserError for unusable data.
  std::optional<double> Score(const std::string& output, uint64_t test, const std::function<bool()>& goes_on);

  // --- Coordinators -----------------------------------------------------------------------------------------------

  // Tells the observers that training starts.
  void Start();
  // The first step that uses no batch that was used before, by what a restored snapshot says of the data layers; 0
  // without one.
  uint64_t next_step() const;
  // `iteration` updates were done, and all steps below `next_step` used: what snapshots say, and tests are told as.
  void SetIteration(int iteration, uint64_t next_step);
  // The end of `iteration`: clipping and the update by a mean of what Gradients gave. Needs
  // SolverOptions::exchanges_gradients. Throws NotFinite where the norm is needed and is not finite.
  void Update(int iteration, const float* gradients);
  // What Update does, outside of the net: for workers that all update. Does not need the solver any more.
  std::unique_ptr<PlainUpdate> MakePlainUpdate() const;
  // Adds to the smoothed loss, once an iteration.
  void AddLoss(double loss);
  // Tells the observers Display with the smoothed loss and the learning rate of `iteration`; to be called when due,
  // behind AddLoss. `outputs`: shown_outputs() numbers; `seconds`: since the last one.
  void Display(int iteration, const std::vector<float>& outputs, double seconds);
  // Tells the observers that `iteration` ended, and whether the learning rate took a step in it.
  void EndIteration(int iteration, double loss, double seconds);
  // Tests now; false when asked to stop, or where so many tests were not better that training is to end. to_the_end: a
  // stop waits until the test is done, for training that goes on beside it and would not come back here.
  bool Test(bool to_the_end = false);
  bool out_of_patience() const;
  // For the end of a message: the one that was written last; empty without one.
  std::string LastSnapshot() const;
  // Writes a snapshot now; where that fails the observers are told, and it is false.
  bool TrySnapshot();
  // The same where training is over: what cannot be written is tried again until it can, or until a stop is asked for.
  bool SnapshotAtEnd();
  // What Solver::Train does behind the last iteration, but for the display: snapshot, test, end. `stopped`: before
  // max_iter, as asked.
  TrainingResult Finish(bool stopped);

  // Called for every snapshot, which keeps what it gives. Empty: snapshots are as those of a solver alone.
  void set_cluster_state(std::function<ClusterState()> state);
  // `told` hears why something cannot be written at the end, each time that it was tried while room for it is waited
  // for, and then "".
  void set_on_waiting_for_room(std::function<void(const std::string& failure)> told);
  // What the snapshot held that the solver went on from.
  const std::optional<ClusterState>& restored_cluster_state() const;

 private:
  void AddStatistics();
  std::vector<int> FixedParameters() const;
  StepResult ResultOf(float loss) const;
  // The trained block that piece `piece` of the history is of, and the tensor that holds it.
  const Block& HistoryBlock(size_t piece) const { return blocks_[piece % trained_blocks_]; }
  Tensor HistoryTensor(size_t piece) const;
  size_t history_pieces() const;

  Solver::Impl& impl_;
  std::vector<Block> blocks_;
  size_t trained_blocks_ = 0;
  std::vector<int>
      announced_;  // by parameter: the block of those whose gradients are known before the pass ends, or -1
  int64_t value_count_ = 0, trained_count_ = 0;
  std::vector<float> block_;  // gradients of one block
};

}  // namespace crema

#endif  // CREMA_SOLVER_TRAINING_STEPS_H_
