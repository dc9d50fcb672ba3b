// The values of one blob of a weights file.
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

}  // namespace crema

#endif  // CREMA_SCHEMA_BLOB_READER_H_
