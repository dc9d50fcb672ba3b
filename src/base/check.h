// CREMA_CHECK(condition) << details: for invariants of crema itself, never for a user's mistake.
#ifndef CREMA_BASE_CHECK_H_
#define CREMA_BASE_CHECK_H_

#include "base/log.h"

#define CREMA_CHECK(condition) CHECK(condition) << "this is a bug in crema: "

#endif  // CREMA_BASE_CHECK_H_
