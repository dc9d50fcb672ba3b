// Reading records of a large database from the disk before they are wanted.
#ifndef CREMA_DATA_DATABASES_RECORD_READ_AHEAD_H_
#define CREMA_DATA_DATABASES_RECORD_READ_AHEAD_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "data/databases/record_source.h"
#include "data/loaders/sample_order.h"

namespace crema {

// The data_param.shuffle_buffer for a database of so many records and bytes: a power of two of which a quarter of
// `memory` bytes holds the records.
uint32_t SuggestShuffleBuffer(uint64_t records, uint64_t bytes, uint64_t memory);

// For databases that do not fit well into memory, where the operating system cannot foresee what is wanted: of an order
// in blocks one group of blocks ahead, block by block; of other orders a few hundred records ahead. Thread-safe.
class RecordReadAhead {
 public:
  RecordReadAhead(std::shared_ptr<const RecordSource> source, SampleOrder order);

  // Whether it helps a database of so many bytes on a machine with so many bytes of memory.
  static bool Wanted(uint64_t bytes, uint64_t memory) { return bytes > memory / 2; }

  // To be called for each position before it is read. Positions need not come one after the other; where they jump, the
  // group of the new one is asked for anew.
  void At(uint64_t position);

 private:
  // What is asked for at once: a block, or a record. Counted through the epochs.
  uint64_t UnitAt(uint64_t position) const;
  void Ask(uint64_t unit) const;

  const std::shared_ptr<const RecordSource> source_;
  const SampleOrder order_;
  const bool in_blocks_;
  const uint64_t units_;  // of an epoch
  std::mutex mutex_;
  std::atomic<uint64_t> next_ = 0;  // unit that was not asked for; changed under mutex_
};

}  // namespace crema

#endif  // CREMA_DATA_DATABASES_RECORD_READ_AHEAD_H_
