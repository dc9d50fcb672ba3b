// Spelling suggestions for names a user wrote.
#ifndef CREMA_BASE_SUGGEST_H_
#define CREMA_BASE_SUGGEST_H_

#include <string>
#include <string_view>
#include <vector>

namespace crema {

// Number of insertions, deletions, substitutions and swaps of neighbours between a and b, ignoring case
// (optimal string alignment distance).
int EditDistance(std::string_view a, std::string_view b);

// "; did you mean \"kernel_size\"?" for the closest candidate, or "" when none is close.
std::string DidYouMean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace crema

#endif  // CREMA_BASE_SUGGEST_H_
