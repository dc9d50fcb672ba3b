#include "base/aligned_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

namespace crema {
namespace {

struct Free {
  void operator()(void* data) const { std::free(data); }
};
using Memory = std::unique_ptr<void, Free>;

// What the system notes of the mapping that holds `at`.
std::string FlagsOfMapping(const void* at) {
  const auto address = reinterpret_cast<uintptr_t>(at);
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::istringstream words(line);
    if (words >> std::hex >> begin >> dash >> end && dash == '-') inside = begin <= address && address < end;
    if (inside && line.starts_with("VmFlags:")) return line + " ";
  }
  return "";
}

TEST(AlignedMemory, IsWhole) {
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{64}, size_t{4097}, size_t{(4 << 20) - 1}, size_t{4 << 20},
                             size_t{(9 << 20) + 1}}) {
    const Memory memory(AllocateAligned(bytes));
    ASSERT_TRUE(memory) << bytes;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.get()) % 64, 0u) << bytes;
    std::memset(memory.get(), 7, bytes);
  }
}

TEST(AlignedMemory, IsNullWhereThereIsNotEnough) {
  EXPECT_FALSE(Memory(AllocateAligned(SIZE_MAX)));
#if !defined(__SANITIZE_ADDRESS__)  // which ends the program then
  EXPECT_FALSE(Memory(AllocateAligned(SIZE_MAX / 4)));
#endif
}

TEST(AlignedMemory, AsksForHugePages) {
  if (!std::filesystem::exists("/sys/kernel/mm/transparent_hugepage/enabled")) {
    GTEST_SKIP() << "this system has no transparent huge pages";
  }
  const size_t bytes = 64 << 20;
  const Memory memory(AllocateAligned(bytes));
  ASSERT_TRUE(memory);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.get()) % (2 << 20), 0u);
  const std::string flags = FlagsOfMapping(static_cast<const char*>(memory.get()) + bytes / 2);
  EXPECT_NE(flags.find(" hg "), std::string::npos) << flags;
}

}  // namespace
}  // namespace crema
