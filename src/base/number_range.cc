#include "base/number_range.h"

#include <cmath>

#include "base/number_text.h"

namespace crema {

namespace {

// Counts are told in full.
std::string Text(double number) {
  return FormatNumber(number, number == std::trunc(number) && std::fabs(number) < 1e15 ? "%.0f" : "%g");
}

}  // namespace

bool NumberRange::Holds(double value) const {
  return std::isfinite(value) && (above_low ? value > low : value >= low) &&
         (below_high ? value < high : value <= high);
}

std::string NumberRange::Rule(double value) const {
  const bool has_low = std::isfinite(low), has_high = std::isfinite(high);
  if (std::isinf(value) ? !(value < 0 ? has_low : has_high) : !has_low && !has_high) return "finite";
  if (has_low && has_high && !above_low && !below_high) return "in [" + Text(low) + ", " + Text(high) + "]";
  std::string rule;
  if (has_low) rule = (above_low ? "above " : "at least ") + Text(low);
  if (has_high) rule += (has_low ? " and " : "") + std::string(below_high ? "below " : "at most ") + Text(high);
  return rule;
}

std::string NumberRange::Complaint(std::string_view field, double value, std::string_view hint) const {
  std::string text(field.substr(field.rfind('.') + 1));
  text += " is " + Text(value) + " but must be " + Rule(value);
  if (!hint.empty()) text.append("; ").append(hint);
  return text;
}

}  // namespace crema
