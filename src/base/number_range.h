// Where a number that a user gives must lie.
#ifndef CREMA_BASE_NUMBER_RANGE_H_
#define CREMA_BASE_NUMBER_RANGE_H_

#include <limits>
#include <string>
#include <string_view>

namespace crema {

struct NumberRange {
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  bool above_low = false, below_high = false;  // the end itself is outside

  // Never for NaN and infinity.
  bool Holds(double value) const;
  // What `value`, which is outside, must be: "in [0, 1]", "above 0", "at least 0 and below 1", "finite".
  std::string Rule(double value) const;
  // "alpha is -1 but must be at least 0; hint": of the last name in `field`, "mixup_param.alpha".
  std::string Complaint(std::string_view field, double value, std::string_view hint = {}) const;
};

constexpr NumberRange kFinite;
constexpr NumberRange kNotNegative = {.low = 0};
constexpr NumberRange kPositive = {.low = 0, .above_low = true};
constexpr NumberRange kFraction = {.low = 0, .high = 1};
constexpr NumberRange kPositiveFraction = {.low = 0, .high = 1, .above_low = true};

}  // namespace crema

#endif  // CREMA_BASE_NUMBER_RANGE_H_
