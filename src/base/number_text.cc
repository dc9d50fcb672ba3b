#include "base/number_text.h"

#include <cmath>
#include <cstdio>

namespace crema {

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

std::string FormatSeconds(double seconds) {
  const bool whole = seconds >= 0.9995;
  const double value = whole ? seconds : seconds * 1000;
  const char* format = value < 9.995 ? (value < 0.9995 ? "%.3f " : "%.2f ") : value < 99.95 ? "%.1f " : "%.0f ";
  return FormatNumber(value, format) + (whole ? "s" : "ms");
}

}  // namespace crema
