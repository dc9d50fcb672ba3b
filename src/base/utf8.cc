#include "base/utf8.h"

#include <algorithm>

#include "crema/error.h"

namespace crema {

void DropByteOrderMark(const std::string& file, std::string* text) {
  if (text->starts_with("\xFF\xFE") || text->starts_with("\xFE\xFF")) {
    throw UserError(Location{file}, "is UTF-16 text; save it as UTF-8");
  }
  if (text->starts_with("\xEF\xBB\xBF")) text->erase(0, 3);
}

size_t Utf8SequenceLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const size_t length = first < 0x80   ? 1
                        : first < 0xC2 ? 0
                        : first < 0xE0 ? 2
                        : first < 0xF0 ? 3
                        : first < 0xF5 ? 4
                                       : 0;
  if (length == 0 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Overlong forms, surrogates and what lies beyond U+10FFFF.
  if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F)) return 0;
  if ((first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F)) return 0;
  return length;
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = Utf8SequenceLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

size_t Utf8Characters(std::string_view text) {
  size_t count = 0;
  for (; !text.empty(); ++count) text.remove_prefix(std::max<size_t>(Utf8SequenceLength(text), 1));
  return count;
}

std::string Utf8Shortened(std::string_view text, size_t most) {
  if (Utf8Characters(text) <= most) return std::string(text);
  size_t end = 0;
  for (size_t i = 1; i < most; ++i) end += std::max<size_t>(Utf8SequenceLength(text.substr(end)), 1);
  return std::string(text.substr(0, end)) + "~";
}

}  // namespace crema
