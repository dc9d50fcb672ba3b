// Sums over ranks, without training.
#include "device/communicator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "crema/error.h"
#include "device/gpu.h"
#include "solver/rank_threads.h"

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
