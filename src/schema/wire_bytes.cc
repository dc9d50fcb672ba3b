#include "schema/wire_bytes.h"

#include "base/byte_size.h"
#include "crema/error.h"

namespace crema {

std::string WireBytes(const google::protobuf::MessageLite& message) {
  std::string bytes;
  AppendWireBytes(message, &bytes);
  return bytes;
}

void AppendWireBytes(const google::protobuf::MessageLite& message, std::string* bytes) {
  if (!message.AppendToString(bytes)) {
    throw UserError("a message of " + FormatBytes(message.ByteSizeLong()) +
                    " was to be written, but protobuf's encoding ends at 2 GB");
  }
}

}  // namespace crema
