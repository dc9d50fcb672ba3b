// Names of files in a prototxt, where a backslash of Windows may have become another character.
#ifndef CREMA_SCHEMA_TEXT_PATHS_H_
#define CREMA_SCHEMA_TEXT_PATHS_H_

#include <google/protobuf/descriptor.h>

#include <string>

#include "schema/text_lexer.h"

namespace crema {

// Whether a field holds the name of a file or a folder, or a part of one.
bool IsPath(const google::protobuf::FieldDescriptor* field);

// What is wrong with `token`, a text in quotes that is the value of a path: control characters, such as the tab that
// "\t" is. Empty where there is none. `column` becomes that of the first.
std::string CheckPath(const google::protobuf::FieldDescriptor* field, const Token& token, int* column);

}  // namespace crema

#endif  // CREMA_SCHEMA_TEXT_PATHS_H_
