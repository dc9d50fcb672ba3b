// How a layer that reads data gets it.
#ifndef CREMA_DATA_SUPPLY_H_
#define CREMA_DATA_SUPPLY_H_

#include <string>

namespace crema {

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
