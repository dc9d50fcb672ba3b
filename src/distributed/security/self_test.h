// A stranger's attempt to get into a coordinator's own socket.
#ifndef CREMA_DISTRIBUTED_SECURITY_SELF_TEST_H_
#define CREMA_DISTRIBUTED_SECURITY_SELF_TEST_H_

#include <string>

#include "distributed/security/keys.h"

namespace crema {

// Connects to a bound tcp:// or ipc:// endpoint of this machine with the pair `stranger`, and without any key. Throws
// EnvironmentError where either gets through, or where there is no verdict on both within `timeout_ms`.
void CheckStrangersStayOut(const std::string& endpoint, const std::string& server_public_key, const KeyPair& stranger,
                           int timeout_ms);

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_SECURITY_SELF_TEST_H_
