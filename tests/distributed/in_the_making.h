// Values that are exchanged while they are being made.
#ifndef CREMA_TESTS_DISTRIBUTED_IN_THE_MAKING_H_
#define CREMA_TESTS_DISTRIBUTED_IN_THE_MAKING_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "distributed/protocol/payload.h"

namespace crema {

// Whose bytes come from the last one on; what is not there yet is no number.
class InTheMaking {
 public:
  explicit InTheMaking(Payload whole)
      : whole_(std::move(whole)),
        bytes_(std::make_shared<Bytes>(whole_->size(), std::byte{0xFF})),
        there_from_(whole_->size()) {}

  void MakeFrom(uint64_t byte) {
    there_from_ = std::min(there_from_, byte);
    std::copy(whole_->begin() + static_cast<std::ptrdiff_t>(there_from_), whole_->end(),
              bytes_->begin() + static_cast<std::ptrdiff_t>(there_from_));
  }
  Payload bytes() const { return bytes_; }
  uint64_t there_from() const { return there_from_; }

 private:
  Payload whole_;
  std::shared_ptr<Bytes> bytes_;
  uint64_t there_from_;
};

}  // namespace crema

#endif  // CREMA_TESTS_DISTRIBUTED_IN_THE_MAKING_H_
