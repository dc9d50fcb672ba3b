// Counts every allocation of the test program, to show that delivering batches makes none.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "data/data_testing.h"
#include "data/datum_loader.h"
#include "data/prefetcher.h"

namespace {
std::atomic<int64_t> allocations = 0;

void* Counted(size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* data = std::malloc(bytes ? bytes : 1)) return data;
  throw std::bad_alloc();
}
}  // namespace

void* operator new(size_t bytes) { return Counted(bytes); }
void* operator new[](size_t bytes) { return Counted(bytes); }
void operator delete(void* data) noexcept { std::free(data); }
void operator delete[](void* data) noexcept { std::free(data); }
void operator delete(void* data, size_t) noexcept { std::free(data); }
void operator delete[](void* data, size_t) noexcept { std::free(data); }

namespace crema {
namespace {

TEST(Allocation, NoneInASteadyStream) {
  TemporaryFolder folder;
  Datum floats = testing::ImageDatum(3, 9, 8, 1);
  const std::string data = floats.data();
  floats.clear_data();
  for (const char c : data) floats.add_float_data(static_cast<float>(c));
  std::vector<Datum> datums;
  for (int i = 0; i < 50; ++i) datums.push_back(i % 5 == 0 ? floats : testing::ImageDatum(3, 9 + i % 2, 8, i));
  testing::WriteDatums(folder / "db", datums);
  TransformationParameter param;
  param.set_crop_size(5);
  param.set_mirror(true);
  param.add_mean_value(10);
  SampleOrder order;
  order.shuffle = true;
  Prefetcher prefetcher(
      std::make_shared<DatumLoader>(OpenRecordSource(folder / "db"), Transform(param, TRAIN, ""), order),
      {.batch = 7, .ahead = 4, .threads = 2});
  for (int k = 0; k < 200; ++k) prefetcher.Next();
  const int64_t before = allocations;
  for (int k = 0; k < 200; ++k) prefetcher.Next();
  EXPECT_EQ(allocations - before, 0);
  ::operator delete(::operator new(1));
  EXPECT_GE(allocations - before, 1) << "the counter does not count";
}

}  // namespace
}  // namespace crema
