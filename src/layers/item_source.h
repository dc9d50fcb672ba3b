// What layers that read images through a Prefetcher share: Data and ImageData.
#ifndef CREMA_LAYERS_ITEM_SOURCE_H_
#define CREMA_LAYERS_ITEM_SOURCE_H_

#include <memory>
#include <optional>
#include <string>

#include "crema/layer.h"
#include "data/item_loader.h"
#include "data/prefetcher.h"
#include "data/sample_order.h"
#include "data/transform.h"

namespace crema {

// Tops: images (N x C x H x W) and labels (N). Batches are made ahead by threads; what they hold is a function of the
// seed, the layer's name and the position in the stream.
class ItemSource : public Layer {
 public:
  void Setup(LayerSetup& setup) override;
  void Forward(const LayerRun& run) override;
  uint64_t position() const override { return prefetcher_ ? prefetcher_->position() : start_; }
  void set_position(uint64_t records) override;
  void ReadBatches(const BatchSchedule& schedule) override;
  uint64_t next_batch() const override { return (position() + batch_ - 1) / batch_; }
  std::string DescribeItem(int64_t index) const override;
  DataSupply data_supply() const override;

 protected:
  // The fields that blocks of all such types have.
  struct Fields {
    std::string block;  // "data_param"
    std::string source;
    uint32_t batch_size = 0, prefetch = 0, threads = 0, rand_skip = 0;
    bool shuffle = false;
  };

  // Called once in Setup, before all else.
  virtual Fields ReadFields(const LayerParameter& param) = 0;
  // Checks the other fields; may move some of them to transform().
  virtual void CheckFields(LayerSetup& setup) = 0;
  // For messages: "database".
  virtual const char* what_source_is() const = 0;
  virtual const char* example_of_source() const = 0;
  virtual bool SourceExists() const = 0;
  // Size of the items of a source that exists. Throws UserError.
  virtual ImageSize ItemSizeOf(LayerSetup& setup, const Transform& transform) = 0;
  // Throws as loaders do.
  virtual std::shared_ptr<const ItemLoader> MakeLoader(Transform transform, const SampleOrder& order) const = 0;

  // Where the source was found.
  const std::string& source() const { return source_; }
  const Fields& fields() const { return fields_; }
  TransformationParameter& transform() { return transform_; }
  const TransformationParameter& transform() const { return transform_; }

 private:
  std::string Field(const std::string& name) const { return fields_.block + "." + name; }
  void CheckCommonFields(LayerSetup& setup) const;
  Shape DataShape(LayerSetup& setup);
  Shape ShapeOfSource(LayerSetup& setup);
  Shape ShapeWithoutSource(LayerSetup& setup, const ImageExtent& extent) const;
  void Start(const LayerRun& run);

  Phase phase_ = TRAIN;
  Fields fields_;
  std::string name_, type_, source_, mean_file_;
  TransformationParameter transform_;
  Location source_place_;
  int ranks_ = 1;
  bool flag_decides_ = false;  // how many threads there are
  uint64_t batch_ = 1;         // records
  uint64_t start_ = 0;         // what was said before the first Forward; then also the schedule
  std::optional<BatchSchedule> schedule_;
  std::optional<Prefetcher> prefetcher_;
};

}  // namespace crema

#endif  // CREMA_LAYERS_ITEM_SOURCE_H_
