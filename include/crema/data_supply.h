// What a layer that reads data reads, and how it gets it.
#ifndef CREMA_DATA_SUPPLY_H_
#define CREMA_DATA_SUPPLY_H_

#include <cstdint>
#include <string>

namespace crema {

struct DataExtent {
  uint64_t epoch = 0;  // records of one pass over the data; 0: not known, or there is no end
  uint64_t batch = 0;  // records of a batch
};

// Of one layer so far; all zero and empty before its first batch.
struct DataSupply {
  double waited_seconds = 0;  // for batches that were not made in time
  int threads = 0;            // that make batches
  int prefetch = 0;           // batches made ahead
  // What would make batches come faster, as a part of a sentence.
  std::string remedy;
};

}  // namespace crema

#endif  // CREMA_DATA_SUPPLY_H_
