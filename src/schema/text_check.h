// Finds every mistake of a prototxt in one walk over its tokens, in the words of the file instead of protobuf's.
#ifndef CREMA_SCHEMA_TEXT_CHECK_H_
#define CREMA_SCHEMA_TEXT_CHECK_H_

#include <google/protobuf/descriptor.h>

#include <string>
#include <string_view>
#include <vector>

#include "crema/error.h"

namespace crema {

// The mistakes of `text` read as a message of type `root`, sorted by line, each once; at most 20 and then a note that
// there are more. Empty exactly where protobuf's own parser accepts the text and every number fits its field.
std::vector<Diagnostic> CheckText(std::string_view text, const std::string& file,
                                  const google::protobuf::Descriptor* root);

}  // namespace crema

#endif  // CREMA_SCHEMA_TEXT_CHECK_H_
