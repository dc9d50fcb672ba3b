// The thread that makes all calls of MPI, so that sums go on while another thread computes, and any MPI that knows of
// threads at all (MPI_THREAD_FUNNELED) will do.
#ifndef CREMA_MPI_MESSENGER_H_
#define CREMA_MPI_MESSENGER_H_

#include <mpi.h>

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace crema::mpi {

// Throws EnvironmentError with what MPI says of it.
void CheckMpi(int result, const char* what);

class Messenger {
 public:
  // Begins MPI. Throws EnvironmentError.
  Messenger();
  // Ends it, unless something is still under way.
  ~Messenger();
  Messenger(const Messenger&) = delete;
  Messenger& operator=(const Messenger&) = delete;

  // Calls `start` on the thread, behind what was given to Start before; it begins an operation and returns its request.
  // Returns the operation's number.
  uint64_t Start(std::function<MPI_Request()> start);
  // Waits until this operation and all before it are done. Throws what failed.
  void Await(uint64_t operation);
  // Runs `work`, which waits for nobody, on the thread.
  void Run(std::function<void()> work);

  // Lets what is under way be, for good: no memory of it is touched any more when this returns.
  void Abandon();
  // From any thread.
  [[noreturn]] void Abort(int exit_code);

 private:
  struct Operation {
    uint64_t number;
    MPI_Request request;
  };

  void Serve();
  void Begin();
  // Looks after the operations that are under way; whether one came to its end.
  bool TestAll();
  void Fail(std::exception_ptr failure);

  std::mutex mutex_;
  std::condition_variable given_, done_;
  using Starts = std::vector<std::pair<uint64_t, std::function<MPI_Request()>>>;
  Starts starts_;
  uint64_t started_ = 0;   // operations given to Start
  uint64_t complete_ = 0;  // operations up to this one are done
  bool begun_ = false, stop_ = false, abandoned_ = false;
  bool idle_ = false;  // abandoned, or failed, and the thread is in no call of MPI any more
  std::exception_ptr failure_;
  int abort_code_ = -1;

  std::vector<Operation> active_;  // of the thread
  std::thread thread_;
};

}  // namespace crema::mpi

#endif  // CREMA_MPI_MESSENGER_H_
