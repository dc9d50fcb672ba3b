// Which record of a database stands at which position of the endless stream that training reads.
#ifndef CREMA_DATA_SAMPLE_ORDER_H_
#define CREMA_DATA_SAMPLE_ORDER_H_

#include <cstdint>

#include "base/random.h"

namespace crema {

// Epoch e holds every record once. All random numbers are pure functions of the seed (base/random.h). The order and the
// skip do not depend on the drawer, so that two layers that read databases of equal length (images and their label
// maps) stay in step.
struct SampleOrder {
  uint64_t seed = 0;
  uint32_t drawer = 0;   // who draws the numbers of RandomAt; below 2^22
  uint64_t records = 1;  // of the database
  bool shuffle = false;  // another order in every epoch; false: the database's order
  uint64_t skip = 0;     // positions left out at the very start

  uint64_t RecordAt(uint64_t position) const {
    const uint64_t at = position + skip;
    return shuffle ? Permute(seed, StreamId(kShuffle, at / records), at % records, records) : at % records;
  }

  // Where records lie in several files: which file is the i-th of an epoch, and which of a file's records is its i-th
  // then. Records stay together with those of their file.
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
  // Keep the three uses, and layers' own streams, apart: StreamId has room for drawers of 24 bits.
  static constexpr uint32_t kShuffle = 1u << 22, kItem = 2u << 22, kSkip = 3u << 22;
};

}  // namespace crema

#endif  // CREMA_DATA_SAMPLE_ORDER_H_
