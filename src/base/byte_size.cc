#include "base/byte_size.h"

#include <charconv>
#include <cstdio>
#include <limits>

#include "base/lower_case.h"
#include "base/trimmed.h"

namespace crema {

namespace {

constexpr std::string_view kPrefixes = "kmgt";

// The factor of "b", "mb" or "mib"; 0 for anything else.
double FactorOf(std::string_view unit) {
  if (unit.empty() || unit == "b") return 1;
  const size_t power = kPrefixes.find(unit[0]);
  if (power == std::string_view::npos) return 0;
  const std::string_view rest = unit.substr(1);
  if (rest != "b" && rest != "ib") return 0;
  double factor = 1;
  for (size_t i = 0; i <= power; ++i) factor *= rest == "ib" ? 1024 : 1000;
  return factor;
}

}  // namespace

std::string FormatBytes(size_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes);
  const char* unit = "";
  for (const char* next : {"KiB", "MiB", "GiB", "TiB"}) {
    value /= 1024;
    unit = next;
    if (value < 1023.95) break;
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %s", value, unit);
  return text;
}

std::optional<size_t> ParseBytes(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || !(number >= 0)) return std::nullopt;
  const std::string unit = LowerCase(Trimmed(text.substr(static_cast<size_t>(end - text.data())), " "));
  const double factor = FactorOf(unit), bytes = number * factor;
  if (factor == 0 || !(bytes < static_cast<double>(std::numeric_limits<size_t>::max()))) return std::nullopt;
  return static_cast<size_t>(bytes);
}

}  // namespace crema
