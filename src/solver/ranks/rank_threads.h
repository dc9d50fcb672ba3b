// The threads that ranks train on.
#ifndef CREMA_SOLVER_RANKS_RANK_THREADS_H_
#define CREMA_SOLVER_RANKS_RANK_THREADS_H_

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace crema {

class RankThreads {
 public:
  // Of ranks 1 and up: rank 0 is the thread that calls. Each computes with at most `compute_threads` threads. `abort`
  // must end the waiting of ranks for each other by Aborted; called by whichever thread fails.
  RankThreads(int ranks, int compute_threads, std::function<void()> abort);
  ~RankThreads();
  RankThreads(const RankThreads&) = delete;
  RankThreads& operator=(const RankThreads&) = delete;

  // Calls work(rank) for all ranks at once and returns when all are done. Where some threw, throws what the first rank
  // did that was not merely Aborted, now and in all later calls.
  void Run(const std::function<void(int rank)>& work);

 private:
  void Serve(int rank, int compute_threads);
  void Do(int rank);
  void Stop();

  const std::function<void()> abort_;
  std::vector<std::thread> threads_;
  std::vector<std::exception_ptr> failures_;  // by rank
  std::exception_ptr failure_;

  std::mutex mutex_;
  std::condition_variable given_, done_;
  const std::function<void(int)>* work_ = nullptr;
  uint64_t rounds_ = 0;
  size_t busy_ = 0;
  bool stop_ = false;
};

}  // namespace crema

#endif  // CREMA_SOLVER_RANKS_RANK_THREADS_H_
