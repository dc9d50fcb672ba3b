// Which record stands at which position where every class is drawn equally often.
#ifndef CREMA_DATA_LOADERS_CLASS_BALANCE_H_
#define CREMA_DATA_LOADERS_CLASS_BALANCE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace crema {

// An epoch has as many positions as there are records, shared out equally among the classes: some have one more than
// others. The records of a class come in a random order, each once before any of them comes again, through the epochs.
// Thread-safe.
class ClassBalance {
 public:
  // labels[i]: the class of record i, any number; at least one record.
  explicit ClassBalance(std::span<const int32_t> labels);

  size_t classes() const { return begins_.size() - 1; }
  // The i-th record of an epoch. `stream`: of which StreamId(stream + 0 to 2, ...) are nobody else's.
  uint64_t RecordAt(uint64_t seed, uint32_t stream, uint64_t epoch, uint64_t i) const;

 private:
  std::vector<uint64_t> records_;  // by class
  std::vector<uint64_t> begins_;   // where each class begins there; one entry more at the end
};

}  // namespace crema

#endif  // CREMA_DATA_LOADERS_CLASS_BALANCE_H_
