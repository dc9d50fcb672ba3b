// The group of processes by MPI (MPI Forum, "MPI: A Message-Passing Interface Standard", version 3.1).
#include "device/processes.h"

#include <algorithm>
#include <climits>
#include <cstring>

#include "crema/error.h"
#include "device/gpu.h"
#include "mpi/messenger.h"

namespace crema::mpi {

namespace {

constexpr int64_t kPiece = int64_t{1} << 28;  // numbers or bytes in one operation: MPI counts in int

// Sums of a CPU's numbers, which go on while others are still computed.
class HostCommunicator final : public Communicator {
 public:
  HostCommunicator(Processes& processes, Messenger& messenger) : processes_(processes), messenger_(messenger) {}
  ~HostCommunicator() override { messenger_.Abandon(); }

  int rank() const override { return processes_.rank(); }
  int ranks() const override { return processes_.ranks(); }
  void SumInPlace(float* data, int64_t count) override {
    for (; count > 0; data += kPiece, count -= kPiece) {
      const int piece = static_cast<int>(std::min(count, kPiece));
      last_ = messenger_.Start([data, piece] {
        MPI_Request request = MPI_REQUEST_NULL;
        CheckMpi(MPI_Iallreduce(MPI_IN_PLACE, data, piece, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request),
                 "summing gradients");
        return request;
      });
    }
  }
  void Join() override { messenger_.Await(last_); }
  double SumOnHost(double value) override { return processes_.SumOnHost(value); }
  void Abort() override { messenger_.Abandon(); }

 private:
  Processes& processes_;
  Messenger& messenger_;
  uint64_t last_ = 0;
};

class MpiProcesses final : public Processes {
 public:
  MpiProcesses() {
    char name[MPI_MAX_PROCESSOR_NAME + 1] = {}, version[MPI_MAX_LIBRARY_VERSION_STRING + 1] = {};
    int length = 0;
    messenger_.Run([&] {
      CheckMpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "asking for the rank");
      CheckMpi(MPI_Comm_size(MPI_COMM_WORLD, &ranks_), "asking for the number of ranks");
      MPI_Comm machine = MPI_COMM_NULL;
      CheckMpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine),
               "asking for this machine's ranks");
      MPI_Comm_rank(machine, &local_rank_);
      MPI_Comm_size(machine, &local_ranks_);
      MPI_Comm_free(&machine);
      MPI_Get_processor_name(name, &length);
      MPI_Get_library_version(version, &length);
    });
    library_ = std::string(version).substr(0, std::strcspn(version, ",\n"));
    if (const int launched = LaunchedProcesses(); ranks_ == 1 && launched > 1) {
      throw EnvironmentError("engine: MPI: the launcher started " + std::to_string(launched) +
                             " processes, but each finds itself alone: crema was built with " + library_ +
                             ", to which this mpirun does not belong; start it with the mpirun of that MPI");
    }
    machines_ = Gather(name);
  }
  ~MpiProcesses() override {
    // Not in MPI_Finalize, where some would wait with all their might.
    try {
      Gather("");
    } catch (...) {
    }
  }

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  int local_rank() const override { return local_rank_; }
  int local_ranks() const override { return local_ranks_; }
  const std::vector<std::string>& machines() const override { return machines_; }
  std::string library() const override { return library_; }

  void Broadcast(void* data, size_t bytes) override {
    uint64_t last = 0;
    auto* at = static_cast<std::byte*>(data);
    for (size_t done = 0; done < bytes; done += kPiece) {
      const int piece = static_cast<int>(std::min(bytes - done, static_cast<size_t>(kPiece)));
      last = messenger_.Start([at, done, piece] {
        MPI_Request request = MPI_REQUEST_NULL;
        CheckMpi(MPI_Ibcast(at + done, piece, MPI_BYTE, 0, MPI_COMM_WORLD, &request), "sharing what rank 0 has");
        return request;
      });
    }
    messenger_.Await(last);
  }

  std::vector<std::string> Gather(const std::string& own) override {
    std::vector<int> bytes(static_cast<size_t>(ranks_)), offsets(bytes.size(), 0);
    int own_bytes = static_cast<int>(std::min<size_t>(own.size(), INT_MAX / ranks_));
    messenger_.Await(messenger_.Start([&] {
      MPI_Request request = MPI_REQUEST_NULL;
      CheckMpi(MPI_Iallgather(&own_bytes, 1, MPI_INT, bytes.data(), 1, MPI_INT, MPI_COMM_WORLD, &request), "gathering");
      return request;
    }));
    for (size_t r = 1; r < bytes.size(); ++r) offsets[r] = offsets[r - 1] + bytes[r - 1];
    std::string all(static_cast<size_t>(offsets.back() + bytes.back()), '\0');
    messenger_.Await(messenger_.Start([&] {
      MPI_Request request = MPI_REQUEST_NULL;
      CheckMpi(MPI_Iallgatherv(own.data(), own_bytes, MPI_BYTE, all.data(), bytes.data(), offsets.data(), MPI_BYTE,
                               MPI_COMM_WORLD, &request),
               "gathering");
      return request;
    }));
    std::vector<std::string> parts;
    for (size_t r = 0; r < bytes.size(); ++r) {
      parts.push_back(all.substr(static_cast<size_t>(offsets[r]), static_cast<size_t>(bytes[r])));
    }
    return parts;
  }

  double SumOnHost(double value) override {
    const Note own{value, requests_};
    notes_.resize(static_cast<size_t>(ranks_));
    requests_ = 0;
    messenger_.Await(messenger_.Start([&] {
      MPI_Request request = MPI_REQUEST_NULL;
      CheckMpi(
          MPI_Iallgather(&own, sizeof own, MPI_BYTE, notes_.data(), sizeof own, MPI_BYTE, MPI_COMM_WORLD, &request),
          "summing losses");
      return request;
    }));
    double sum = 0;
    asked_ = 0;
    for (const Note& note : notes_) {
      sum += note.value;
      asked_ |= note.requests;
    }
    return sum;
  }

  std::unique_ptr<Communicator> Connect(Device& device) override {
    if (device.type() == DeviceType::kCpu) return std::make_unique<HostCommunicator>(*this, messenger_);
    return ConnectGpu(static_cast<Gpu&>(device), *this);
  }

  void Ask(uint32_t requests) override { requests_ |= requests; }
  uint32_t Asked() const override { return asked_; }
  void Abort(int exit_code) override { messenger_.Abort(exit_code); }

 private:
  struct Note {
    double value = 0;
    uint64_t requests = 0;
  };

  Messenger messenger_;
  int rank_ = 0, ranks_ = 1, local_rank_ = 0, local_ranks_ = 1;
  std::vector<std::string> machines_;
  std::string library_;
  std::vector<Note> notes_;
  uint64_t requests_ = 0;
  uint32_t asked_ = 0;
};

std::unique_ptr<Processes> Open() { return std::make_unique<MpiProcesses>(); }

}  // namespace

}  // namespace crema::mpi

extern "C" {
extern const crema::MpiLibrary crema_mpi_library;
const crema::MpiLibrary crema_mpi_library{crema::kMpiInterface, crema::mpi::Open};
}
