#include "schema/blob_reader.h"

#include <bit>
#include <cstring>
#include <limits>

#include "base/float16.h"
#include "crema/error.h"
#include "crema/net.pb.h"

namespace crema {

namespace {

// Field numbers of BlobProto and BlobShape.
constexpr uint32_t kNum = 1, kWidth = 4, kData = 5, kShape = 7, kDoubleData = 8, kDim = 1;
// NVIDIA's fork keeps the values here, as numbers of that NumberType.Type, and leaves `data` empty.
constexpr uint32_t kRawType = 10, kRawData = 12;
// The first C3D (github.com/facebookarchive/C3D, C3D-v1.0) had volumes of num x channels x length x height x width in
// fields 1 to 5, then values and their gradients. Its width is a number where others have values, which tells it.
constexpr uint32_t kVolumeWidth = 5, kVolumeData = 6;

void ReadDims(WireReader* reader, uint64_t end, std::vector<int64_t>* dims) {
  WireTag tag;
  while (reader->NextTag(end, &tag)) {
    if (tag.field == kDim && tag.type == WireType::kVarint) {
      dims->push_back(static_cast<int64_t>(reader->Varint(end)));
    } else if (tag.field == kDim && tag.type == WireType::kBytes) {
      const uint64_t packed = reader->Length(end);
      while (reader->position() < packed) dims->push_back(static_cast<int64_t>(reader->Varint(packed)));
    } else {
      reader->Skip(tag, end);
    }
  }
}

template <typename Value>
void ReadPacked(WireReader* reader, uint64_t end, std::vector<Value>* values) {
  const uint64_t start = reader->position();
  const uint64_t packed = reader->Length(end);
  const uint64_t bytes = packed - reader->position();
  if (bytes % sizeof(Value) != 0) {
    throw WireError(start, std::to_string(bytes) + " bytes are no whole number of values");
  }
  const size_t before = values->size();
  values->resize(before + bytes / sizeof(Value));
  reader->Bytes(values->data() + before, bytes, packed);
}

template <typename Value>
std::vector<float> Floats(const std::vector<uint8_t>& raw) {
  if (raw.size() % sizeof(Value) != 0) {
    throw BlobError("holds " + std::to_string(raw.size()) + " bytes, which are no whole number of values of " +
                    std::to_string(sizeof(Value)) + " bytes");
  }
  std::vector<float> floats(raw.size() / sizeof(Value));
  for (size_t i = 0; i < floats.size(); ++i) {
    Value value;
    std::memcpy(&value, raw.data() + i * sizeof value, sizeof value);
    floats[i] = static_cast<float>(value);
  }
  return floats;
}

std::vector<float> FromRaw(const std::vector<uint8_t>& raw, uint64_t type) {
  if (type == NumberType::DOUBLE) return Floats<double>(raw);
  if (type == NumberType::FLOAT) return Floats<float>(raw);
  if (type == NumberType::FLOAT16) return Floats<Float16>(raw);
  throw BlobError("has raw values of type " + std::to_string(type) + ", but only 0 (double), 1 (float) and 2 (half) " +
                  "are weights");
}

Shape CheckedShape(const std::vector<int64_t>& dims) {
  if (dims.size() > Shape::kMaxAxes) {
    throw BlobError("has " + std::to_string(dims.size()) + " axes, but at most 32 are possible");
  }
  for (int64_t extent : dims) {
    if (extent < 0) throw BlobError("has a negative extent, " + std::to_string(extent));
  }
  return Shape(dims);
}

// The product of the extents; the largest value there is where it does not fit.
uint64_t Elements(const Shape& shape) {
  uint64_t count = 1;
  for (int64_t extent : shape.dims()) {
    if (extent == 0) return 0;
    if (count > std::numeric_limits<uint64_t>::max() / static_cast<uint64_t>(extent)) {
      count = std::numeric_limits<uint64_t>::max();
    } else {
      count *= static_cast<uint64_t>(extent);
    }
  }
  return count;
}

}  // namespace

LayerWeights::Blob ReadBlob(WireReader* reader, uint64_t end) {
  LayerWeights::Blob blob;
  std::vector<double> doubles;
  std::vector<int64_t> dims, legacy(4, 0);  // of volumes five
  std::vector<uint8_t> raw;
  uint64_t raw_type = NumberType::DOUBLE;
  bool has_shape = false;
  WireTag tag;
  while (reader->NextTag(end, &tag)) {
    if (tag.field >= kNum && tag.field <= kWidth && tag.type == WireType::kVarint) {
      legacy[tag.field - kNum] = static_cast<int32_t>(reader->Varint(end));
      blob.legacy_shape = true;
    } else if (tag.field == kVolumeWidth && tag.type == WireType::kVarint) {
      legacy.resize(kVolumeWidth);
      legacy.back() = static_cast<int32_t>(reader->Varint(end));
      blob.legacy_shape = true;
    } else if (tag.field == kVolumeData && tag.type == WireType::kBytes && legacy.size() == kVolumeWidth) {
      ReadPacked(reader, end, &blob.data);
    } else if (tag.field == kData && tag.type == WireType::kBytes) {
      ReadPacked(reader, end, &blob.data);
    } else if (tag.field == kData && tag.type == WireType::kFixed32) {
      blob.data.push_back(std::bit_cast<float>(reader->Fixed32(end)));
    } else if (tag.field == kShape && tag.type == WireType::kBytes && legacy.size() != kVolumeWidth) {
      has_shape = true;
      ReadDims(reader, reader->Length(end), &dims);
    } else if (tag.field == kDoubleData && tag.type == WireType::kBytes) {
      ReadPacked(reader, end, &doubles);
    } else if (tag.field == kDoubleData && tag.type == WireType::kFixed64) {
      doubles.push_back(std::bit_cast<double>(reader->Fixed64(end)));
    } else if (tag.field == kRawType && tag.type == WireType::kVarint) {
      raw_type = reader->Varint(end);
    } else if (tag.field == kRawData && tag.type == WireType::kBytes) {
      ReadPacked(reader, end, &raw);
    } else {
      reader->Skip(tag, end);
    }
  }
  if (!doubles.empty()) blob.data.assign(doubles.begin(), doubles.end());
  if (!raw.empty()) blob.data = FromRaw(raw, raw_type);
  blob.shape = CheckedShape(blob.legacy_shape ? legacy : dims);
  const uint64_t expected = Elements(blob.shape);
  if (blob.data.size() != expected) {
    std::string message = "holds " + std::to_string(blob.data.size()) + " values, but ";
    message += has_shape || blob.legacy_shape
                   ? "its shape " + blob.shape.ToString() + " needs " + std::to_string(expected)
                   : "has no shape";
    throw BlobError(message);
  }
  return blob;
}

LayerWeights::Blob ReadBlobFile(const std::string& path) {
  WireReader reader(path, ".binaryproto");
  try {
    return ReadBlob(&reader, reader.size());
  } catch (const BlobError& error) {
    throw UserError({path}, std::string(error.what()) + "; a .binaryproto of one blob was expected");
  } catch (const WireError& error) {
    throw UserError(
        {path}, "is no .binaryproto, or is damaged at byte " + std::to_string(error.position) + ": " + error.what());
  }
}

}  // namespace crema
