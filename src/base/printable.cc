#include "base/printable.h"

namespace crema {

std::string Printable(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    if (c >= ' ' && c <= '~') {
      text += c;
    } else {
      constexpr char kDigits[] = "0123456789abcdef";
      text += "\\x";
      text += kDigits[static_cast<unsigned char>(c) >> 4];
      text += kDigits[static_cast<unsigned char>(c) & 15];
    }
  }
  return text;
}

}  // namespace crema
