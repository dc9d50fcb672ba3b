// Times of a net's layers as a table.
#ifndef CREMA_REPORT_TIMING_TABLE_H_
#define CREMA_REPORT_TIMING_TABLE_H_

#include <string>
#include <vector>

#include "crema/net.h"

namespace crema {

// Middle value, the mean of the two middle ones for even counts; 0 without values.
double Median(std::vector<double> values);

// Median time of each layer and direction and its share of the whole; whole passes below, each the median of its own
// sums over the layers. `items`: of one batch, for a rate; 0: none is printed.
std::string TimingTable(const std::vector<LayerTiming>& timings, int64_t items);

}  // namespace crema

#endif  // CREMA_REPORT_TIMING_TABLE_H_
