// Which record of a database stands at which position of the endless stream that training reads.
#ifndef CREMA_DATA_LOADERS_SAMPLE_ORDER_H_
#define CREMA_DATA_LOADERS_SAMPLE_ORDER_H_

#include <cstdint>
#include <memory>

#include "base/random.h"
#include "data/loaders/class_balance.h"

namespace crema {

// Epoch e holds every record once, but for balanced classes. All random numbers are pure functions of the seed
// (base/random.h). The order and the skip do not depend on the drawer, so that two layers that read databases of equal
// length (images and their label maps) stay in step.
struct SampleOrder {
  uint64_t seed = 0;
  uint32_t drawer = 0;   // who draws the numbers of RandomAt; below 2^22
  uint64_t records = 1;  // of the database
  bool shuffle = false;  // another order in every epoch; false: the database's order
  uint64_t buffer = 0;   // records that a shuffled order mixes with each other; 0, or at least `records`: all
  uint64_t skip = 0;     // positions left out at the very start
  // Every class is drawn equally often, in a random order; who knows the labels of all records sets `classes`.
  bool balance_classes = false;
  std::shared_ptr<const ClassBalance> classes = nullptr;

  uint64_t RecordAt(uint64_t position) const {
    const uint64_t at = position + skip;
    if (classes) return classes->RecordAt(seed, kShuffle | 8, at / records, at % records);
    if (!shuffle) return at % records;
    return in_blocks() ? RecordInBlocks(at / records, at % records)
                       : Permute(seed, StreamId(kShuffle, at / records), at % records, records);
  }

  // --- Orders that keep neighbours together (CorgiPile: Xu et al., "In-database machine learning with CorgiPile",
  // 2022): blocks of neighbouring records in a random order, and groups of kGroup blocks in that order, the records of
  // each of which are mixed. Blocks begin at another record in every epoch, and may reach over the end of the database
  // to its beginning.

  static constexpr uint64_t kGroup = 64;

  struct Block {
    uint64_t first = 0, count = 0;  // records first, first + 1, ..., counted modulo `records`
  };

  bool in_blocks() const { return shuffle && buffer > 0 && buffer < records; }
  uint64_t block_records() const { return buffer < kGroup ? 1 : buffer / kGroup; }
  // In an epoch.
  uint64_t blocks() const { return (records + block_records() - 1) / block_records(); }
  // The i-th block of an epoch. Its records stand in the epoch's i / kGroup-th group, whose positions begin at
  // i / kGroup * kGroup * block_records().
  Block BlockAt(uint64_t epoch, uint64_t i) const;

  // --- Where records lie in several files: which file is the i-th of an epoch, and which of a file's records is its
  // i-th then. Records stay together with those of their file.

  uint64_t FileAt(uint64_t epoch, uint64_t i, uint64_t files) const {
    return shuffle ? Permute(seed, StreamId(kShuffle | 1, epoch), i, files) : i;
  }
  uint64_t RecordOfFileAt(uint64_t epoch, uint64_t file, uint64_t i, uint64_t file_records) const {
    if (!shuffle) return i;
    const uint64_t pass = RandomStream(seed, StreamId(kShuffle | 2, epoch)).Bits64(file);
    return Permute(seed, StreamId(kShuffle | 3, pass), i, file_records);
  }

  // The random numbers of the item at `position` (crop, mirror).
  RandomStream RandomAt(uint64_t position) const {
    return RandomStream(seed, StreamId(drawer | kItem, position + skip));
  }

  // Draws `skip` from [0, bound) as Caffe's rand_skip does; 0 for bound 0.
  void DrawSkip(uint64_t bound) { skip = bound > 0 ? RandomStream(seed, StreamId(kSkip, 0)).Below(0, bound) : 0; }

 private:
  uint64_t RecordInBlocks(uint64_t epoch, uint64_t i) const;

  // Keep the three uses, and layers' own streams, apart: StreamId has room for drawers of 24 bits.
  static constexpr uint32_t kShuffle = 1u << 22, kItem = 2u << 22, kSkip = 3u << 22;
};

}  // namespace crema

#endif  // CREMA_DATA_LOADERS_SAMPLE_ORDER_H_
