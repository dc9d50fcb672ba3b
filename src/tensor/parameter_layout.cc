#include "crema/parameter_layout.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/parallel.h"

namespace crema {

namespace {

constexpr int64_t kElementsPerThread = 32768;

}  // namespace

ParameterLayout::ParameterLayout(std::string name, int64_t count, std::vector<int64_t> rows,
                                 std::vector<int64_t> columns)
    : name_(std::move(name)), count_(count), rows_(std::move(rows)), columns_(std::move(columns)) {}

bool ParameterLayout::is_plain() const {
  const int64_t width = static_cast<int64_t>(columns_.size());
  for (int64_t i = 0; i < width; ++i) {
    if (columns_[i] != i) return false;
  }
  for (size_t r = 0; r < rows_.size(); ++r) {
    if (rows_[r] != static_cast<int64_t>(r) * width) return false;
  }
  return count_ == plain_count();
}

void ParameterLayout::FromPlain(const float* plain, float* stored) const {
  if (count_ > plain_count()) std::fill_n(stored, count_, 0.0f);
  const int64_t width = static_cast<int64_t>(columns_.size());
  ParallelFor(static_cast<int64_t>(rows_.size()),
              std::max<int64_t>(1, kElementsPerThread / std::max<int64_t>(1, width)), [&](int64_t begin, int64_t end) {
                for (int64_t r = begin; r < end; ++r) {
                  const float* from = plain + r * width;
                  float* to = stored + rows_[r];
                  for (int64_t i = 0; i < width; ++i) to[columns_[i]] = from[i];
                }
              });
}

void ParameterLayout::ToPlain(const float* stored, float* plain) const {
  const int64_t width = static_cast<int64_t>(columns_.size());
  ParallelFor(static_cast<int64_t>(rows_.size()),
              std::max<int64_t>(1, kElementsPerThread / std::max<int64_t>(1, width)), [&](int64_t begin, int64_t end) {
                for (int64_t r = begin; r < end; ++r) {
                  const float* from = stored + rows_[r];
                  float* to = plain + r * width;
                  for (int64_t i = 0; i < width; ++i) to[i] = from[columns_[i]];
                }
              });
}

void CopyToPlain(const ParameterLayout* layout, const Tensor& stored, float* plain) {
  if (layout) return layout->ToPlain(stored.f32(), plain);
  std::memcpy(plain, stored.raw(), stored.bytes());
}

void CopyFromPlain(const ParameterLayout* layout, const float* plain, const Tensor& stored) {
  if (layout) return layout->FromPlain(plain, stored.f32());
  std::memcpy(stored.raw(), plain, stored.bytes());
}

}  // namespace crema
