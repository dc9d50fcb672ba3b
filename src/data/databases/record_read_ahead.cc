#include "data/databases/record_read_ahead.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace crema {

namespace {

constexpr uint64_t kRecordsAhead = 256;

}  // namespace

uint32_t SuggestShuffleBuffer(uint64_t records, uint64_t bytes, uint64_t memory) {
  const uint64_t fitting = memory / 4 / std::max<uint64_t>(bytes / records, 1);
  return static_cast<uint32_t>(std::clamp<uint64_t>(std::bit_floor(fitting), SampleOrder::kGroup, uint64_t{1} << 31));
}

RecordReadAhead::RecordReadAhead(std::shared_ptr<const RecordSource> source, SampleOrder order)
    : source_(std::move(source)),
      order_(order),
      in_blocks_(order.in_blocks()),
      units_(in_blocks_ ? order.blocks() : order.records) {
  source_->ExpectReadAhead();
}

uint64_t RecordReadAhead::UnitAt(uint64_t position) const {
  const uint64_t at = position + order_.skip;
  return in_blocks_ ? at / order_.records * units_ + at % order_.records / order_.block_records() : at;
}

void RecordReadAhead::Ask(uint64_t unit) const {
  if (!in_blocks_) {
    source_->ReadAhead(order_.RecordAt(unit - order_.skip), 1);
    return;
  }
  const SampleOrder::Block block = order_.BlockAt(unit / units_, unit % units_);
  const uint64_t here = std::min(block.count, order_.records - block.first);
  source_->ReadAhead(block.first, here);
  if (here < block.count) source_->ReadAhead(0, block.count - here);
}

void RecordReadAhead::At(uint64_t position) {
  const uint64_t unit = UnitAt(position), ahead = in_blocks_ ? SampleOrder::kGroup : kRecordsAhead;
  // Threads that fill batches are a few batches apart.
  const auto foreseen = [&](uint64_t next) { return next > unit + ahead && next <= unit + 8 * ahead; };
  if (foreseen(next_.load(std::memory_order_relaxed))) return;
  const std::lock_guard lock(mutex_);
  uint64_t next = next_.load(std::memory_order_relaxed);
  if (foreseen(next)) return;
  if (next <= unit || next > unit + 8 * ahead) {
    const uint64_t epoch = unit / units_ * units_;
    next = in_blocks_ ? epoch + (unit - epoch) / SampleOrder::kGroup * SampleOrder::kGroup : unit;
  }
  for (; next <= unit + ahead; ++next) Ask(next);
  next_.store(next, std::memory_order_relaxed);
}

}  // namespace crema
