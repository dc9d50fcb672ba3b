// Numbers in the words of text files.
#ifndef CREMA_DATA_FINITE_NUMBER_H_
#define CREMA_DATA_FINITE_NUMBER_H_

#include <charconv>
#include <cmath>
#include <string_view>

namespace crema {

// Whether the whole word is a finite number, "+" before it or not. What is closer to 0 than floats can be is 0.
inline bool ParseFinite(std::string_view word, float* value) {
  if (word.starts_with("+") && !word.starts_with("+-")) word.remove_prefix(1);
  const char *begin = word.data(), *end = begin + word.size();
  auto [rest, error] = std::from_chars(begin, end, *value);
  if (error == std::errc::result_out_of_range) {
    double wide = 0;
    error = std::from_chars(begin, end, wide).ec;
    *value = static_cast<float>(wide);
  }
  return error == std::errc() && rest == end && std::isfinite(*value);
}

}  // namespace crema

#endif  // CREMA_DATA_FINITE_NUMBER_H_
