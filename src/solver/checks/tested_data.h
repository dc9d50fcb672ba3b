// How many of their records nets read in a test.
#ifndef CREMA_SOLVER_CHECKS_TESTED_DATA_H_
#define CREMA_SOLVER_CHECKS_TESTED_DATA_H_

#include <cstdint>
#include <optional>
#include <string>

#include "crema/net.h"

namespace crema {

// The data layer that needs the most batches for all of its records; none where it is not known how many a layer has,
// as before the first batch.
struct DataLayer {
  std::string layer;
  DataExtent extent;
  uint64_t batches = 0;
};
std::optional<DataLayer> LongestData(const Net& net);

// What to tell where tests of so many batches do not read all records as often; empty otherwise.
std::string PartlyTested(const Net& test_net, const std::string& name, int batches);

}  // namespace crema

#endif  // CREMA_SOLVER_CHECKS_TESTED_DATA_H_
