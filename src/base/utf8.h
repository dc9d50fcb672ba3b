// UTF-8 (RFC 3629) in names that users chose.
#ifndef CREMA_BASE_UTF8_H_
#define CREMA_BASE_UTF8_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace crema {

// Removes the byte order mark that some editors put before the text of a file, of which `text` is at least the first
// line. Throws UserError where it is that of UTF-16.
void DropByteOrderMark(const std::string& file, std::string* text);

// Bytes of the sequence at the start of `text`, which is not empty; 0 if it is none.
size_t Utf8SequenceLength(std::string_view text);

// Whether all of it is such sequences.
bool IsUtf8(std::string_view text);

// Characters, each byte that belongs to none counting as one.
size_t Utf8Characters(std::string_view text);

// At most `most` >= 2 characters: the beginning of a longer text, and "~".
std::string Utf8Shortened(std::string_view text, size_t most);

}  // namespace crema

#endif  // CREMA_BASE_UTF8_H_
