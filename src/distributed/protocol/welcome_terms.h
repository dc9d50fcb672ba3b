// Whether a worker can go on with a coordinator that was started again.
#ifndef CREMA_DISTRIBUTED_PROTOCOL_WELCOME_TERMS_H_
#define CREMA_DISTRIBUTED_PROTOCOL_WELCOME_TERMS_H_

#include <string>

#include "distributed/protocol/messages.pb.h"

namespace crema {

// What decides how workers train and on what, and is another than `before`, as a list of words for people; empty where
// nothing is. Files that a list of images names count where both knew them: a coordinator need not have them.
std::string ChangedTerms(const Welcome& before, const Welcome& now);

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_PROTOCOL_WELCOME_TERMS_H_
