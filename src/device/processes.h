// The processes that train one net together, a rank each, as a launcher (mpirun, srun) started them.
#ifndef CREMA_DEVICE_PROCESSES_H_
#define CREMA_DEVICE_PROCESSES_H_

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/communicator.h"
#include "device/device.h"

namespace crema {

// This process's end of the group. All must make the same calls in the same order, but for Ask, Asked and Abort. Used
// by one thread, but for Abort.
class Processes {
 public:
  // Waits for the others to do so, too.
  virtual ~Processes() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  // Its place among those of this machine.
  virtual int local_rank() const = 0;
  virtual int local_ranks() const = 0;
  // Of each rank.
  virtual const std::vector<std::string>& machines() const = 0;
  // For people: whose library carries this, in which version.
  virtual std::string library() const = 0;

  // Gives all what the first rank has there.
  virtual void Broadcast(void* data, size_t bytes) = 0;
  // What each gives, by rank.
  virtual std::vector<std::string> Gather(const std::string& own) = 0;
  // The sum in the order of the ranks.
  virtual double SumOnHost(double value) = 0;
  // For sums between the devices that the ranks compute on. Its Abort ends this process's waiting only.
  virtual std::unique_ptr<Communicator> Connect(Device& device) = 0;

  // Requests, each a bit, that travel with the next SumOnHost; and those that came with the last one from any rank.
  virtual void Ask(uint32_t requests) = 0;
  virtual uint32_t Asked() const = 0;

  // Ends all processes with this exit code.
  [[noreturn]] virtual void Abort(int exit_code) = 0;
};

// Thrown in all processes at once where something failed in one.
class FailedTogether : public std::exception {
 public:
  FailedTogether(std::exception_ptr own, std::vector<int> ranks, bool by_user)
      : own(std::move(own)), ranks(std::move(ranks)), by_user(by_user) {}
  const char* what() const noexcept override { return "a rank failed"; }

  std::exception_ptr own;  // null: it did not fail in this one, or a lower rank tells the same
  std::vector<int> ranks;  // where it failed just so; empty where `own` is null
  bool by_user;            // what failed in the lowest rank was a UserError
};

// Runs `action`, in which nothing of `processes` may be called, and waits until all did. Throws FailedTogether where it
// threw anywhere.
void Together(Processes& processes, const std::function<void()>& action);

// By MPI, which libcrema_mpi brings along; CREMA_MPI_LIBRARY names another file than the one beside libcrema. At most
// once in a process. Throws EnvironmentError where it is not there, or cannot be used.
std::unique_ptr<Processes> OpenMpi();

// What libcrema_mpi exports under the name "crema_mpi_library".
struct MpiLibrary {
  uint32_t interface_version;  // kMpiInterface of the headers it was compiled with
  std::unique_ptr<Processes> (*open)();
};
inline constexpr uint32_t kMpiInterface = 1;

// How many processes the launcher says that it started, by the variables of Open MPI, MPICH and PMIx; 1: none does.
int LaunchedProcesses();

}  // namespace crema

#endif  // CREMA_DEVICE_PROCESSES_H_
