// Images made ready for a net in batches, ahead of it.
#ifndef CREMA_INFERENCE_IMAGE_BATCHER_H_
#define CREMA_INFERENCE_IMAGE_BATCHER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/loaders/prefetcher.h"
#include "inference/image_items.h"

namespace crema {

// Rows are images, each with all its views.
struct ImageBatch {
  uint64_t first = 0;                 // image of row 0
  int64_t count = 0;                  // rows that hold images; those behind them are zero
  const float* data = nullptr;        // batch x views x input
  std::vector<ItemLabel> labels;      // one a row
  std::vector<std::string> problems;  // one a row; where it is not empty, the row is zero
};

// Goes once through all images. Used by one thread.
class ImageBatcher {
 public:
  // `threads` decode, at least 1. Throws EnvironmentError where there is not enough memory.
  ImageBatcher(std::shared_ptr<const ImageItems> items, std::shared_ptr<const ImagePreparation> preparation,
               int64_t batch, int threads);

  // False at the end; else *batch is valid until the next call.
  bool Next(ImageBatch* batch);

 private:
  class Loader;

  std::shared_ptr<const ImageItems> items_;
  int64_t batch_;
  std::shared_ptr<Loader> loader_;
  std::unique_ptr<Prefetcher> prefetcher_;
  uint64_t next_ = 0;
};

}  // namespace crema

#endif  // CREMA_INFERENCE_IMAGE_BATCHER_H_
