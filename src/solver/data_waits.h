// Notices when training waits for its data.
#ifndef CREMA_SOLVER_DATA_WAITS_H_
#define CREMA_SOLVER_DATA_WAITS_H_

#include <map>
#include <string>

#include "crema/net.h"

namespace crema {

class DataWaits {
 public:
  // `seconds` have passed since the last call. The first time that a data layer kept the net waiting for more than a
  // tenth of them: says which, and what would help; else empty. What the first call sees is left out: nothing was made
  // ahead when training began.
  std::string Look(const Net& net, double seconds);

 private:
  bool first_ = true, told_ = false;
  std::map<std::string, double> waited_;  // by layer, up to the last call
};

}  // namespace crema

#endif  // CREMA_SOLVER_DATA_WAITS_H_
