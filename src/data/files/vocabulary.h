// The units of texts, characters or words, and their numbers.
#ifndef CREMA_DATA_FILES_VOCABULARY_H_
#define CREMA_DATA_FILES_VOCABULARY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace crema {

enum class TextUnit { kCharacter, kWord };

// Stands for words that the vocabulary lacks, and for the end of a line among words.
inline constexpr char kUnknownWord[] = "<unk>", kLineEnd[] = "<eos>";
// Stands before texts that are shorter than what is read of each; then it is the first of a vocabulary.
inline constexpr char kPadding[] = "<pad>";

// Calls visit(unit, line, column), both from 1, for each unit in order. Characters are those of UTF-8, line ends among
// them; words are what blanks separate, and kLineEnd at the end of each line. Throws UserError where the text is no
// UTF-8; `path` is its file.
void VisitUnits(const std::string& text, TextUnit unit, const std::string& path,
                const std::function<void(std::string_view unit, int line, int column)>& visit);

class Vocabulary {
 public:
  // Of all units of the text: characters in the order of their bytes, or words, the most frequent first, of which only
  // `most` are kept where there are more, kUnknownWord among them.
  static Vocabulary Of(const std::string& text, TextUnit unit, size_t most, const std::string& path);
  // Of words and how often they occur: kPadding, kUnknownWord, then the most frequent ones, `most` >= 3 in all.
  static Vocabulary OfCounts(const std::unordered_map<std::string, int64_t>& counts, size_t most);
  // Of a file with what Text makes: one unit per line, in the order of their numbers; \n, \r, \t, \s (a blank) and
  // \\ stand for themselves. Throws UserError where it is none, or holds what is no such unit of a text.
  static Vocabulary Read(const std::string& file, TextUnit unit);
  // As a file has it.
  std::string Text() const;

  size_t size() const { return units_.size(); }
  // Whether a byte holds each number.
  bool fits_bytes() const { return size() <= 256; }
  // number: below size().
  const std::string& operator[](int64_t number) const { return units_[static_cast<size_t>(number)]; }
  // The number of a unit; that of kUnknownWord, or -1 without one, where it is absent.
  int64_t Find(std::string_view unit) const;

 private:
  void Number();

  std::vector<std::string> units_;
  std::unordered_map<std::string, int64_t> numbers_;
  int64_t unknown_ = -1;
};

}  // namespace crema

#endif  // CREMA_DATA_FILES_VOCABULARY_H_
