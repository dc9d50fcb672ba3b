#include "base/number_text.h"

#include <cmath>
#include <cstdio>

namespace crema {

namespace {

template <typename Number>
bool ParseFiniteAs(std::string_view word, Number* value) {
  if (word.starts_with("+") && !word.starts_with("+-")) word.remove_prefix(1);
  const char *const begin = word.data(), *const end = begin + word.size();
  auto [rest, error] = std::from_chars(begin, end, *value);
  if (error == std::errc::result_out_of_range) {
    long double wide = 0;
    error = std::from_chars(begin, end, wide).ec;
    *value = static_cast<Number>(wide);
  }
  return error == std::errc() && rest == end && std::isfinite(*value);
}

}  // namespace

std::string FormatNumber(double value, const char* format) {
  if (std::isnan(value)) value = std::fabs(value);  // its sign says nothing
  char text[400];                                   // the largest double has 309 digits before the point
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string FormatCount(int64_t count) {
  std::string text = std::to_string(count);
  for (int at = static_cast<int>(text.size()) - 3; at > (count < 0 ? 1 : 0); at -= 3) text.insert(at, ",");
  return text;
}

std::string FormatScaled(double value) {
  const char* unit = "";
  if (value >= 999.5) {
    for (const char* next : {" k", " M", " G", " T", " P"}) {
      value /= 1000;
      unit = next;
      if (value < 999.5) break;
    }
  } else if (value == std::floor(value)) {
    return FormatNumber(value, "%.0f");
  }
  return FormatNumber(value, value < 9.995 ? "%.2f" : value < 99.95 ? "%.1f" : "%.0f") + unit;
}

std::string FormatPercent(double part, double whole, const char* format) {
  return FormatNumber(whole > 0 ? 100 * part / whole : 0, format);
}

std::string FormatMegabytes(uint64_t bytes) { return FormatNumber(static_cast<double>(bytes) / 1e6, "%.1f"); }

bool ParseFinite(std::string_view word, float* value) { return ParseFiniteAs(word, value); }
bool ParseFinite(std::string_view word, double* value) { return ParseFiniteAs(word, value); }

std::string FormatSeconds(double seconds) {
  const bool whole = seconds >= 0.9995;
  const double value = whole ? seconds : seconds * 1000;
  const char* format = value < 9.995 ? (value < 0.9995 ? "%.3f " : "%.2f ") : value < 99.95 ? "%.1f " : "%.0f ";
  return FormatNumber(value, format) + (whole ? "s" : "ms");
}

}  // namespace crema
