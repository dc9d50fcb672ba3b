#include "base/printable.h"

#include <algorithm>
#include <cctype>

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

std::string Harmless(std::string text) {
  size_t kept = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    // Those of C1 are U+0080 to U+009F.
    const bool longer = c == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    const bool control = longer || (c < 0x20 && c != '\n' && c != '\t') || c == 0x7F;
    text[kept++] = control ? '?' : text[i];
    if (longer) ++i;
  }
  text.resize(kept);
  return text;
}

std::string OneLine(std::string_view text) {
  constexpr size_t kMost = 1000;  // bytes
  std::string line;
  for (const char c : text.substr(0, kMost)) {
    if (c == '\n') {
      line += " | ";
    } else {
      line += c;
    }
  }
  if (text.size() > kMost) line += " ...";
  return Harmless(line);
}

std::string ShellWord(const std::string& word) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("_-./,:=@%+").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

}  // namespace crema
