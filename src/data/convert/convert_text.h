// Texts to databases for recurrent nets.
#ifndef CREMA_DATA_CONVERT_CONVERT_TEXT_H_
#define CREMA_DATA_CONVERT_CONVERT_TEXT_H_

#include <cstdint>
#include <string>

#include "base/progress_line.h"
#include "data/databases/dataset_writer.h"
#include "data/files/vocabulary.h"

namespace crema {

struct TextConversion {
  std::string file;  // UTF-8, plain or .gz
  TextUnit unit = TextUnit::kCharacter;
  int64_t streams = 1;
  std::string vocabulary;         // file; written where it is absent, else read
  int64_t most_frequent = 10000;  // words in a new vocabulary
};

struct TextConverted {
  int64_t units = 0, vocabulary = 0;
  int64_t unknown = 0;  // units that the vocabulary lacks
};

// Each part is a stretch of the text, in the order of the split, cut into `streams` pieces of equal length. Record t,
// key 00000000 + t, holds step t of all of them: 3 x streams x 1, which are for each stream whether it goes on (0 at
// its first step, then 1), the unit, and the unit that follows. Batches of T records, Slice along axis 1 and Reshape
// give T x N arrays for recurrent layers, and each batch goes on where the one before ended. Bytes where the vocabulary
// has at most 256 units, else floats. Throws UserError where a unit is not in the vocabulary and that has no <unk>, or
// the text is too short; then nothing is written.
TextConverted ConvertText(const TextConversion& how, const DatasetTarget& target, ProgressLine* progress);

}  // namespace crema

#endif  // CREMA_DATA_CONVERT_CONVERT_TEXT_H_
