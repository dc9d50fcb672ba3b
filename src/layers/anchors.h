// What layers share that know anchors: their fields and their bottoms.
#ifndef CREMA_LAYERS_ANCHORS_H_
#define CREMA_LAYERS_ANCHORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "crema/layer.h"
#include "ops/detection/anchors.h"

namespace crema {

struct AnchorFields {
  std::string block;  // name of the message that holds them, for errors
  uint32_t feat_stride, base_size;
  std::vector<float> ratios, scales;  // empty: those of the paper
};

// Of a message with the fields of ProposalParameter.
template <typename Param>
AnchorFields AnchorFieldsOf(std::string block, const Param& param) {
  return {std::move(block),
          param.feat_stride(),
          param.base_size(),
          {param.ratio().begin(), param.ratio().end()},
          {param.scale().begin(), param.scale().end()}};
}

// The anchors of a feature map of those extents. Reports what cannot be.
Anchors MakeAnchors(const LayerSetup& setup, const AnchorFields& fields, int64_t height, int64_t width);

// Reports bottom i, an im_info, unless it is of that many images.
void CheckImageInfo(const LayerSetup& setup, int i, int64_t images);

}  // namespace crema

#endif  // CREMA_LAYERS_ANCHORS_H_
