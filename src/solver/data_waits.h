// Notices when training waits for its data.
#ifndef CREMA_SOLVER_DATA_WAITS_H_
#define CREMA_SOLVER_DATA_WAITS_H_

#include <map>
#include <string>

#include "crema/net.h"

namespace crema {

class DataWaits {
 public:
  // Called at every display; `seconds` have passed since the last one. The first time that a data layer kept the net
  // waiting for more than a tenth of half a second or more: says which, and what would help; else empty. What the first
  // call sees is left out: nothing was made ahead when training began.
  std::string Look(const Net& net, double seconds);

 private:
  bool first_ = true, told_ = false;
  double seconds_ = 0;                    // since the last look at
  std::map<std::string, double> waited_;  // up to then, by layer
};

}  // namespace crema

#endif  // CREMA_SOLVER_DATA_WAITS_H_
