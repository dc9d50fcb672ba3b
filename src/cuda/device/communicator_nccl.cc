// Sums over several GPUs by NCCL (NVIDIA, "NCCL User Guide", version 2.18 and later), or, where crema was built without
// it, what to do about that.
#include "crema/error.h"
#include "cuda/device/communicator.h"

#if CREMA_HAS_NCCL
#include <dlfcn.h>
#include <nccl.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <future>
#include <mutex>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#endif

namespace crema::cuda {

#if CREMA_HAS_NCCL

namespace {

#ifndef CREMA_NCCL_LIBRARY
#define CREMA_NCCL_LIBRARY "libnccl.so.2"
#endif

// NCCL, loaded when several GPUs are asked for: a machine with one need not have it.
struct Nccl {
  decltype(&ncclGetLastError) GetLastError = nullptr;
  decltype(&ncclGetErrorString) GetErrorString = nullptr;
  decltype(&ncclCommInitAll) CommInitAll = nullptr;
  decltype(&ncclGetUniqueId) GetUniqueId = nullptr;
  decltype(&ncclCommInitRank) CommInitRank = nullptr;
  decltype(&ncclCommDestroy) CommDestroy = nullptr;
  decltype(&ncclCommAbort) CommAbort = nullptr;
  decltype(&ncclCommGetAsyncError) CommGetAsyncError = nullptr;
  decltype(&ncclAllReduce) AllReduce = nullptr;

  Nccl() {
    // Ends are connected, and their memory is taken, by the call that makes them: later there may be none left, and a
    // rank that fails before the first sum would find others in the middle of that.
    setenv("NCCL_RUNTIME_CONNECT", "0", 0);
    void* library = dlopen(CREMA_NCCL_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      throw EnvironmentError(std::string("several GPUs train together by NCCL, which does not load: ") + dlerror() +
                             "; install it (Debian and Ubuntu: libnccl2), or train on one GPU, as in --gpu=0");
    }
    const auto find = [library](auto* function, const char* name) {
      *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(library, name));
      if (!*function)
        throw EnvironmentError(std::string("libnccl.so.2 has no ") + name + "; install NCCL 2.18 or later");
    };
    find(&GetLastError, "ncclGetLastError");
    find(&GetErrorString, "ncclGetErrorString");
    find(&CommInitAll, "ncclCommInitAll");
    find(&GetUniqueId, "ncclGetUniqueId");
    find(&CommInitRank, "ncclCommInitRank");
    find(&CommDestroy, "ncclCommDestroy");
    find(&CommAbort, "ncclCommAbort");
    find(&CommGetAsyncError, "ncclCommGetAsyncError");
    find(&AllReduce, "ncclAllReduce");
  }
};

const Nccl& Library() {
  static const Nccl nccl;
  return nccl;
}

void CheckNccl(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  const std::string more = Library().GetLastError(nullptr);
  throw EnvironmentError(std::string(what) + " failed: " + Library().GetErrorString(result) +
                         (more.empty() ? "" : " (" + more + ")") + "; NCCL_DEBUG=WARN makes NCCL say more");
}

// Ranks connect when all have come, and wait for the others without end. That goes on in a thread of its own, which is
// left behind where it takes longer than sums may.
template <typename Connect>
std::vector<ncclComm_t> ConnectInTime(Connect connect) {
  const std::chrono::milliseconds stall = StallTime();
  std::packaged_task<std::vector<ncclComm_t>()> task(std::move(connect));
  std::future<std::vector<ncclComm_t>> ends = task.get_future();
  try {
    std::thread(std::move(task)).detach();
  } catch (const std::system_error& error) {
    throw EnvironmentError(std::string("cannot start a thread that connects the GPUs: ") + error.what());
  }
  if (stall.count() > 0 && ends.wait_for(stall) != std::future_status::ready) {
    throw EnvironmentError("the GPUs have not been connected in " + std::to_string(stall.count()) +
                           " ms (CREMA_GPU_STALL_MS in the environment says how long that may take; 0: for ever); "
                           "NCCL_DEBUG=INFO shows what NCCL waits for: where GPUs of one machine do not reach each "
                           "other set NCCL_P2P_DISABLE=1, and NCCL_SOCKET_IFNAME to the network where machines do not");
  }
  return ends.get();
}

// The group's ends in this process, which Abort of any ends together.
class NcclGroup {
 public:
  // `whole`: there are no others.
  NcclGroup(const std::vector<ncclComm_t>& comms, bool whole)
      : whole_(whole), ends_(std::make_shared<std::vector<End>>(comms.size())) {
    for (size_t i = 0; i < comms.size(); ++i) (*ends_)[i].comm = comms[i];
  }
  // Nothing may be under way.
  ~NcclGroup() {
    // NCCL frees an end when the other processes of the machine free theirs. Where one failed they do not: they wait
    // for it to say so and end all.
    if (aborted_ || (!whole_ && std::uncaught_exceptions() > 0)) return;
    for (End& end : *ends_) Library().CommDestroy(end.comm);
  }

