#include "solver/checks/tested_data.h"

namespace crema {

std::optional<DataLayer> LongestData(const Net& net) {
  std::optional<DataLayer> longest;
  for (const auto& [layer, extent] : net.data_extents()) {
    if (extent.epoch == 0 || extent.batch == 0) continue;
    const uint64_t batches = (extent.epoch + extent.batch - 1) / extent.batch;
    if (!longest || batches > longest->batches) longest = DataLayer{layer, extent, batches};
  }
  return longest;
}

std::string PartlyTested(const Net& test_net, const std::string& name, int batches) {
  const std::optional<DataLayer> data = LongestData(test_net);
  const uint64_t read = data ? static_cast<uint64_t>(batches) * data->extent.batch : 0;
  if (!data || read % data->extent.epoch == 0) return "";
  return "each test of " + name + " reads " + std::to_string(read) + " records, while layer \"" + data->layer +
         "\" has " + std::to_string(data->extent.epoch) +
         ", and goes on where the one before ended: in_epochs { test_iter: 1 } reads them all, and the same ones "
         "every time (" +
         std::to_string(data->batches) + " batches)";
}

}  // namespace crema
