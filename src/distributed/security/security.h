// Which endpoints need keys, and whether the settings have them.
#ifndef CREMA_DISTRIBUTED_SECURITY_SECURITY_H_
#define CREMA_DISTRIBUTED_SECURITY_SECURITY_H_

#include <string>
#include <string_view>

#include "crema/distributed.pb.h"
#include "crema/error.h"

namespace crema {

// Whether only this machine can reach a ZeroMQ endpoint: ipc://, inproc:// and tcp:// with localhost, an IPv4 address
// 127.x.x.x or [::1]. Every user of the machine can. Anything that is not surely local is not.
bool IsLocal(std::string_view endpoint);

// Throws UserError at `where`, with the remedy, where that is nothing to listen at, or, of who is no coordinator, to
// connect to.
void CheckEndpoint(const std::string& endpoint, bool is_coordinator, const Location& where);

enum class Protection {
  kNone,  // plain text: the endpoint is local, or the user allows it
  kKeys,  // CURVE
};

// What the endpoint is protected by as the settings say, all of whose files are read to see that they are good. Throws
// UserError with every mistake, each with its remedy: what is no endpoint, keys that are missing or contradict each
// other; EnvironmentError where a file cannot be read or libzmq cannot be trusted. `where`: of the settings, if they
// are in a file.
Protection CheckSecurity(const std::string& endpoint, const DistributedParameter::Security& settings,
                         bool is_coordinator, const Location& where = {});

// What to tell, again and again, about an endpoint that others can reach and that is not protected.
std::string PlaintextWarning(const std::string& endpoint);

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_SECURITY_SECURITY_H_
