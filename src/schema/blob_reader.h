// The values of one blob, of a weights file or of its own.
#ifndef CREMA_SCHEMA_BLOB_READER_H_
#define CREMA_SCHEMA_BLOB_READER_H_

#include <stdexcept>
#include <string>

#include "crema/files.h"
#include "schema/wire_reader.h"

namespace crema {

// The blob is well-formed, but its shape and its values do not belong together.
class BlobError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Reads the BlobProto that ends at `end`. Throws WireError, BlobError.
LayerWeights::Blob ReadBlob(WireReader* reader, uint64_t end);

// A file that is one BlobProto (.binaryproto). Throws UserError where it is absent, damaged or something else,
// EnvironmentError where it cannot be read.
LayerWeights::Blob ReadBlobFile(const std::string& path);

}  // namespace crema

#endif  // CREMA_SCHEMA_BLOB_READER_H_
