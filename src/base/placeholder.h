// Words that a script was to replace.
#ifndef CREMA_BASE_PLACEHOLDER_H_
#define CREMA_BASE_PLACEHOLDER_H_

#include <string>
#include <string_view>

namespace crema {

// For the end of a message about `text`, where "${NUM_LABELS}" stands in it: what that is, and the remedy; else
// nothing.
std::string PlaceholderNote(std::string_view text);

}  // namespace crema

#endif  // CREMA_BASE_PLACEHOLDER_H_
