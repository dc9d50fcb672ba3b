// Which layers of a file are in a net.
#ifndef CREMA_COMPILER_SELECTION_H_
#define CREMA_COMPILER_SELECTION_H_

#include "crema/net.h"

namespace crema {

// The state that include and exclude rules see.
NetState StateOf(const NetParameter& file, const NetOptions& options);
// Whether a layer's rules let it take part.
bool TakesPart(const NetState& state, const LayerParameter& layer);

}  // namespace crema

#endif  // CREMA_COMPILER_SELECTION_H_
