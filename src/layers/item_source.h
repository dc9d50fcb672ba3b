// What layers that read their items through a Prefetcher share: those of image_source.h and HDF5Data.
#ifndef CREMA_LAYERS_ITEM_SOURCE_H_
#define CREMA_LAYERS_ITEM_SOURCE_H_

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "crema/layer.h"
#include "data/loaders/item_loader.h"
#include "data/loaders/prefetcher.h"
#include "data/loaders/sample_order.h"

namespace crema {

// Batches are made ahead by threads; what they hold is a function of the seed, the layer's name and the position in the
// stream.
class ItemSource : public Layer {
 public:
  void Setup(LayerSetup& setup) override;
  void Forward(const LayerRun& run) override;
  uint64_t position() const override { return prefetcher_ ? prefetcher_->position() : start_; }
  void set_position(uint64_t records) override;
  void ReadBatches(const BatchSchedule& schedule) override;
  uint64_t next_batch() const override { return (position() + batch_ - 1) / batch_; }
  std::string DescribeItem(int64_t index) const override;
  DataExtent data_extent() const override { return {.epoch = epoch_, .batch = batch_}; }
  void FindDataExtent() override;
  DataSupply data_supply() const override;

 protected:
  // The fields that blocks of such types have, and what stands for those that one has not.
  struct Fields {
    std::string block;  // "data_param"
    std::string source;
    uint32_t batch_size = 0, prefetch = 4, threads = 0, rand_skip = 0;
    bool shuffle = false;
    uint32_t shuffle_buffer = 0;
    bool balance_classes = false;
    bool threads_help = true;  // and are a field; false: the source is read by one at a time
  };

  // Called once in Setup, before all else.
  virtual Fields ReadFields(const LayerParameter& param) = 0;
  // Whether there is something at source().
  virtual bool SourceExists() const;
  // Checks what the type has of its own.
  virtual void CheckFields(LayerSetup& setup) = 0;
  // For messages: "folder of an LMDB".
  virtual const char* example_of_source() const = 0;
  // Of every top, the first extent being the number of items in a batch.
  virtual std::vector<Shape> TopShapes(LayerSetup& setup) = 0;
  // Throws as loaders do, also where it does not give what Setup said.
  virtual std::shared_ptr<const ItemLoader> MakeLoader(const SampleOrder& order) const = 0;
  virtual void Deliver(const Batch& batch, std::span<const Tensor> tops) const = 0;
  // As in DataSupply, where more threads would not help.
  virtual std::string Remedy(int cores) const = 0;

  // "data_param.threads".
  std::string Field(const std::string& name) const { return fields_.block + "." + name; }
  Phase phase() const { return phase_; }
  // Where the source was found.
  const std::string& source() const { return source_; }
  const Fields& fields() const { return fields_; }
  // Null before the first Forward.
  const ItemLoader* loader() const { return prefetcher_ ? &prefetcher_->loader() : nullptr; }

 private:
  void CheckCommonFields(LayerSetup& setup) const;
  SampleOrder OrderOf(uint64_t seed) const;
  // What it throws names the layer.
  void NamingLayer(const std::function<void()>& action) const;
  void Start(const LayerRun& run);

  Phase phase_ = TRAIN;
  Fields fields_;
  std::string name_, type_, source_;
  Location source_place_;
  int ranks_ = 1;
  bool flag_decides_ = false;  // how many threads there are
  uint64_t batch_ = 1;         // records
  uint64_t epoch_ = 0;         // as in DataExtent
  uint64_t start_ = 0;         // what was said before the first Forward; then also the schedule
  std::optional<BatchSchedule> schedule_;
  std::optional<Prefetcher> prefetcher_;
};

// Copies `count` values on the threads that compute.
void CopyValues(const float* from, int64_t count, float* to);

}  // namespace crema

#endif  // CREMA_LAYERS_ITEM_SOURCE_H_
