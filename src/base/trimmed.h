// Text without the blanks around it, and lists of such texts.
#ifndef CREMA_BASE_TRIMMED_H_
#define CREMA_BASE_TRIMMED_H_

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace crema {

// Leaves out all of `characters` at both ends. A part of `text`, which must outlive it.
inline std::string_view Trimmed(std::string_view text, std::string_view characters = " \t\r\n\v\f") {
  const size_t begin = text.find_first_not_of(characters);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(characters) + 1 - begin);
}

// "a, b,,c" as "a", "b", "" and "c": what stands between commas, trimmed. One empty part of an empty text.
inline std::vector<std::string> CommaParts(std::string_view text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    parts.emplace_back(Trimmed(text.substr(begin, comma - begin)));
    begin = comma + 1;
  }
  return parts;
}

}  // namespace crema

#endif  // CREMA_BASE_TRIMMED_H_
