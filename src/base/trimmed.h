// Text without the blanks around it.
#ifndef CREMA_BASE_TRIMMED_H_
#define CREMA_BASE_TRIMMED_H_

#include <string_view>

namespace crema {

// Leaves out all of `characters` at both ends. A part of `text`, which must outlive it.
inline std::string_view Trimmed(std::string_view text, std::string_view characters = " \t\r\n\v\f") {
  const size_t begin = text.find_first_not_of(characters);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(characters) + 1 - begin);
}

}  // namespace crema

#endif  // CREMA_BASE_TRIMMED_H_
