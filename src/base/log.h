// glog's LOG(INFO), LOG(WARNING) and LOG(ERROR). Include this instead of glog: newer headers of protobuf (36 does)
// bring Abseil's macros of the same names, which would be in force in sources that include them last, and write past
// glog.
#ifndef CREMA_BASE_LOG_H_
#define CREMA_BASE_LOG_H_

#if __has_include(<absl/log/log.h>)
#include <absl/log/log.h>
#undef DLOG
#undef DLOG_EVERY_N
#undef DLOG_IF
#undef DVLOG
#undef LOG
#undef LOG_EVERY_N
#undef LOG_FIRST_N
#undef LOG_IF
#undef LOG_IF_EVERY_N
#undef PLOG
#undef PLOG_EVERY_N
#undef PLOG_IF
#undef PLOG_IF_EVERY_N
#undef VLOG
#undef VLOG_EVERY_N
#endif

#include <glog/logging.h>

#endif  // CREMA_BASE_LOG_H_
