// Hogwild (Recht, Re, Wright, Niu, "Hogwild!: a lock-free approach to parallelizing stochastic gradient descent", NIPS
// 2011): threads that change the same parameters without locks.
//
// Each thread has a net, and an update rule's history, of its own; only the trained parameters are shared. The history
// is each thread's since that is what the paper shares, and since a common one would decay, and count Adam's steps,
// once a thread: momentum would forget N times as fast as the file says. Snapshots hold the mean of the histories.
//
// Formally the passes and updates of two threads are a data race: parameters are plain floats, which the kernels of
// oneDNN and BLAS read, and no atomic type is theirs to read. What the method needs is that a float that is read is one
// that somebody wrote, and aligned 4-byte loads and stores, also those within vectors, are that on all processors crema
// runs on. No decision of the program depends on a parameter's value being stable. tests/tsan.supp names the one
// function below which such races lie; what is in this file is guarded by a mutex.
#ifndef CREMA_SOLVER_RANKS_HOGWILD_H_
#define CREMA_SOLVER_RANKS_HOGWILD_H_

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "crema/net.h"
#include "crema/observer.h"
#include "crema/solver.pb.h"

namespace crema {

bool TrainsHogwild(const SolverParameter& solver);

// How far each thread is. Thread-safe.
class HogwildProgress {
 public:
  // A thread waits rather than begin an iteration that is this far ahead of the slowest one's: so pausing takes few
  // iterations, although each thread has a share of the batches of its own.
  static constexpr int kMostAhead = 8;

  // An iteration that all threads have done.
  struct Finished {
    int iteration = 0;
    double loss = 0;                                  // mean over the threads
    std::optional<std::vector<OutputValue>> outputs;  // where thread 0 gave some
  };

  explicit HogwildProgress(int threads) : done_(threads) {}

  // All threads are to do the iterations from `first` up to, but without, `end`.
  void Begin(int first, int end);
  // Waits until `thread` may begin its next iteration; false where it has done all. Throws Aborted after Abort.
  bool Enter(int thread);
  void Leave(int thread, double loss, std::optional<std::vector<OutputValue>> outputs = {});
  // Makes the end that of the furthest iteration that was begun.
  void Pause();
  // Ends waiting, for good.
  void Abort();

  // Those that were not taken yet, in order.
  std::vector<Finished> TakeFinished();
  // Behind the last iteration; for when no thread is at work.
  int end() const { return end_; }

 private:
  int Slowest() const;

  std::mutex mutex_;
  std::condition_variable moved_;
  std::vector<int> done_;              // by thread: behind its last iteration
  std::map<int, Finished> under_way_;  // those that some thread has done
  int begun_ = 0, taken_ = 0, end_ = 0;
  bool aborted_ = false;
};

// Makes the running statistics of all BatchNorm layers, in each of the nets, those of all their records together. The
// nets must be of one file, on the CPU, with as many records behind each.
void PoolStatistics(const std::vector<Net*>& nets);

}  // namespace crema

#endif  // CREMA_SOLVER_RANKS_HOGWILD_H_
