// NCCL for the emulated GPUs: sums in the order of the ranks, which are threads of this process (ncclCommInitAll), or
// processes of this machine that meet in files (ncclCommInitRank).
//
// It is as mean as NCCL where that waits: what a communicator is freed by returns when all ranks of the machine have
// come to it, as its threads serve each other. In the environment:
// - CREMA_EMULATED_SUMS=N: no sum of a rank behind its N-th comes to an end, unless it is aborted;
// - CREMA_EMULATED_NCCL=stuck: nor then, and ncclCommAbort does not return, as where a GPU no longer answers; =fails:
//   after those N sums NCCL finds an error; =apart: ranks do not reach each other, and wait for that.
#include <nccl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "memory.h"

namespace {

namespace fs = std::filesystem;

uint64_t SumsThatEnd() {
  const char* const given = std::getenv("CREMA_EMULATED_SUMS");
  return given ? std::strtoull(given, nullptr, 10) : std::numeric_limits<uint64_t>::max();
}

bool Is(const char* how) {
  const char* const given = std::getenv("CREMA_EMULATED_NCCL");
  return given && given == std::string(how);
}

[[noreturn]] void WaitForever() {
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

// What ranks have in common.
class Group {
 public:
  virtual ~Group() = default;
  // Whether a rank's sum of this number is there. `data`: in its GPU's memory, which is open.
  virtual bool Sum(int rank, uint64_t number, float* data, size_t count) = 0;
  // Returns when all ranks have come to their end.
  virtual void Leave(int rank) = 0;
};

// Who comes to a sum last makes it.
class ThreadGroup final : public Group {
 public:
  explicit ThreadGroup(size_t ranks) : ranks_(ranks) {}

  bool Sum(int rank, uint64_t number, float* data, size_t count) override {
    const std::lock_guard lock(mutex_);
    if (number < made_) return true;
    auto& came = came_[number];
    came[rank] = data;
    if (came.size() < ranks_) return false;
    const crema_emulation::Access first(0), second(1);
    for (size_t i = 0; i < count; ++i) {
      float sum = came.begin()->second[i];
      for (auto addend = std::next(came.begin()); addend != came.end(); ++addend) sum += addend->second[i];
      for (const auto& [of_rank, values] : came) values[i] = sum;
    }
    came_.erase(number);
    ++made_;
    return true;
  }
  void Leave(int) override {}  // the last one of them frees all

 private:
  const size_t ranks_;
  std::mutex mutex_;
  std::map<uint64_t, std::map<int, float*>> came_;  // to sums that are under way, by rank
  uint64_t made_ = 0;
};

// Each has a file of its number as long as it is there, which holds its process, and one for each sum.
class ProcessGroup final : public Group {
 public:
  ProcessGroup(const fs::path& folder, int ranks, int rank) : folder_(folder), ranks_(ranks) {
    fs::create_directories(folder_);
    const pid_t self = getpid();
    Write("rank." + std::to_string(rank), &self, sizeof self);
    for (int r = 0; r < ranks; ++r) {
      const std::string number = std::to_string(r);
      while (!fs::exists(folder_ / ("rank." + number)) && !fs::exists(folder_ / ("left." + number))) Pause();
    }
  }

  bool Sum(int rank, uint64_t number, float* data, size_t count) override {
    const size_t bytes = count * sizeof(float);
    if (written_ <= number) {
      Write(NameOf(number, rank), data, bytes);
      written_ = number + 1;
    }
    for (int r = 0; r < ranks_; ++r) {
      if (!fs::exists(folder_ / NameOf(number, r))) return false;
    }
    std::vector<float> addends(count);
    for (int r = 0; r < ranks_; ++r) {
      std::ifstream(folder_ / NameOf(number, r), std::ios::binary)
          .read(reinterpret_cast<char*>(addends.data()), static_cast<std::streamsize>(bytes));
      for (size_t i = 0; i < count; ++i) data[i] = r == 0 ? addends[i] : data[i] + addends[i];
    }
    // All have read those of the sum before.
    if (number > 0) fs::remove(folder_ / NameOf(number - 1, rank));
    return true;
  }

  void Leave(int rank) override {
    const std::string own = "rank." + std::to_string(rank);
    fs::rename(folder_ / own, folder_ / ("left." + std::to_string(rank)));
    for (int r = 0; r < ranks_; ++r) {
      while (IsThere(r)) Pause();
    }
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

 private:
  static void Pause() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }
  static std::string NameOf(uint64_t number, int rank) { return std::to_string(number) + "." + std::to_string(rank); }
  // Readers find all of it or nothing.
  void Write(const std::string& name, const void* data, size_t bytes) const {
    const fs::path unfinished = folder_ / (name + ".tmp");
    std::ofstream(unfinished, std::ios::binary)
        .write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
    fs::rename(unfinished, folder_ / name);
  }
  bool IsThere(int rank) const {
    pid_t process = 0;
    std::ifstream file(folder_ / ("rank." + std::to_string(rank)), std::ios::binary);
    return file.read(reinterpret_cast<char*>(&process), sizeof process) && kill(process, 0) == 0;
  }

  const fs::path folder_;
  const int ranks_;
  uint64_t written_ = 0;  // sums
};

}  // namespace

struct ncclComm {
  ncclComm(std::shared_ptr<Group> given, int given_rank) : group(std::move(given)), rank(given_rank) {}
  const std::shared_ptr<Group> group;
  const int rank;
  const uint64_t that_end = SumsThatEnd();
  const bool is_stuck = Is("stuck"), fails = Is("fails");
  uint64_t issued = 0;
  const std::shared_ptr<std::atomic<bool>> aborted = std::make_shared<std::atomic<bool>>(false);
};

const char* ncclGetLastError(ncclComm_t) { return ""; }
const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited or there was a network error" : "an error";
}

ncclResult_t ncclCommInitAll(ncclComm_t* comms, int devices, const int*) {
  if (Is("apart")) WaitForever();
  const auto group = std::make_shared<ThreadGroup>(static_cast<size_t>(devices));
  for (int rank = 0; rank < devices; ++rank) comms[rank] = new ncclComm(group, rank);
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  // Where the first rank runs, as tests tidy that up.
  const std::string folder = (fs::current_path() / ("nccl." + std::to_string(getpid()))).string();
  if (folder.size() >= sizeof id->internal) return ncclSystemError;
  *id = {};
  std::copy(folder.begin(), folder.end(), id->internal);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  if (Is("apart")) WaitForever();
  *comm = new ncclComm(std::make_shared<ProcessGroup>(id.internal, ranks, rank), rank);
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  comm->group->Leave(comm->rank);
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  if (comm->is_stuck) WaitForever();
  *comm->aborted = true;
  comm->group->Leave(comm->rank);
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  *error = comm->fails && comm->issued > comm->that_end ? ncclRemoteError : ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t comm, cudaStream_t stream) {
  if (from != to || type != ncclFloat32 || operation != ncclSum) return ncclInvalidArgument;
  const auto work = [group = comm->group, aborted = comm->aborted, rank = comm->rank, number = comm->issued++,
                     that_end = comm->that_end, data = static_cast<float*>(to), count] {
    if (*aborted) return true;
    return number < that_end && group->Sum(rank, number, data, count);
  };
  return crema_emulation::EnqueueTried(stream, work) == cudaSuccess ? ncclSuccess : ncclSystemError;
}
