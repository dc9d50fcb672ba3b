#include <algorithm>
#include <string_view>
#include <utility>

#include "base/hdf5.h"
#include "crema/files.h"
#include "schema/blob_reader.h"
#include "schema/upgrade.h"
#include "schema/weights_hdf5.h"
#include "schema/weights_kind.h"
#include "schema/wire_reader.h"

namespace crema {

namespace {

// Where name, type, blobs and a nested V0 layer are in the three generations of layer messages; 0: not there.
struct Numbers {
  uint32_t name, type, blobs, nested;
  enum { kText, kEnum, kV0Text } type_form;
};
constexpr Numbers kLayer = {1, 2, 7, 0, Numbers::kText};
constexpr Numbers kV1Layer = {4, 5, 6, 1, Numbers::kEnum};
constexpr Numbers kV0Layer = {1, 2, 50, 0, Numbers::kV0Text};
// Fields of NetParameter.
constexpr uint32_t kNetLayers = 2, kNetLayer = 100;

// No layer has a longer name; a damaged length must not make one.
constexpr uint64_t kMostNameBytes = 1 << 20;

// Brings the blobs of a BatchNorm to the form that nets have them in. Forks of Caffe keep vectors with axes of 1 around
// them. NVIDIA's has five blobs where the layer scales by itself, of which the first versions wrote scale and bias
// before mean and variance; the one number, the weight of the running sums here, is read by no version, and some left
// it 0.
void NormalizeBatchNorm(std::vector<LayerWeights::Blob>* blobs) {
  constexpr size_t kVariance = 1, kWeight = 2, kScaling = 5;
  for (LayerWeights::Blob& blob : *blobs) {
    blob.shape = Shape{static_cast<int64_t>(blob.data.size())};
    blob.legacy_shape = false;
  }
  if (blobs->size() != kScaling) return;
  const auto is_number = [&](size_t i) { return (*blobs)[i].data.size() == 1; };
  if (is_number(kScaling - 1) && !is_number(kWeight)) std::rotate(blobs->begin(), blobs->begin() + 2, blobs->end());
  const std::vector<float>& variances = (*blobs)[kVariance].data;
  const bool trained = std::any_of(variances.begin(), variances.end(), [](float variance) { return variance != 0; });
  if (is_number(kWeight) && trained) (*blobs)[kWeight].data[0] = 1;
}

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), wire_(path, ".caffemodel") {}
  Reader(std::string_view bytes, std::string name) : path_(std::move(name)), wire_(bytes) {}

  std::vector<LayerWeights> Run() {
    CheckWeightsKind(path_, &wire_);
    std::vector<LayerWeights> result;
    bool any = false;
    try {
      WireTag tag;
      while (wire_.NextTag(wire_.size(), &tag)) {
        if ((tag.field != kNetLayer && tag.field != kNetLayers) || tag.type != WireType::kBytes) {
          wire_.Skip(tag, wire_.size());
          continue;
        }
        any = true;
        layer_ = LayerWeights();
        ++index_;
        inside_ = true;
        ReadLayer(wire_.Length(wire_.size()), tag.field == kNetLayer ? kLayer : kV1Layer);
        inside_ = false;
        if (layer_.type == "BatchNorm") NormalizeBatchNorm(&layer_.blobs);
        if (!layer_.blobs.empty()) result.push_back(std::move(layer_));
      }
    } catch (const WireError& error) {
      throw UserError({path_}, "is damaged at byte " + std::to_string(error.position) + Where() + ": " + error.what() +
                                   "; the file has " + std::to_string(wire_.size()) +
                                   " bytes: was it copied or downloaded in full?");
    }
    if (!any) throw UserError({path_}, "holds no layers; it is not a .caffemodel");
    return result;
  }

 private:
  std::string Called() const {
    return layer_.name.empty() ? "layer number " + std::to_string(index_) : "layer \"" + layer_.name + "\"";
  }
  std::string Where() const { return inside_ ? " in " + Called() : ""; }

  std::string Text(uint64_t layer_end) {
    const uint64_t start = wire_.position();
    const uint64_t end = wire_.Length(layer_end);
    const uint64_t bytes = end - wire_.position();
    if (bytes > kMostNameBytes) throw WireError(start, "a name of " + std::to_string(bytes) + " bytes");
    std::string text(bytes, '\0');
    wire_.Bytes(text.data(), bytes, end);
    return text;
  }

  void ReadLayer(uint64_t end, const Numbers& numbers) {
    WireTag tag;
    while (wire_.NextTag(end, &tag)) {
      const bool bytes = tag.type == WireType::kBytes;
      if (tag.field == numbers.name && bytes) {
        layer_.name = Text(end);
      } else if (tag.field == numbers.type && bytes && numbers.type_form != Numbers::kEnum) {
        layer_.type = Text(end);
        if (numbers.type_form == Numbers::kV0Text) layer_.type = TypeName(TypeOfV0(layer_.type));
      } else if (tag.field == numbers.type && tag.type == WireType::kVarint && numbers.type_form == Numbers::kEnum) {
        const int type = static_cast<int>(wire_.Varint(end));
        layer_.type =
            V1LayerParameter::LayerType_IsValid(type) ? TypeName(static_cast<V1LayerParameter::LayerType>(type)) : "";
      } else if (tag.field == numbers.blobs && bytes) {
        ReadLayerBlob(wire_.Length(end));
      } else if (tag.field == numbers.nested && bytes) {
        ReadLayer(wire_.Length(end), kV0Layer);
      } else {
        wire_.Skip(tag, end);
      }
    }
  }

  void ReadLayerBlob(uint64_t end) {
    try {
      layer_.blobs.push_back(ReadBlob(&wire_, end));
    } catch (const BlobError& error) {
      throw UserError({path_}, Called() + ": blob " + std::to_string(layer_.blobs.size()) + " " + error.what());
    }
  }

  std::string path_;
  WireReader wire_;
  LayerWeights layer_;
  int index_ = 0;
  bool inside_ = false;
};

}  // namespace

std::vector<LayerWeights> ReadWeights(const std::string& path) {
  if (BeginsAsHdf5(path)) return ReadHdf5Weights(path);
  return Reader(path).Run();
}

std::vector<LayerWeights> ParseWeights(std::string_view bytes, const std::string& name) {
  return Reader(bytes, name).Run();
}

}  // namespace crema
