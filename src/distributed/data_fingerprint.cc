#include "distributed/data_fingerprint.h"

#include <algorithm>
#include <filesystem>

#include "data/image_list.h"
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

uint64_t FingerprintOf(const ImageList& list) {
  std::string text;
  for (const ImageList::Entry& entry : list.entries) text += entry.path + " " + std::to_string(entry.label) + "\n";
  return DigestOf(std::as_bytes(std::span(text)));
}

}  // namespace

std::string DataSourceOf(const LayerParameter& layer) {
  if (layer.type() == "Data") return layer.data_param().source();
  if (layer.type() == "ImageData") return layer.image_data_param().source();
  return {};
}

void ReadDataFrom(const std::string& path, NetParameter* net) {
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(path, ignored);
  for (LayerParameter& layer : *net->mutable_layer()) {
    if (layer.type() == "Data") {
      layer.mutable_data_param()->set_source(path);
    } else if (layer.type() == "ImageData" && folder) {
      layer.mutable_image_data_param()->set_root_folder(path + "/");
    } else if (layer.type() == "ImageData") {
      layer.mutable_image_data_param()->set_source(path);
    }
  }
}

std::vector<DataFingerprint> FingerprintData(const NetParameter& net, const std::vector<std::string>& folders) {
  std::vector<DataFingerprint> all;
  for (const LayerParameter& layer : net.layer()) {
    const std::string source = DataSourceOf(layer);
    if (source.empty()) continue;
    const std::string path = FindFile(source, folders);
    const bool list = layer.type() == "ImageData";
    all.push_back(
        {layer.name(), path, list ? FingerprintOf(ReadImageList(path, "")) : FingerprintOf(*OpenRecordSource(path))});
  }
  return all;
}

}  // namespace crema
