#include "darknet/weights_plan.h"

#include <algorithm>

#include "base/number_text.h"
#include "crema/error.h"
#include "schema/blob_numbers.h"
#include "schema/blob_shape.h"

namespace crema::darknet {

namespace {

constexpr int64_t kMostBytes = int64_t{2000} << 20;  // protobuf's files end at 2 GB

// What has `rows` of `columns` gets columns as rows.
void Transpose(int64_t rows, int64_t columns, float* values) {
  const std::vector<float> old(values, values + rows * columns);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) values[column * rows + row] = old[row * columns + column];
  }
}

// Exchanges the first and the third of every three blocks.
void SwapChannels(int64_t block, int64_t count, float* values) {
  for (int64_t at = 0; at + 3 * block <= count; at += 3 * block) {
    std::swap_ranges(values + at, values + at + block, values + at + 2 * block);
  }
}

std::string Bytes(int64_t count) { return FormatCount(count) + " bytes"; }

}  // namespace

int WeightsPlan::AddLayer(const std::string& name, const std::string& type, const std::vector<Shape>& blobs) {
  LayerParameter& layer = layers_.emplace_back();
  layer.set_name(name);
  layer.set_type(type);
  for (const Shape& shape : blobs) AddBlob(shape, &layer);
  return static_cast<int>(layers_.size()) - 1;
}

void WeightsPlan::SetBlob(int layer, int blob, const std::vector<float>& values) {
  BlobOf(layer, blob)->mutable_data()->Add(values.begin(), values.end());
}

void WeightsPlan::BeginSection(const std::string& name, const std::string& what) {
  sections_.push_back({name, what, {}});
}

void WeightsPlan::Take(int layer, int blob, const NumberOrder& order) {
  sections_.back().blobs.push_back({layer, blob, order});
  sections_.back().bytes += ShapeOf(*BlobOf(layer, blob)).count() * static_cast<int64_t>(sizeof(float));
}

size_t WeightsPlan::CountSections(const WeightsFile& file) const {
  int64_t left = file.left(), whole = file.header();
  for (const Section& section : sections_) whole += section.bytes;
  const auto fail = [&](const std::string& message) {
    throw UserError({file.path(), 0, 0}, message + "; the weights of this .cfg have " + Bytes(whole) +
                                             " in all, the file has " + Bytes(file.size()));
  };
  if (left == 0 && !sections_.empty()) {
    fail("has a header and no weights (crema import --data trains from scratch without a file)");
  }
  if (left > kMostBytes) fail("holds more than the 2 GB that a .caffemodel can");
  size_t count = 0;
  for (; count < sections_.size() && left > 0; ++count) {
    const Section& section = sections_[count];
    if (left < section.bytes) {
      fail("breaks off in layer \"" + section.name + "\" (" + section.what + "), of which " + Bytes(left) + " of " +
           FormatCount(section.bytes) + " are there: it was cut short, or belongs to another .cfg");
    }
    left -= section.bytes;
  }
  if (left > 0) fail("goes on for " + Bytes(left) + " behind the last layer: it belongs to another .cfg");
  return count;
}

void WeightsPlan::ReadSection(const Section& section, WeightsFile* file) {
  for (const Blob& blob : section.blobs) {
    BlobProto* proto = BlobOf(blob.layer, blob.number);
    const int64_t count = ShapeOf(*proto).count();
    float* values = MakeNumbers(proto->mutable_data(), count);
    file->Read(count, values);
    if (blob.order.transposable && file->transposed()) {
      const int64_t outputs = proto->shape().dim(0);
      Transpose(count / outputs, outputs, values);
    }
    if (blob.order.per_channel > 0) SwapChannels(blob.order.per_channel, count, values);
  }
}

void WeightsPlan::Read(WeightsFile* file, ImportedNet* imported) {
  const size_t count = CountSections(*file);
  for (size_t i = 0; i < count; ++i) ReadSection(sections_[i], file);
  if (count < sections_.size()) {
    const Section& next = sections_[count];
    AddNote({file->path(), 0, 0},
            "ends behind layer \"" + sections_[count - 1].name + "\": from \"" + next.name + "\" (" + next.what +
                ") on layers have no weights, and begin anew where the net is trained",
            imported);
  }
}

void WeightsPlan::MoveTo(ImportedNet* imported) {
  for (LayerParameter& layer : layers_) {
    const auto& blobs = layer.blobs();
    if (std::any_of(blobs.begin(), blobs.end(), [](const BlobProto& blob) { return blob.data_size() == 0; })) continue;
    for (const BlobProto& blob : blobs) imported->parameters += blob.data_size();
    *imported->weights.add_layer() = std::move(layer);
  }
}

}  // namespace crema::darknet
