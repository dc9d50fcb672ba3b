// Patterns in texts, in the syntax of std::regex: every source that used that itself would take two seconds longer to
// compile.
#ifndef CREMA_TESTS_TOOLS_PATTERNS_H_
#define CREMA_TESTS_TOOLS_PATTERNS_H_

#include <string>
#include <vector>

namespace crema::testing_tools {

// Whether a part of the text fits.
bool Matches(const std::string& text, const std::string& pattern);
// Of every part that fits, what this pair of brackets holds; 0: the whole part.
std::vector<std::string> FindAll(const std::string& text, const std::string& pattern, int group = 1);
// With every part that fits replaced; $1 is what the first pair of brackets holds.
std::string Replaced(const std::string& text, const std::string& pattern, const std::string& by);

}  // namespace crema::testing_tools

#endif  // CREMA_TESTS_TOOLS_PATTERNS_H_
