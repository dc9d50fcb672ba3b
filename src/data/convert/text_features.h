// Texts of a table as what nets read of them: the numbers of their words.
#ifndef CREMA_DATA_CONVERT_TEXT_FEATURES_H_
#define CREMA_DATA_CONVERT_TEXT_FEATURES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "data/convert/new_vocabulary.h"
#include "data/databases/dataset_writer.h"
#include "data/files/vocabulary.h"

namespace crema {

struct TextFeaturesForm {
  std::string vocabulary;         // file; written where it is absent, else read
  size_t steps = 0;               // numbers for each text
  int64_t most_frequent = 10000;  // words in a new vocabulary, at least 3
};

// The words are those of WordsOf. Of longer texts the last `steps` words are read; shorter ones begin with kPadding,
// which is the number 0. All texts are counted first, then they become numbers, each in UTF-8.
class TextFeatures {
 public:
  // Throws UserError where the vocabulary is there and none of such texts.
  explicit TextFeatures(TextFeaturesForm form);

  void Count(const std::string& text);
  // Behind the last one: writes a vocabulary where there is none yet.
  void EndCounting();

  size_t steps() const { return form_.steps; }
  bool fits_bytes() const { return vocabulary_->fits_bytes(); }
  // `steps` of them.
  std::vector<float> NumbersOf(const std::string& text) const;

  // With a new vocabulary's file.
  void Commit(DatasetWriter* writer);
  // What was counted, and warnings of what is seldom meant; a line each.
  std::string Summary() const;

 private:
  TextFeaturesForm form_;
  std::optional<Vocabulary> vocabulary_;
  std::optional<NewVocabulary> new_vocabulary_;
  std::unordered_map<std::string, int64_t> counts_;  // of words
  size_t longest_ = 0;                               // words
  int64_t texts_ = 0, empty_ = 0, cut_ = 0, words_ = 0, unknown_ = 0;
};

}  // namespace crema

#endif  // CREMA_DATA_CONVERT_TEXT_FEATURES_H_
