// What a scalar field of prototxt accepts, in the user's words.
#ifndef CREMA_SCHEMA_TEXT_VALUE_H_
#define CREMA_SCHEMA_TEXT_VALUE_H_

#include <google/protobuf/descriptor.h>

#include <string>
#include <vector>

#include "schema/text_lexer.h"

namespace crema {

// "a whole number of 0 or more", "one of MAX, AVE, STOCHASTIC", "a block { ... }".
std::string Expected(const google::protobuf::FieldDescriptor* field);

// "the text \"20\"", "-1", "the end of the file".
std::string Shown(const Token& token, bool minus = false);

// Empty when the value (after a '-' where `minus`) fits the field, else the complaint about it.
std::string CheckScalar(const google::protobuf::FieldDescriptor* field, const Token& token, bool minus);

// "${NUM_LABELS}" where such tokens start at `at`; else empty.
std::string Placeholder(const std::vector<Token>& tokens, size_t at);

// What to tell about a placeholder that stands where the value of `field` does.
std::string PlaceholderFor(const google::protobuf::FieldDescriptor* field, const std::string& placeholder);

// Whether the number at `at` is the end of one with a decimal comma, "0,01".
bool EndsDecimalComma(const std::vector<Token>& tokens, size_t at);

}  // namespace crema

#endif  // CREMA_SCHEMA_TEXT_VALUE_H_
