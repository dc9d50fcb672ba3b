// Text in small letters, by which names are compared.
#ifndef CREMA_BASE_LOWER_CASE_H_
#define CREMA_BASE_LOWER_CASE_H_

#include <string>
#include <string_view>

namespace crema {

// ASCII's letters alone, whatever the locale; all other bytes stay as they are.
constexpr char LowerCase(char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

inline std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = LowerCase(c);
  return lower;
}

}  // namespace crema

#endif  // CREMA_BASE_LOWER_CASE_H_
