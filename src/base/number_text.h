// Numbers as people read them.
#ifndef CREMA_BASE_NUMBER_TEXT_H_
#define CREMA_BASE_NUMBER_TEXT_H_

#include <cstdint>
#include <string>

namespace crema {

// `format` is printf's, with one conversion of a double.
std::string FormatNumber(double value, const char* format = "%g");
// "1234567" as "1,234,567".
std::string FormatCount(int64_t count);
// "12", "0.15", "812 k", "2.34 G": whole numbers below 1,000 as they are, else three digits with a decimal prefix.
std::string FormatScaled(double value);
// "0.123 ms", "12.3 ms", "1.23 s": three digits.
std::string FormatSeconds(double seconds);

}  // namespace crema

#endif  // CREMA_BASE_NUMBER_TEXT_H_
