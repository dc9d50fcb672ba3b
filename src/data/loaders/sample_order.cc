#include "data/loaders/sample_order.h"

#include <algorithm>

namespace crema {

SampleOrder::Block SampleOrder::BlockAt(uint64_t epoch, uint64_t i) const {
  const uint64_t size = block_records(), whole = records / size;
  // What is left over behind the last whole block comes last. Which records these are differs with the epoch.
  const uint64_t block = i < whole ? Permute(seed, StreamId(kShuffle | 4, epoch), i, whole) : i;
  const uint64_t begin = RandomStream(seed, StreamId(kShuffle | 5, epoch)).Below(0, records);
  return {(begin + block * size) % records, std::min(size, records - block * size)};
}

uint64_t SampleOrder::RecordInBlocks(uint64_t epoch, uint64_t i) const {
  const uint64_t size = block_records(), group = i / (kGroup * size), group_begin = group * kGroup * size;
  const uint64_t group_records = std::min(kGroup * size, records - group_begin);
  const uint64_t pass = RandomStream(seed, StreamId(kShuffle | 6, epoch)).Bits64(group);
  const uint64_t mixed = Permute(seed, StreamId(kShuffle | 7, pass), i - group_begin, group_records);
  return (BlockAt(epoch, group * kGroup + mixed / size).first + mixed % size) % records;
}

}  // namespace crema
