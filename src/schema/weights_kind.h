// Recognises files that people give as weights by mistake.
#ifndef CREMA_SCHEMA_WEIGHTS_KIND_H_
#define CREMA_SCHEMA_WEIGHTS_KIND_H_

#include <string>

#include "schema/wire_reader.h"

namespace crema {

// Throws UserError that says what the file is where its first bytes show that it is not a binary NetParameter. Leaves
// `reader` at the start.
void CheckWeightsKind(const std::string& path, WireReader* reader);

}  // namespace crema

#endif  // CREMA_SCHEMA_WEIGHTS_KIND_H_
