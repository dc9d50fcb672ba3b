// Spans of time as people read them.
#ifndef CREMA_BASE_DURATION_H_
#define CREMA_BASE_DURATION_H_

#include <string>

namespace crema {

// "42s", "3m05s", "2h07m", "3d04h"; "long" above 100 days.
std::string FormatDuration(double seconds);

}  // namespace crema

#endif  // CREMA_BASE_DURATION_H_
