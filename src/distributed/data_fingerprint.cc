#include "distributed/data_fingerprint.h"

#include <algorithm>

#include "data/record_source.h"
#include "distributed/digest.h"
#include "solver/nets.h"

namespace crema {

namespace {

constexpr uint64_t kRecords = 64;

uint64_t FingerprintOf(const RecordSource& source) {
  const uint64_t count = source.count(), looked_at = std::min(count, kRecords);
  std::vector<uint64_t> digests = {count};
  for (uint64_t i = 0; i < looked_at; ++i) {
    const uint64_t record = looked_at == 1 ? 0 : i * (count - 1) / (looked_at - 1);
    digests.push_back(DigestOf(source.Read(record)));
  }
  return DigestOf(std::as_bytes(std::span(digests)));
}

}  // namespace

std::vector<DataFingerprint> FingerprintData(const NetParameter& net, const std::vector<std::string>& folders) {
  std::vector<DataFingerprint> all;
  for (const LayerParameter& layer : net.layer()) {
    if (layer.type() != "Data") continue;
    const std::string path = FindFile(layer.data_param().source(), folders);
    all.push_back({layer.name(), path, FingerprintOf(*OpenRecordSource(path))});
  }
  return all;
}

}  // namespace crema
