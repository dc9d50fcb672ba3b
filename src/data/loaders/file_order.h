// Which record of which file stands at which position of the endless stream, where records lie in several files.
#ifndef CREMA_DATA_LOADERS_FILE_ORDER_H_
#define CREMA_DATA_LOADERS_FILE_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "data/loaders/sample_order.h"

namespace crema {

// Epoch e holds every file once, and every record of a file together: in the order of files and records or, shuffled,
// with the files in another order each epoch, and the records within each. A pure function of the order's seed and the
// position; thread-safe.
class FileOrder {
 public:
  struct Place {
    size_t file = 0;
    uint64_t record = 0;  // within the file

    bool operator==(const Place&) const = default;
  };

  // records: of each file; not all 0.
  FileOrder(std::vector<uint64_t> records, SampleOrder order);

  Place At(uint64_t position) const;
  // Of all files.
  uint64_t records() const { return order_.records; }

 private:
  // The files of one epoch in their order, and where each begins; one entry more at the end.
  struct Epoch {
    uint64_t number = 0;
    std::vector<size_t> files;
    std::vector<uint64_t> begins;
  };

  std::shared_ptr<const Epoch> MakeEpoch(uint64_t number) const;
  std::shared_ptr<const Epoch> EpochOf(uint64_t number) const;

  std::vector<uint64_t> records_;
  SampleOrder order_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Epoch> last_, before_;  // those used last
};

}  // namespace crema

#endif  // CREMA_DATA_LOADERS_FILE_ORDER_H_
