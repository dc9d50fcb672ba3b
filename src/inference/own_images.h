// The images that a net for training names itself.
#ifndef CREMA_INFERENCE_OWN_IMAGES_H_
#define CREMA_INFERENCE_OWN_IMAGES_H_

#include <memory>
#include <string>
#include <vector>

#include "data/files/image_list.h"
#include "inference/image_items.h"
#include "inference/scoring_net.h"

namespace crema {

// scoring.list. As its layer does, it looks for images without a root in the working directory, or else in the net's
// folder. Throws as ReadImageList.
ImageList ReadOwnList(const ScoringNet& scoring);

// The files that the list of such a layer names, images and label images; none of other types than ImageData,
// DenseImageData, ImageSegData and ImageLabelmapData. `folder`: of the net. Throws as the list's reader.
std::vector<std::string> FilesOfList(const LayerParameter& layer, const std::string& folder);

// Makes data layers read their records in the order of their files, all of them: without shuffle and rand_skip.
void ReadInOrder(NetParameter* net);

// Those of scoring.database or scoring.list; null where neither exists.
std::shared_ptr<const ImageItems> OwnImages(const ScoringNet& scoring);

}  // namespace crema

#endif  // CREMA_INFERENCE_OWN_IMAGES_H_