  // `index`: of the end.
  void Sum(size_t index, float* data, int64_t count, cudaStream_t stream) {
    End& end = (*ends_)[index];
    const std::unique_lock lock = LockUnless(end.mutex, [this] { return aborted_.load(); });
    if (aborted_) throw Aborted();
    ncclResult_t result = ncclSuccess;
    CheckNccl(Library().CommGetAsyncError(end.comm, &result), "asking NCCL for errors");
    if (result == ncclSuccess) {
      result = Library().AllReduce(data, data, static_cast<size_t>(count), ncclFloat32, ncclSum, end.comm, stream);
    }
    if (aborted_) throw Aborted();
    CheckNccl(result, "summing over GPUs");
  }

  // Throws where sums of this group will not end.
  void Check() {
    for (End& end : *ends_) {
      const std::unique_lock lock(end.mutex, std::try_to_lock);
      if (aborted_) throw Aborted();
      if (!lock.owns_lock()) continue;  // a call that asks by itself
      ncclResult_t result = ncclSuccess;
      CheckNccl(Library().CommGetAsyncError(end.comm, &result), "asking NCCL for errors");
      CheckNccl(result, "summing over GPUs");
    }
  }

  // NCCL tells the sums to end at once, and then waits: for the GPU, and for the other processes of the machine. That
  // goes on in a thread of its own where it takes long, since who waited for either would never say what is wrong.
  void Abort() {
    if (aborted_.exchange(true)) return;
    const auto done = std::make_shared<std::promise<void>>();
    std::future<void> ended = done->get_future();
    try {
      std::thread([ends = ends_, done] {
        AbortAll(*ends);
        done->set_value();
      }).detach();
    } catch (const std::system_error&) {  // there are no more threads
      return AbortAll(*ends_);
    }
    ended.wait_for(std::chrono::seconds(whole_ ? 5 : 2));
  }

 private:
  struct End {
    std::mutex mutex;
    ncclComm_t comm = nullptr;
  };

  // Locked, unless gives_up() before the mutex is free. Thread sanitizers do not see the locks of std::timed_mutex.
  template <typename GivesUp>
  static std::unique_lock<std::mutex> LockUnless(std::mutex& mutex, const GivesUp& gives_up) {
    std::unique_lock lock(mutex, std::defer_lock);
    while (!lock.try_lock() && !gives_up()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return lock;
  }

  static void AbortAll(std::vector<End>& ends) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    const auto too_late = [until] { return std::chrono::steady_clock::now() >= until; };
    std::vector<std::unique_lock<std::mutex>> locks;
    for (End& end : ends) locks.push_back(LockUnless(end.mutex, too_late));
    // A call that waits for a rank that is no more keeps its lock, and only ends when it is aborted. These come first,
    // as the last one of all frees what such a call still uses.
    for (const bool waits : {true, false}) {
      for (size_t i = 0; i < ends.size(); ++i) {
        if (locks[i].owns_lock() == waits) continue;
        if (!ends[i].comm) continue;
        Library().CommAbort(std::exchange(ends[i].comm, nullptr));
        if (waits) locks[i].lock();
      }
    }
  }

