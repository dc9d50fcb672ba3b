// Helpers to compare a kernel with its plain-loop reference.
#ifndef CREMA_TESTS_OPS_COMPARISON_H_
#define CREMA_TESTS_OPS_COMPARISON_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/bfloat16.h"
#include "base/random.h"
#include "crema/tensor.h"
#include "device/device.h"
#include "near.h"

namespace crema {

inline std::vector<float> RandomValues(int64_t n, uint64_t stream) {
  const RandomStream random(1, stream);
  std::vector<float> values(n);
  for (int64_t i = 0; i < n; ++i) values[i] = random.Uniform(i) * 2 - 1;
  return values;
}

inline std::vector<BFloat16> Rounded(const std::vector<float>& values) { return {values.begin(), values.end()}; }
inline std::vector<float> Widened(const std::vector<BFloat16>& values) { return {values.begin(), values.end()}; }

// Each element is `expected` computed in float in some order, then rounded once.
inline void ExpectRounded(const std::vector<float>& expected, const std::vector<float>& actual,
                          const std::string& what) {
  ASSERT_EQ(expected.size(), actual.size()) << what;
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_LE(std::fabs(expected[i] - actual[i]), std::fabs(expected[i]) * 0x1.02p-8f + 1e-6f)
        << what << " element " << i << ": expected " << expected[i] << ", got " << actual[i];
  }
}

// What outputs hold before a kernel runs: whatever it leaves unwritten shows.
inline std::vector<float> Poison(int64_t n) { return std::vector<float>(n, std::numeric_limits<float>::quiet_NaN()); }

// A tensor of either dtype, with numbers behind it that must stay.
class GuardedTensor {
 public:
  GuardedTensor(DType dtype, std::vector<float> values) : dtype_(dtype), n_(values.size()) {
    values.resize(n_ + kGuard, 7.0f);
    floats_ = values;
    halves_ = Rounded(values);
    if (dtype == DType::kBF16) floats_ = Widened(halves_);
  }
  void* data() { return dtype_ == DType::kF32 ? static_cast<void*>(floats_.data()) : halves_.data(); }
  std::vector<float> Read() const {
    std::vector<float> values = dtype_ == DType::kF32 ? floats_ : Widened(halves_);
    for (size_t i = n_; i < values.size(); ++i) EXPECT_EQ(7.0f, values[i]) << "written behind the end";
    values.resize(n_);
    return values;
  }

 private:
  static constexpr size_t kGuard = 64;
  DType dtype_;
  size_t n_;
  std::vector<float> floats_;
  std::vector<BFloat16> halves_;
};

// A workspace full of NaN, with NaN behind it that must stay.
class PoisonedWorkspace {
 public:
  explicit PoisonedWorkspace(size_t bytes) : floats_((bytes + 3) / 4), buffer_(CpuDevice(), (floats_ + kGuard) * 4) {
    std::fill_n(floats(), floats_ + kGuard, std::numeric_limits<float>::quiet_NaN());
  }
  ~PoisonedWorkspace() {
    const float* const behind = floats() + floats_;
    EXPECT_TRUE(std::all_of(behind, behind + kGuard, [](float x) { return std::isnan(x); }))
        << "written behind the end";
  }
  PoisonedWorkspace(const PoisonedWorkspace&) = delete;
  PoisonedWorkspace& operator=(const PoisonedWorkspace&) = delete;
  // Null where nothing is wanted.
  std::byte* data() const { return floats_ > 0 ? buffer_.data() : nullptr; }

 private:
  static constexpr size_t kGuard = 1024;
  float* floats() const { return reinterpret_cast<float*>(buffer_.data()); }

  size_t floats_;
  Buffer buffer_;
};

}  // namespace crema

#endif  // CREMA_TESTS_OPS_COMPARISON_H_
