#include "data/files/text_words.h"

#include <utf8proc.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <utility>

#include "base/check.h"

namespace crema {

namespace {

enum class Kind { kBlank, kMark, kCombining, kDigit, kLetter };

// Kana and ideographs, which are written without blanks.
bool StandsAlone(utf8proc_int32_t c) {
  return (c >= 0x3005 && c <= 0x3007) || (c >= 0x3040 && c <= 0x30FF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0xF900 && c <= 0xFAFF) || (c >= 0xFF66 && c <= 0xFF9F) ||
         (c >= 0x20000 && c <= 0x323AF);
}

Kind KindOf(utf8proc_int32_t c) {
  if (StandsAlone(c)) return Kind::kMark;
  switch (utf8proc_category_string(c)[0]) {  // "Lu", "Nd", ...
    case 'L':
      return Kind::kLetter;
    case 'M':
      return Kind::kCombining;
    case 'N':
      return Kind::kDigit;
    case 'P':
    case 'S':
      return Kind::kMark;
    default:  // separators, control characters and what is not assigned
      return Kind::kBlank;
  }
}

struct Character {
  utf8proc_int32_t code = 0;
  Kind kind = Kind::kBlank;
};

// In lower case and composed, so that an accent is the same however it was typed, and a blank behind the end.
std::vector<Character> CharactersOf(std::string_view text) {
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t bytes =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &mapped, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  CREMA_CHECK(bytes >= 0) << utf8proc_errmsg(bytes);
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(mapped, &std::free);
  std::vector<Character> characters;
  utf8proc_int32_t code = 0;
  for (utf8proc_ssize_t at = 0; at < bytes;) {
    at += utf8proc_iterate(mapped + at, bytes - at, &code);
    characters.push_back({utf8proc_tolower(code), KindOf(code)});
  }
  characters.emplace_back();
  return characters;
}

// "don't", "3.5", "1,000".
bool JoinsNeighbours(const std::vector<Character>& characters, size_t i) {
  if (i == 0) return false;
  const Kind before = characters[i - 1].kind, behind = characters[i + 1].kind;
  const utf8proc_int32_t code = characters[i].code;
  const bool apostrophe = code == '\'' || code == 0x2019, point = code == '.' || code == ',';
  return (apostrophe && before == Kind::kLetter && behind == Kind::kLetter) ||
         (point && before == Kind::kDigit && behind == Kind::kDigit);
}

void Append(utf8proc_int32_t code, std::string* word) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t count = utf8proc_encode_char(code, bytes);
  word->append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(count));
}

}  // namespace

std::vector<std::string> WordsOf(std::string_view text) {
  const std::vector<Character> characters = CharactersOf(text);
  std::vector<std::string> words;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) words.push_back(std::exchange(word, {}));
  };
  for (size_t i = 0; i < characters.size(); ++i) {
    const Character& character = characters[i];
    if (character.kind == Kind::kBlank) {
      end_word();
    } else if (character.kind == Kind::kMark && !JoinsNeighbours(characters, i)) {
      end_word();
      Append(character.code, &word);
      end_word();
    } else if (character.kind != Kind::kCombining || !word.empty()) {  // behind a mark it tells how that is drawn
      Append(character.code, &word);
    }
  }
  return words;
}

}  // namespace crema
