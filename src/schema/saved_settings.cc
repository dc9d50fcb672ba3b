#include "schema/saved_settings.h"

#include "base/hdf5.h"
#include "crema/error.h"
#include "crema/net.pb.h"
#include "schema/wire_reader.h"

namespace crema {

namespace {

// Of SegNet's BN only: one that normalises says nothing of bn_mode, mostly.
bool Normalizes(const BNParameter& param) {
  return (param.has_scale_filler() || param.has_shift_filler() || param.has_bn_mode()) &&
         param.bn_mode() == BNParameter::LEARN;
}

}  // namespace

std::vector<std::string> SegNetLayersThatNormalize(const std::string& path) {
  std::vector<std::string> names;
  if (BeginsAsHdf5(path)) return names;
  WireReader wire(path, ".caffemodel");
  try {
    WireTag tag;
    while (wire.NextTag(wire.size(), &tag)) {
      if (tag.field != NetParameter::kLayerFieldNumber || tag.type != WireType::kBytes) {
        wire.Skip(tag, wire.size());
        continue;
      }
      const uint64_t end = wire.Length(wire.size());
      std::string name, settings;
      while (wire.NextTag(end, &tag)) {
        const bool is_name = tag.field == LayerParameter::kNameFieldNumber;
        if (tag.type != WireType::kBytes || (!is_name && tag.field != LayerParameter::kBnParamFieldNumber)) {
          wire.Skip(tag, end);
          continue;
        }
        std::string& text = is_name ? name : settings;
        const uint64_t text_end = wire.Length(end);
        text.resize(text_end - wire.position());
        wire.Bytes(text.data(), text.size(), text_end);
      }
      BNParameter param;
      if (!settings.empty() && param.ParseFromString(settings) && Normalizes(param)) names.push_back(name);
    }
  } catch (const WireError& error) {
    throw UserError({path}, "is damaged at byte " + std::to_string(error.position) + ": " + error.what());
  }
  return names;
}

}  // namespace crema
