// Times of a net's steps as a table.
#ifndef CREMA_REPORT_TIMING_TABLE_H_
#define CREMA_REPORT_TIMING_TABLE_H_

#include <span>
#include <string>
#include <vector>

#include "graph/program.h"
#include "report/step_recording.h"

namespace crema {

// Middle value, the mean of the two middle ones for even counts; 0 without values.
double Median(std::vector<double> values);

// A row for each unit of the net, and for each reorder, sum and fill, beside the unit it is for: the median time over
// the passes in `events`, which are whole, with operations and bytes a second (see StepInfo) and its share of the
// whole; below them the sums, and whole passes, each the median of its own sums over the steps. `items`: of one batch,
// for a rate; 0: none is printed.
std::string TimingTable(const CompiledNet& net, std::span<const StepEvent> events, int64_t items);

}  // namespace crema

#endif  // CREMA_REPORT_TIMING_TABLE_H_
