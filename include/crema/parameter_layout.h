// How the values of a parameter lie in memory where a kernel keeps them in a form of its own.
#ifndef CREMA_PARAMETER_LAYOUT_H_
#define CREMA_PARAMETER_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "crema/tensor.h"

namespace crema {

// Immutable, and so usable from any thread. A row is everything under one index of the plain shape's outermost axis.
class ParameterLayout {
 public:
  // Element i of row r lies at rows[r] + columns[i], each at a place of its own below `count`; what no element takes is
  // padding.
  ParameterLayout(std::string name, int64_t count, std::vector<int64_t> rows, std::vector<int64_t> columns);

  // For dumps: "Acdb16a", the axes from outermost to innermost as oneDNN writes them.
  const std::string& name() const { return name_; }
  // Floats stored, padding included. Padding is zero, and stays so where it is only added to zeros or scaled.
  int64_t count() const { return count_; }
  int64_t plain_count() const { return static_cast<int64_t>(rows_.size() * columns_.size()); }
  // Whether every element lies where it does in C order.
  bool is_plain() const;

  // Copies plain_count() floats in C order to count() stored ones or back, bit by bit; threaded, allocates nothing.
  void FromPlain(const float* plain, float* stored) const;
  void ToPlain(const float* stored, float* plain) const;

  friend bool operator==(const ParameterLayout&, const ParameterLayout&) = default;

 private:
  std::string name_;
  int64_t count_;
  std::vector<int64_t> rows_, columns_;
};

// The values of `stored`, which lies as `layout` says (null: plain), in C order; and back.
void CopyToPlain(const ParameterLayout* layout, const Tensor& stored, float* plain);
void CopyFromPlain(const ParameterLayout* layout, const float* plain, const Tensor& stored);

}  // namespace crema

#endif  // CREMA_PARAMETER_LAYOUT_H_
