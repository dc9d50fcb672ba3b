#include "schema/blob_reader.h"

#include <bit>
#include <limits>

#include "crema/error.h"
#include "schema/file_error.h"

namespace crema {

namespace {

// Field numbers of BlobProto and BlobShape.
constexpr uint32_t kNum = 1, kWidth = 4, kData = 5, kShape = 7, kDoubleData = 8, kDim = 1;
// NVIDIA's Caffe keeps the values here, as half or single floats, and leaves `data` empty.
constexpr uint32_t kRawData = 12;

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

std::string ShapeText(const Shape& shape) {
  std::string text;
  for (int64_t extent : shape.dims()) text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text.empty() ? "scalar" : text;
}

}  // namespace

LayerWeights::Blob ReadBlob(WireReader* reader, uint64_t end) {
  LayerWeights::Blob blob;
  std::vector<double> doubles;
  std::vector<int64_t> dims, legacy(4, 0);
  bool has_shape = false, has_raw = false;
  WireTag tag;
  while (reader->NextTag(end, &tag)) {
    if (tag.field >= kNum && tag.field <= kWidth && tag.type == WireType::kVarint) {
      legacy[tag.field - kNum] = static_cast<int32_t>(reader->Varint(end));
      blob.legacy_shape = true;
    } else if (tag.field == kData && tag.type == WireType::kBytes) {
      ReadPacked(reader, end, &blob.data);
    } else if (tag.field == kData && tag.type == WireType::kFixed32) {
      blob.data.push_back(std::bit_cast<float>(reader->Fixed32(end)));
    } else if (tag.field == kShape && tag.type == WireType::kBytes) {
      has_shape = true;
      ReadDims(reader, reader->Length(end), &dims);
    } else if (tag.field == kDoubleData && tag.type == WireType::kBytes) {
      ReadPacked(reader, end, &doubles);
    } else if (tag.field == kDoubleData && tag.type == WireType::kFixed64) {
      doubles.push_back(std::bit_cast<double>(reader->Fixed64(end)));
    } else {
      has_raw = has_raw || tag.field == kRawData;
      reader->Skip(tag, end);
    }
  }
  if (!doubles.empty()) blob.data.assign(doubles.begin(), doubles.end());
  blob.shape = CheckedShape(blob.legacy_shape ? legacy : dims);
  const uint64_t expected = Elements(blob.shape);
  if (blob.data.size() != expected) {
    std::string message = "holds " + std::to_string(blob.data.size()) + " values, but ";
    message += has_shape || blob.legacy_shape
                   ? "its shape " + ShapeText(blob.shape) + " needs " + std::to_string(expected)
                   : "has no shape";
    if (blob.data.empty() && has_raw) {
      message +=
          "; its values are in the raw form of NVIDIA's Caffe: save the model with store_blobs_in_old_format: true";
    }
    throw BlobError(message);
  }
  return blob;
}

LayerWeights::Blob ReadBlobFile(const std::string& path) {
  CheckReadableFile(path, ".binaryproto");
  WireReader reader(path);
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
