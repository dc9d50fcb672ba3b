// Tells copies of a database apart, so that no worker trains on other records than the rest.
#ifndef CREMA_DISTRIBUTED_DATA_FINGERPRINT_H_
#define CREMA_DISTRIBUTED_DATA_FINGERPRINT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "crema/net.pb.h"

namespace crema {

// Of the number of records, and of the bytes of 64 of them, evenly spread, the first and the last among them.
struct DataFingerprint {
  std::string layer;
  std::string path;  // where it was found
  uint64_t value = 0;

  bool operator==(const DataFingerprint&) const = default;
};

// Of every Data layer of the net. Relative paths are looked for in the working directory, then in `folders`. Throws as
// OpenRecordSource does.
std::vector<DataFingerprint> FingerprintData(const NetParameter& net, const std::vector<std::string>& folders);

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_DATA_FINGERPRINT_H_
