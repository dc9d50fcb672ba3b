// Sums over the copies of a net that train together, one on each device.
#ifndef CREMA_DEVICE_COMMUNICATOR_H_
#define CREMA_DEVICE_COMMUNICATOR_H_

#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "crema/error.h"
#include "device/device.h"

namespace crema {

// Thrown in ranks that wait for one that failed.
class Aborted : public std::exception {
 public:
  const char* what() const noexcept override { return "another device's training failed"; }
};

// Thrown where sums over the ranks fail, or do not end: the group was aborted.
class GroupError : public EnvironmentError {
 public:
  using EnvironmentError::EnvironmentError;
};

// One rank's end of a group. All ranks must ask for the same sums in the same order. Used by one thread, but for Abort.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  // Replaces numbers in the device's memory by their sums over all ranks, the same bits in each, behind the work that
  // was issued to the device before. On a GPU this only issues it, beside what is issued later.
  virtual void SumInPlace(float* data, int64_t count) = 0;
  // What is issued from here on begins after the sums so far.
  virtual void Join() = 0;
  // The sum, in the order of the ranks, of what each gives on the host; waits for all of them, not for devices.
  virtual double SumOnHost(double value) = 0;
  // Ends every waiting in the group, for good: by Aborted, or, in the work of a GPU, with arbitrary sums. Thread-safe.
  virtual void Abort() = 0;
};

// For ranks that are threads of this process, on devices of any kind: sums are taken on the host, every one in the
// order of the ranks.
std::vector<std::unique_ptr<Communicator>> ConnectThreads(const std::vector<Device*>& devices);

// By what suits the devices, which must be of one kind. Throws EnvironmentError where GPUs cannot be connected.
std::vector<std::unique_ptr<Communicator>> Connect(const std::vector<Device*>& devices);

}  // namespace crema

#endif  // CREMA_DEVICE_COMMUNICATOR_H_