  const bool whole_;
  std::atomic<bool> aborted_ = false;
  const std::shared_ptr<std::vector<End>> ends_;
};

class NcclCommunicator final : public StreamCommunicator {
 public:
  NcclCommunicator(int rank, CudaGpu& gpu, std::shared_ptr<Meeting> meeting, std::shared_ptr<NcclGroup> group)
      : StreamCommunicator(rank, gpu, std::move(meeting)), end_(static_cast<size_t>(rank)), group_(std::move(group)) {}
  // The group has only this process's end.
  NcclCommunicator(CudaGpu& gpu, Processes& processes, std::shared_ptr<NcclGroup> group)
      : StreamCommunicator(gpu, processes), end_(0), group_(std::move(group)) {}

 private:
  void Issue(float* data, int64_t count, cudaStream_t stream) override { group_->Sum(end_, data, count, stream); }
  void CheckIssued() override { group_->Check(); }
  void AbortIssued() override { group_->Abort(); }

  const size_t end_;
  const std::shared_ptr<NcclGroup> group_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> ConnectGpus(const std::vector<Gpu*>& gpus) {
  std::vector<int> ids;
  for (const Gpu* gpu : gpus) ids.push_back(static_cast<const CudaGpu*>(gpu)->id());
  const int ranks = static_cast<int>(ids.size());
  const std::vector<ncclComm_t> comms = ConnectInTime([ids] {
    std::vector<ncclComm_t> ends(ids.size());
    CheckNccl(Library().CommInitAll(ends.data(), static_cast<int>(ids.size()), ids.data()), "connecting the GPUs");
    return ends;
  });
  const auto meeting = std::make_shared<Meeting>(ranks);
  const auto nccl = std::make_shared<NcclGroup>(comms, true);
  std::vector<std::unique_ptr<Communicator>> group;
  for (int rank = 0; rank < ranks; ++rank) {
    group.push_back(std::make_unique<NcclCommunicator>(rank, static_cast<CudaGpu&>(*gpus[rank]), meeting, nccl));
  }
  return group;
}

std::unique_ptr<Communicator> ConnectGpu(Gpu& device, Processes& processes) {
  auto& gpu = static_cast<CudaGpu&>(device);
  ncclUniqueId id = {};
  Together(processes, [&] {
    Library();
    if (processes.rank() == 0) CheckNccl(Library().GetUniqueId(&id), "asking NCCL for a name of the group");
  });
  processes.Broadcast(&id, sizeof id);
  const std::vector<ncclComm_t> comms = ConnectInTime([&gpu, id, ranks = processes.ranks(), rank = processes.rank()] {
    std::vector<ncclComm_t> ends(1);
    gpu.UseHere();
    CheckNccl(Library().CommInitRank(ends.data(), ranks, id, rank), "connecting the GPUs");
    return ends;
  });
  return std::make_unique<NcclCommunicator>(gpu, processes, std::make_shared<NcclGroup>(comms, false));
}

#else

namespace {

[[noreturn]] void FailWithoutNccl() {
  throw EnvironmentError(
      "this crema was built without NCCL, by which GPUs train together: install it with its header (Debian and Ubuntu: "
      "libnccl-dev) or set NCCL_ROOT to where it is, and build again; or train on one GPU, as in --gpu=0");
}

}  // namespace

std::vector<std::unique_ptr<Communicator>> ConnectGpus(const std::vector<Gpu*>&) { FailWithoutNccl(); }
std::unique_ptr<Communicator> ConnectGpu(Gpu&, Processes&) { FailWithoutNccl(); }

#endif

}  // namespace crema::cuda
