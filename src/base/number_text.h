// Numbers as people read and write them.
#ifndef CREMA_BASE_NUMBER_TEXT_H_
#define CREMA_BASE_NUMBER_TEXT_H_

#include <charconv>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace crema {

// `format` is printf's, with one conversion of a double.
std::string FormatNumber(double value, const char* format = "%g");
// "1234567" as "1,234,567".
std::string FormatCount(int64_t count);
// "12", "0.15", "812 k", "2.34 G": whole numbers below 1,000 as they are, else three digits with a decimal prefix.
std::string FormatScaled(double value);
// `part` of `whole` in percent, 0 where that is none; `format` as above.
std::string FormatPercent(double part, double whole, const char* format = "%.1f%%");
// Millions of bytes: "12.3".
std::string FormatMegabytes(uint64_t bytes);
// "0.123 ms", "12.3 ms", "1.23 s": three digits.
std::string FormatSeconds(double seconds);

// Whether the whole word is a finite number, "+" before it or not. What is closer to 0 than the type can be is 0.
bool ParseFinite(std::string_view word, float* value);
bool ParseFinite(std::string_view word, double* value);

// Whether the whole word is a whole number of the type: digits, of signed types with "-" before them or not.
template <std::integral Number>
bool ParseWhole(std::string_view word, Number* value) {
  const char* const end = word.data() + word.size();
  const auto [rest, error] = std::from_chars(word.data(), end, *value);
  return error == std::errc() && rest == end;
}

}  // namespace crema

#endif  // CREMA_BASE_NUMBER_TEXT_H_
