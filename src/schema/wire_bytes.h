// Messages in protobuf's binary encoding, which ends at 2 GB: more is a UserError.
#ifndef CREMA_SCHEMA_WIRE_BYTES_H_
#define CREMA_SCHEMA_WIRE_BYTES_H_

#include <google/protobuf/message_lite.h>

#include <string>

namespace crema {

std::string WireBytes(const google::protobuf::MessageLite& message);

// Behind what `bytes` holds.
void AppendWireBytes(const google::protobuf::MessageLite& message, std::string* bytes);

}  // namespace crema

#endif  // CREMA_SCHEMA_WIRE_BYTES_H_
