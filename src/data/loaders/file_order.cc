#include "data/loaders/file_order.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace crema {

FileOrder::FileOrder(std::vector<uint64_t> records, SampleOrder order) : records_(std::move(records)), order_(order) {
  order_.records = std::accumulate(records_.begin(), records_.end(), uint64_t{0});
  CREMA_CHECK(order_.records > 0);
}

FileOrder::Place FileOrder::At(uint64_t position) const {
  const uint64_t at = position + order_.skip, number = at / order_.records, within = at % order_.records;
  const std::shared_ptr<const Epoch> epoch = EpochOf(number);
  // Files without records begin where the next one does.
  const auto behind = std::upper_bound(epoch->begins.begin(), epoch->begins.end(), within);
  const auto i = static_cast<size_t>(behind - epoch->begins.begin()) - 1;
  const size_t file = epoch->files[i];
  return {file, order_.RecordOfFileAt(number, file, within - epoch->begins[i], records_[file])};
}

std::shared_ptr<const FileOrder::Epoch> FileOrder::MakeEpoch(uint64_t number) const {
  auto epoch = std::make_shared<Epoch>();
  epoch->number = number;
  epoch->begins.push_back(0);
  for (size_t i = 0; i < records_.size(); ++i) {
    epoch->files.push_back(static_cast<size_t>(order_.FileAt(number, i, records_.size())));
    epoch->begins.push_back(epoch->begins.back() + records_[epoch->files.back()]);
  }
  return epoch;
}

std::shared_ptr<const FileOrder::Epoch> FileOrder::EpochOf(uint64_t number) const {
  if (!order_.shuffle) number = 0;
  const std::lock_guard lock(mutex_);
  if (!last_ || last_->number != number) {
    // Threads that make different batches stand on both sides of an epoch's end.
    if (!before_ || before_->number != number) before_ = MakeEpoch(number);
    std::swap(last_, before_);
  }
  return last_;
}

}  // namespace crema
