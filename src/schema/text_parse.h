// Prototxt to message, with the place of every field.
#ifndef CREMA_SCHEMA_TEXT_PARSE_H_
#define CREMA_SCHEMA_TEXT_PARSE_H_

#include <google/protobuf/message.h>

#include <memory>
#include <string>

#include "schema/text_source.h"

namespace crema {

// Fills `message` from `text`. Throws UserError holding every mistake found.
std::shared_ptr<TextSource> ParseText(const std::string& text, const std::string& file,
                                      google::protobuf::Message* message);

}  // namespace crema

#endif  // CREMA_SCHEMA_TEXT_PARSE_H_
