#include "data/convert/text_features.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/number_text.h"
#include "crema/error.h"
#include "data/files/text_words.h"

namespace crema {

TextFeatures::TextFeatures(TextFeaturesForm form) : form_(std::move(form)) {
  if (!std::filesystem::exists(form_.vocabulary)) return;
  vocabulary_ = Vocabulary::Read(form_.vocabulary, TextUnit::kWord);
  if ((*vocabulary_)[0] != kPadding || vocabulary_->Find(kUnknownWord) != 1) {
    throw UserError({form_.vocabulary, 1, 0}, std::string("the vocabulary does not begin with ") + kPadding + " and " +
                                                  kUnknownWord +
                                                  ", as those of texts with classes do; give the name "
                                                  "of a new file, or that of one that convert_csv made");
  }
}

void TextFeatures::Count(const std::string& text) {
  const std::vector<std::string> words = WordsOf(text);
  ++texts_;
  words_ += static_cast<int64_t>(words.size());
  empty_ += words.empty();
  cut_ += words.size() > form_.steps;
  longest_ = std::max(longest_, words.size());
  for (const std::string& word : words) ++counts_[word];
}

void TextFeatures::EndCounting() {
  if (!vocabulary_) {
    vocabulary_ = Vocabulary::OfCounts(counts_, static_cast<size_t>(form_.most_frequent));
    new_vocabulary_.emplace(form_.vocabulary, *vocabulary_);
  }
  const int64_t unknown = vocabulary_->Find(kUnknownWord);
  for (const auto& [word, count] : counts_) unknown_ += vocabulary_->Find(word) == unknown ? count : 0;
  counts_.clear();
}

std::vector<float> TextFeatures::NumbersOf(const std::string& text) const {
  const std::vector<std::string> words = WordsOf(text);
  std::vector<float> numbers(form_.steps);
  const size_t read = std::min(words.size(), form_.steps);
  for (size_t i = 0; i < read; ++i) {
    numbers[form_.steps - read + i] = static_cast<float>(vocabulary_->Find(words[words.size() - read + i]));
  }
  return numbers;
}

void TextFeatures::Commit(DatasetWriter* writer) {
  new_vocabulary_ ? new_vocabulary_->CommitWith(writer) : writer->Commit();
}

std::string TextFeatures::Summary() const {
  std::string text = form_.vocabulary + ": " + FormatCount(static_cast<int64_t>(vocabulary_->size())) +
                     " numbers (input_dim); " + FormatCount(unknown_) + " of " + FormatCount(words_) +
                     " words are none of them and become " + kUnknownWord;
  if (cut_ > 0) {
    text += "\n" + FormatCount(cut_) + " of " + FormatCount(texts_) + " texts have more than " +
            std::to_string(form_.steps) + " words, of which the last ones are read; the longest has " +
            FormatCount(static_cast<int64_t>(longest_));
  }
  if (empty_ > 0) text += "\nwarning: " + FormatCount(empty_) + " of " + FormatCount(texts_) + " texts have no words";
  if (!new_vocabulary_ && 2 * unknown_ > words_) {
    text += "\nwarning: more than half of the words are not in the vocabulary; was it made of another kind of texts?";
  }
  return text + "\n";
}

}  // namespace crema
