// Several views of an image, of which a net's results are averaged.
#ifndef CREMA_INFERENCE_IMAGE_VIEWS_H_
#define CREMA_INFERENCE_IMAGE_VIEWS_H_

#include <cstdint>

#include "data/databases/image_size.h"

namespace crema {

// Views are crops of one size. 1: the centre; 2: that and its mirror image; 5: the centre and the four corners; 10:
// those and their mirror images (A. Krizhevsky et al., "ImageNet classification with deep convolutional neural
// networks", 2012, section 4.1; what pycaffe's Classifier calls oversample).
bool IsViewCount(int views);

// Cuts them out of an image at least as large, the centre first: `out` is views x view.count().
void CutViews(const float* image, const ImageSize& size, const ImageSize& view, int views, float* out);

// The means of `views` rows of `count` numbers each.
void AverageViews(const float* rows, int views, int64_t count, float* out);

}  // namespace crema

#endif  // CREMA_INFERENCE_IMAGE_VIEWS_H_
