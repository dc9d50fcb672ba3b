#include "data/files/vocabulary.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "crema/error.h"
#include "data/files/text_file.h"

namespace crema {

namespace {

constexpr std::pair<char, char> kEscapes[] = {{'\n', 'n'}, {'\r', 'r'}, {'\t', 't'}, {' ', 's'}, {'\\', '\\'}};

bool Blank(std::string_view character) {
  return character == " " || character == "\t" || character == "\r" || character == "\f" || character == "\v";
}

std::string Escaped(const std::string& unit) {
  std::string text;
  for (const char c : unit) {
    const auto* escape = std::find_if(std::begin(kEscapes), std::end(kEscapes), [&](auto e) { return e.first == c; });
    text += escape == std::end(kEscapes) ? std::string(1, c) : std::string("\\") + escape->second;
  }
  return text;
}

// False where a backslash stands before none of the letters.
bool Unescape(const std::string& line, std::string* unit) {
  unit->clear();
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\\') {
      *unit += line[i];
      continue;
    }
    const char letter = ++i < line.size() ? line[i] : '\0';
    const auto* escape =
        std::find_if(std::begin(kEscapes), std::end(kEscapes), [&](auto e) { return e.second == letter; });
    if (escape == std::end(kEscapes)) return false;
    *unit += escape->first;
  }
  return true;
}

// What keeps an entry of a vocabulary from being found in a text; empty: nothing.
std::string UnitProblem(const std::string& entry, TextUnit unit) {
  if (unit == TextUnit::kCharacter) {
    const bool one = Utf8SequenceLength(entry) == entry.size() || entry == kUnknownWord;
    return one ? "" : "is not one character; if the vocabulary is one of words, set --unit=word";
  }
  const bool blank = entry.find_first_of(" \t\r\f\v\n") != std::string::npos;
  return blank ? "is a blank or holds one, and a word does not; if the vocabulary is one of characters, set --unit=char"
               : "";
}

using Counts = std::unordered_map<std::string, int64_t>;

// In the order of their bytes; `frequent` ones first where that is wanted.
std::vector<std::pair<std::string, int64_t>> Sorted(const Counts& counts, bool frequent) {
  std::vector<std::pair<std::string, int64_t>> sorted(counts.begin(), counts.end());
  std::sort(sorted.begin(), sorted.end(), [frequent](const auto& a, const auto& b) {
    return frequent && a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  return sorted;
}

}  // namespace

void VisitUnits(const std::string& text, TextUnit unit, const std::string& path,
                const std::function<void(std::string_view, int, int)>& visit) {
  const std::string_view all = text;
  int line = 1, column = 1, word_column = 1;
  size_t word = 0;  // where the word begins, at most `at`
  const auto end_word = [&](size_t at) {
    if (at > word) visit(all.substr(word, at - word), line, word_column);
  };
  for (size_t at = 0; at < all.size();) {
    const size_t bytes = Utf8SequenceLength(all.substr(at));
    if (bytes == 0) throw UserError({path, line, column}, "the text is no UTF-8; convert it with iconv -t UTF-8");
    const std::string_view character = all.substr(at, bytes);
    const bool line_end = character == "\n";
    if (unit == TextUnit::kCharacter) {
      visit(character, line, column);
    } else if (line_end || Blank(character)) {
      end_word(at);
      if (line_end) visit(kLineEnd, line, column);
      word = at + bytes;
    } else if (word == at) {
      word_column = column;
    }
    at += bytes;
    line += line_end;
    column = line_end ? 1 : column + 1;
  }
  if (unit == TextUnit::kWord) end_word(all.size());
}

Vocabulary Vocabulary::Of(const std::string& text, TextUnit unit, size_t most, const std::string& path) {
  Counts counts;
  VisitUnits(text, unit, path, [&](std::string_view found, int, int) { ++counts[std::string(found)]; });
  auto sorted = Sorted(counts, unit == TextUnit::kWord);
  Vocabulary vocabulary;
  if (unit == TextUnit::kWord && sorted.size() > most) {
    sorted.resize(most);
    const bool has_unknown = std::any_of(sorted.begin(), sorted.end(), [](auto& e) { return e.first == kUnknownWord; });
    if (!has_unknown) sorted.back().first = kUnknownWord;
  }
  for (auto& [name, count] : sorted) vocabulary.units_.push_back(name);
  vocabulary.Number();
  return vocabulary;
}

Vocabulary Vocabulary::OfCounts(const Counts& counts, size_t most) {
  Vocabulary vocabulary;
  vocabulary.units_ = {kPadding, kUnknownWord};
  for (auto& [word, count] : Sorted(counts, true)) {
    if (vocabulary.size() == most) break;
    vocabulary.units_.push_back(std::move(word));
  }
  vocabulary.Number();
  return vocabulary;
}

Vocabulary Vocabulary::Read(const std::string& file, TextUnit unit) {
  TextFile text(file);
  text.KeepZeros();  // characters of a text may be so
  Vocabulary vocabulary;
  std::string line, entry;
  while (text.ReadLine(&line)) {
    if (line.empty()) {
      throw UserError({file, text.line(), 0}, "the line is empty; expected one character or word per line");
    }
    if (!Unescape(line, &entry)) {
      throw UserError({file, text.line(), 0}, "\"" + line + "\": behind a backslash n, r, t, s or \\ is expected");
    }
    if (const std::string problem = UnitProblem(entry, unit); !problem.empty()) {
      throw UserError({file, text.line(), 0}, "\"" + line + "\" " + problem);
    }
    vocabulary.units_.push_back(entry);
    vocabulary.Number();
    if (vocabulary.numbers_.size() != vocabulary.units_.size()) {
      throw UserError({file, text.line(), 0}, "\"" + line + "\" is given twice");
    }
  }
  if (vocabulary.units_.empty()) throw UserError({file, 0, 0}, "the vocabulary is empty; remove it to make it anew");
  return vocabulary;
}

std::string Vocabulary::Text() const {
  std::string text;
  for (const std::string& unit : units_) text += Escaped(unit) + "\n";
  return text;
}

void Vocabulary::Number() {
  for (size_t i = numbers_.size(); i < units_.size(); ++i) {
    numbers_.emplace(units_[i], static_cast<int64_t>(i));
    if (units_[i] == kUnknownWord) unknown_ = static_cast<int64_t>(i);
  }
}

int64_t Vocabulary::Find(std::string_view unit) const {
  const auto found = numbers_.find(std::string(unit));
  return found == numbers_.end() ? unknown_ : found->second;
}

}  // namespace crema
