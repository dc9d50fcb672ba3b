// Items from the rows of HDF5 files.
#ifndef CREMA_DATA_LOADERS_HDF5_LOADER_H_
#define CREMA_DATA_LOADERS_HDF5_LOADER_H_

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "data/files/hdf5_files.h"
#include "data/loaders/file_order.h"
#include "data/loaders/item_loader.h"
#include "data/loaders/sample_order.h"

namespace crema {

// An item is a row: that of every dataset, one behind the other. There is no label besides. Keeps the two files that
// were read last in memory as floats; a thread keeps the one it is at, too.
class Hdf5Loader : public ItemLoader {
 public:
  // Sets order.records itself.
  Hdf5Loader(Hdf5Files files, const SampleOrder& order);

  const Shape& item_shape() const override { return item_shape_; }
  // Throws EnvironmentError where a file does not fit into memory.
  void Load(uint64_t position, float* data, float* label, ItemScratch& scratch) const override;
  // `row 17 of train_2.h5`, rows from 0.
  std::string Describe(uint64_t position) const override;
  uint64_t records() const override { return order_.records(); }

 private:
  // A file in memory.
  struct Content {
    size_t file = 0;
    std::vector<std::vector<float>> values;  // of each dataset
  };

  std::shared_ptr<const Content> Find(size_t file) const;
  std::shared_ptr<const Content> ContentOf(size_t file) const;
  std::shared_ptr<const Content> Read(size_t file) const;

  Hdf5Files files_;
  FileOrder order_;
  Shape item_shape_;
  mutable std::mutex reading_;  // taken before mutex_
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Content> last_, before_;  // the files used last
};

}  // namespace crema

#endif  // CREMA_DATA_LOADERS_HDF5_LOADER_H_
