// How fast data comes, and whether a net waits for it.
#ifndef CREMA_REPORT_DATA_TIMING_H_
#define CREMA_REPORT_DATA_TIMING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "crema/files.h"
#include "crema/net.h"

namespace crema {

// One data layer that is read by nobody but a clock.
struct DataTiming {
  std::string layer, type;
  Shape item;                // without the batch axis; of several tops the first one's
  int64_t batch = 0;         // records
  int threads = 0;           // that make batches; 0 where the layer does not say
  double batch_seconds = 0;  // mean
};

// Reads `batches` batches of each data layer of the net in turn, behind those that were made ahead. Other layers are
// not run. Throws as nets do.
std::vector<DataTiming> TimeData(const NetFile& file, const NetOptions& options, int batches);

// Passes of a whole net, which may wait for its data layers.
struct PassTiming {
  int passes = 0;
  double seconds = 0, waited_seconds = 0;  // of all passes
  std::string layer, remedy;               // that was waited for longest, and what would help (DataSupply)
};

// Runs `passes` passes, behind two that are not measured.
PassTiming TimePasses(Net& net, int passes, bool backward);

// A table of the data layers, and, below, what limits the passes.
std::string DataTimingText(const std::vector<DataTiming>& layers);
std::string PassTimingText(const PassTiming& timing, bool backward);

}  // namespace crema

#endif  // CREMA_REPORT_DATA_TIMING_H_
