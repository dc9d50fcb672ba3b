// Reads the whole of a text file, or says what is wrong with it; messages as text.
#ifndef CREMA_SCHEMA_TEXT_FILE_H_
#define CREMA_SCHEMA_TEXT_FILE_H_

#include <google/protobuf/message.h>

#include <string>

namespace crema {

// Throws UserError for an absent file, a folder or a device, and for a pipe that gives more than 1 GB, EnvironmentError
// for what cannot be read. kind: what was expected there, for the message.
std::string ReadTextFile(const std::string& path, const std::string& kind = "prototxt");

// Throws UserError where `text` is empty or binary. Returns it without a UTF-8 byte order mark.
// what: "net" or "solver", for the message.
std::string CleanText(const std::string& text, const std::string& name, const std::string& what);

// The message as a prototxt has it: a line for each field.
std::string TextOf(const google::protobuf::Message& message);

// The same in one line.
std::string LineOf(const google::protobuf::Message& message);

}  // namespace crema

#endif  // CREMA_SCHEMA_TEXT_FILE_H_
