// Running texts, as people write them, as words.
#ifndef CREMA_DATA_FILES_TEXT_WORDS_H_
#define CREMA_DATA_FILES_TEXT_WORDS_H_

#include <string>
#include <string_view>
#include <vector>

namespace crema {

// The words of a text in UTF-8, in their order: what blanks and marks separate, in lower case and in Unicode's composed
// form (NFC). Each mark, such as "!", is a word of its own, and so is each Chinese or Japanese character. An apostrophe
// between letters, and a point or comma between digits, belong to the word.
std::vector<std::string> WordsOf(std::string_view text);

}  // namespace crema

#endif  // CREMA_DATA_FILES_TEXT_WORDS_H_
