#include "inference/image_batcher.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "data/loaders/item_loader.h"

namespace crema {

namespace {

constexpr int kAhead = 3;  // batches; several threads fill one

Shape ItemShape(const ImagePreparation& preparation) {
  const ImageSize& input = preparation.input();
  return {preparation.views(), input.channels, input.height, input.width};
}

}  // namespace

// What is wrong with an image is kept beside the batches, since an exception would end the whole stream. So are the
// labels, of which a float cannot hold all.
class ImageBatcher::Loader : public ItemLoader {
 public:
  Loader(std::shared_ptr<const ImageItems> items, std::shared_ptr<const ImagePreparation> preparation)
      : items_(std::move(items)), preparation_(std::move(preparation)), shape_(ItemShape(*preparation_)) {}

  const Shape& item_shape() const override { return shape_; }

  void Load(uint64_t position, float* data, float* label, ItemScratch&) const override {
    thread_local PreparationBuffers buffers;
    *label = 0;
    Item item;
    if (position < items_->count()) item.problem = items_->Load(position, *preparation_, &buffers, data, &item.label);
    if (position >= items_->count() || !item.problem.empty()) std::memset(data, 0, shape_.count() * sizeof(float));
    const std::lock_guard<std::mutex> lock(mutex_);
    loaded_[position] = std::move(item);
  }

  std::string Describe(uint64_t position) const override { return items_->Name(position); }

  struct Item {
    ItemLabel label;
    std::string problem;
  };

  Item Take(uint64_t position) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::move(loaded_.extract(position).mapped());
  }

 private:
  const std::shared_ptr<const ImageItems> items_;
  const std::shared_ptr<const ImagePreparation> preparation_;
  const Shape shape_;
  mutable std::mutex mutex_;
  mutable std::map<uint64_t, Item> loaded_;  // and not yet taken
};

ImageBatcher::ImageBatcher(std::shared_ptr<const ImageItems> items, std::shared_ptr<const ImagePreparation> preparation,
                           int64_t batch, int threads)
    : items_(std::move(items)), batch_(batch), loader_(std::make_shared<Loader>(items_, std::move(preparation))) {
  PrefetchOptions options;
  options.batch = batch;
  options.ahead = kAhead;
  options.threads = threads;
  prefetcher_ = std::make_unique<Prefetcher>(loader_, options);
}

bool ImageBatcher::Next(ImageBatch* batch) {
  if (next_ >= items_->count()) return false;
  batch->data = prefetcher_->Next().data;
  batch->first = next_;
  batch->count = static_cast<int64_t>(std::min<uint64_t>(batch_, items_->count() - next_));
  batch->labels.resize(batch->count);
  batch->problems.resize(batch->count);
  for (int64_t row = 0; row < batch->count; ++row) {
    Loader::Item item = loader_->Take(next_ + row);
    batch->labels[row] = std::move(item.label);
    batch->problems[row] = std::move(item.problem);
  }
  next_ += batch->count;
  return true;
}

}  // namespace crema
