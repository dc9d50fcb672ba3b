#include "base/kept_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>

namespace crema {
namespace {

constexpr size_t kMiB = 1 << 20;

class KeptMemory : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "nothing is kept with the address sanitizer";
#endif
  }
};

TEST_F(KeptMemory, GivesBackWhatWasFreed) {
  void* const first = AllocateKept(5 * kMiB);
  FreeKept(first, 5 * kMiB);
  EXPECT_GE(KeptBytes(), 5 * kMiB);
  // Sizes within an eighth of a power of two are one.
  void* const similar = AllocateKept(5 * kMiB - 1000);
  EXPECT_EQ(similar, first);
  void* const other = AllocateKept(5 * kMiB);
  EXPECT_NE(other, first);
  FreeKept(similar, 5 * kMiB - 1000);
  FreeKept(other, 5 * kMiB);
}

TEST_F(KeptMemory, KeepsNoMoreThanWasInUseAtOnce) {
  size_t most = 0;
  {
    const Bytes one(20 * kMiB), two(30 * kMiB);
    most = KeptBytes() + 50 * kMiB;
  }
  for (size_t size = 1; size <= 40; ++size) {
    const Bytes bytes(size * kMiB);
    EXPECT_LE(KeptBytes() + bytes.size(), most + most / 8) << size;
  }
  EXPECT_LE(KeptBytes(), most + most / 8);
}

TEST_F(KeptMemory, SmallOnesAreNotKept) {
  const size_t before = KeptBytes();
  for (int i = 0; i < 100; ++i) FreeKept(AllocateKept(1000), 1000);
  EXPECT_EQ(KeptBytes(), before);
}

TEST(BytesOfKeptMemory, HoldWhatTheyAreGiven) {
  Bytes bytes(3 * kMiB, std::byte{7});
  EXPECT_EQ(bytes.back(), std::byte{7});
  bytes.resize(4 * kMiB);
  EXPECT_EQ(bytes[3 * kMiB - 1], std::byte{7});
  const Bytes copy = bytes;
  EXPECT_NE(copy.data(), bytes.data());
  EXPECT_EQ(copy[12345], std::byte{7});
}

TEST(BytesOfKeptMemory, ThreadsDoNotShareWhatIsInUse) {
  const auto fill = [](uint8_t value) {
    for (size_t round = 0; round < 200; ++round) {
      Bytes bytes(kMiB / 4 + round * 64, std::byte{value});
      for (const size_t at : {size_t{0}, bytes.size() / 2, bytes.size() - 1}) {
        ASSERT_EQ(bytes[at], std::byte{value});
      }
    }
  };
  std::thread one(fill, uint8_t{1}), two(fill, uint8_t{2});
  one.join();
  two.join();
}

}  // namespace
}  // namespace crema
