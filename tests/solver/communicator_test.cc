// Sums over ranks, without training.
#include "device/communicator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include "crema/error.h"
#include "device/gpu.h"
#include "solver/ranks/rank_threads.h"

namespace crema {
namespace {

using Group = std::vector<std::unique_ptr<Communicator>>;

// What rank `rank` adds at element i; sums of these depend on their order.
float Addend(int rank, int64_t i) { return static_cast<float>(rank == 1 ? 1e8 : 0.1) * static_cast<float>(i % 97 + 1); }

void CheckSums(const std::vector<Device*>& devices, const Group& group) {
  const int ranks = static_cast<int>(devices.size());
  RankThreads threads(ranks, 1, [&] { group[0]->Abort(); });
  for (const int64_t count : {1, 15, 16, 17, 1000, 100001}) {
    std::vector<float> expected(count);
    for (int64_t i = 0; i < count; ++i) {
      expected[i] = Addend(0, i);
      for (int rank = 1; rank < ranks; ++rank) expected[i] += Addend(rank, i);
    }
    std::vector<std::vector<float>> sums(ranks, std::vector<float>(count));
    threads.Run([&](int rank) {
      for (int64_t i = 0; i < count; ++i) sums[rank][i] = Addend(rank, i);
      Device& device = *devices[rank];
      device.UseHere();
      const Buffer buffer(device, count * sizeof(float));
      device.CopyIn(sums[rank].data(), buffer.data(), buffer.bytes());
      group[rank]->SumInPlace(reinterpret_cast<float*>(buffer.data()), count);
      group[rank]->Join();
      device.CopyOut(buffer.data(), sums[rank].data(), buffer.bytes());
      EXPECT_EQ(group[rank]->SumOnHost(rank + 0.5), ranks * ranks / 2.0);
    });
    for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(sums[rank], expected) << "rank " << rank << " of " << ranks;
  }
}

TEST(Communicator, ThreadsSumInTheOrderOfTheRanks) {
  for (const int ranks : {1, 2, 3, 5}) {
    const std::vector<Device*> devices(ranks, &CpuDevice());
    CheckSums(devices, Connect(devices));
  }
}

TEST(Communicator, GpusSum) {
  try {
    const std::vector<Device*> devices = {&OpenGpu(0), &OpenGpu(1)};
    CheckSums(devices, Connect(devices));
    CheckSums(devices, ConnectThreads(devices));
  } catch (const EnvironmentError& error) {
    GTEST_SKIP() << error.what();
  }
}

class StallTime {
 public:
  explicit StallTime(const char* milliseconds) { setenv("CREMA_GPU_STALL_MS", milliseconds, 1); }
  ~StallTime() { unsetenv("CREMA_GPU_STALL_MS"); }
};

TEST(Communicator, AWaitForASumOfGpusThatDoesNotEndIsGivenUp) {
  const StallTime stall("1500");
  std::vector<Device*> devices;
  Group group;
  try {
    devices = {&OpenGpu(0), &OpenGpu(1)};
    group = Connect(devices);
  } catch (const EnvironmentError& error) {
    GTEST_SKIP() << error.what();
  }
  RankThreads threads(2, 1, [&] { group[0]->Abort(); });
  std::vector<Buffer> buffers;
  for (Device* device : devices) buffers.emplace_back(*device, sizeof(float));
  float value = 0;
  const auto sum = [&](int rank) {
    devices[rank]->UseHere();
    group[rank]->SumInPlace(reinterpret_cast<float*>(buffers[rank].data()), 1);
  };
  // Ranks only meet on the host before the first sum of later passes, and not before the second.
  for (int pass = 0; pass < 4; ++pass) {
    threads.Run([&](int rank) {
      sum(rank);
      group[rank]->Join();
      float of_rank = 0;
      devices[rank]->CopyOut(buffers[rank].data(), &of_rank, sizeof of_rank);
    });
  }
  try {
    threads.Run([&](int rank) {
      sum(rank);
      if (rank == 0) sum(rank);
      group[rank]->Join();
      if (rank == 0) devices[rank]->CopyOut(buffers[rank].data(), &value, sizeof value);
    });
    ADD_FAILURE() << "the sum ended";
  } catch (const EnvironmentError& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.find("rank 0 of 2, on GPU 0 ("), 0u) << message;
    EXPECT_NE(message.find("has not ended in 1500 ms"), std::string::npos) << message;
    EXPECT_NE(message.find("--snapshot=auto"), std::string::npos) << message;
  }
  // The GPUs can be used again.
  group.clear();
  for (int rank = 0; rank < 2; ++rank) {
    devices[rank]->UseHere();
    const float given = 3;
    devices[rank]->CopyIn(&given, buffers[rank].data(), sizeof given);
    devices[rank]->CopyOut(buffers[rank].data(), &value, sizeof value);
    EXPECT_EQ(value, 3);
  }
}

TEST(Communicator, RefusesAStallTimeThatIsNoNumber) {
  for (const char* text : {"soon", "5s", "-1", "1e3"}) {
    const StallTime stall(text);
    try {
      Connect({&OpenGpu(0), &OpenGpu(1)});
      ADD_FAILURE() << "took " << text;
    } catch (const EnvironmentError& error) {
      const std::string message = error.what();
      if (message.find("CREMA_GPU_STALL_MS=") == std::string::npos) GTEST_SKIP() << message;
      EXPECT_NE(message.find(text), std::string::npos) << message;
    }
  }
}

TEST(Communicator, AbortEndsWaiting) {
  const Group group = Connect({&CpuDevice(), &CpuDevice(), &CpuDevice()});
  RankThreads threads(3, 1, [&] { group[0]->Abort(); });
  std::atomic<int> aborted = 0;
  const auto fail = [&](int rank) {
    if (rank == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      throw std::runtime_error("rank 1 fails");
    }
    float value = 1;
    try {
      if (rank == 0) group[rank]->SumInPlace(&value, 1);
      group[rank]->SumOnHost(1);
    } catch (const Aborted&) {
      ++aborted;
      throw;
    }
  };
  for (int again = 0; again < 2; ++again) {
    try {
      threads.Run(fail);
      ADD_FAILURE() << "ran";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "rank 1 fails");
    }
    EXPECT_EQ(aborted, 2);  // the second call runs nothing
  }
  EXPECT_THROW(group[2]->SumOnHost(1), Aborted);
}

TEST(RankThreads, ThrowWhatTheFirstRankThrew) {
  RankThreads threads(4, 1, [] {});
  std::atomic<int> ran = 0;
  threads.Run([&](int) { ++ran; });
  EXPECT_EQ(ran, 4);
  try {
    threads.Run([&](int rank) {
      if (rank == 0) throw Aborted();
      throw std::runtime_error(std::to_string(rank));
    });
    ADD_FAILURE() << "ran";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "1");
  }
}

}  // namespace
}  // namespace crema
