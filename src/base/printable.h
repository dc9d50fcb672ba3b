// Bytes of any kind in messages.
#ifndef CREMA_BASE_PRINTABLE_H_
#define CREMA_BASE_PRINTABLE_H_

#include <string>
#include <string_view>

namespace crema {

// "abc\x00": what is not printable ASCII as hexadecimal digits.
std::string Printable(std::string_view bytes);

// Text with names from files, none of which is to move a terminal's cursor: control characters become '?', but line
// ends and tabs.
std::string Harmless(std::string text);

// What another machine says, for one line of a log: harmless, with " | " for line ends, and cut where it is long.
std::string OneLine(std::string_view text);

// A word, such as a path, as a shell takes it in a command that the user is shown: in quotes where it needs them.
std::string ShellWord(const std::string& word);

}  // namespace crema

#endif  // CREMA_BASE_PRINTABLE_H_
