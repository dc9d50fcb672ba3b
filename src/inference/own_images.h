// The images that a net for training names itself.
#ifndef CREMA_INFERENCE_OWN_IMAGES_H_
#define CREMA_INFERENCE_OWN_IMAGES_H_

#include <memory>

#include "data/image_list.h"
#include "inference/image_items.h"
#include "inference/scoring_net.h"

namespace crema {

// scoring.list. As its layer does, it looks for images without a root in the working directory, or else in the net's
// folder. Throws as ReadImageList.
ImageList ReadOwnList(const ScoringNet& scoring);

// Those of scoring.database or scoring.list; null where neither exists.
std::shared_ptr<const ImageItems> OwnImages(const ScoringNet& scoring);

}  // namespace crema

#endif  // CREMA_INFERENCE_OWN_IMAGES_H_
