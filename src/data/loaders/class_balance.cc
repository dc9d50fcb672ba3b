#include "data/loaders/class_balance.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/random.h"

namespace crema {

ClassBalance::ClassBalance(std::span<const int32_t> labels) : records_(labels.size()) {
  CREMA_CHECK(!labels.empty());
  std::iota(records_.begin(), records_.end(), 0);
  std::ranges::stable_sort(records_, {}, [&](uint64_t record) { return labels[record]; });
  for (uint64_t i = 0; i < records_.size(); ++i) {
    if (i == 0 || labels[records_[i]] != labels[records_[i - 1]]) begins_.push_back(i);
  }
  begins_.push_back(records_.size());
}

uint64_t ClassBalance::RecordAt(uint64_t seed, uint32_t stream, uint64_t epoch, uint64_t i) const {
  const uint64_t place = Permute(seed, StreamId(stream, epoch), i, records_.size()), of = classes();
  const uint64_t drawn = place % of, begin = begins_[drawn], count = begins_[drawn + 1] - begin;
  const uint64_t in_epoch = (records_.size() - drawn + of - 1) / of;  // draws of this class
  const uint64_t draw = epoch * in_epoch + place / of;
  const uint64_t pass = RandomStream(seed, StreamId(stream + 1, draw / count)).Bits64(drawn);
  return records_[begin + Permute(seed, StreamId(stream + 2, pass), draw % count, count)];
}

}  // namespace crema
