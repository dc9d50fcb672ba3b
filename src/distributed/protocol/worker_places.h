// The places of workers.
#ifndef CREMA_DISTRIBUTED_PROTOCOL_WORKER_PLACES_H_
#define CREMA_DISTRIBUTED_PROTOCOL_WORKER_PLACES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace crema {

// Numbers from 0 on, each of one worker at a time, so that sums have an order that does not depend on who came when.
class WorkerPlaces {
 public:
  // most: of workers at a time.
  explicit WorkerPlaces(int most) : most_(static_cast<uint32_t>(most)) {}

  // The one that is wanted, where it is free and one of the first `most`, else the lowest that is free.
  uint32_t Take(std::optional<uint32_t> wanted) {
    const bool free = wanted && *wanted < most_ && !(*wanted < taken_.size() && taken_[*wanted]);
    const size_t place =
        free ? *wanted : static_cast<size_t>(std::find(taken_.begin(), taken_.end(), false) - taken_.begin());
    if (taken_.size() <= place) taken_.resize(place + 1);
    taken_[place] = true;
    return static_cast<uint32_t>(place);
  }
  void Return(uint32_t place) { taken_[place] = false; }

 private:
  uint32_t most_;
  std::vector<bool> taken_;
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_PROTOCOL_WORKER_PLACES_H_
