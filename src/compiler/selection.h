// Which layers of a file are in a net.
#ifndef CREMA_COMPILER_SELECTION_H_
#define CREMA_COMPILER_SELECTION_H_

#include <string>

#include "crema/net.h"

namespace crema {

// The state that include and exclude rules see.
NetState StateOf(const NetParameter& file, const NetOptions& options);
// What is to be said of a stage that no rule of the net asks for: it selects nothing, and is mostly misspelt. Empty
// where one does.
std::string DoubtAboutStage(const NetParameter& net, const std::string& stage);
// Whether a layer's rules let it take part.
bool TakesPart(const NetState& state, const LayerParameter& layer);
// The layer that makes the blob's last value in the net of that state; null where none does.
const LayerParameter* MakerOf(const NetParameter& net, const NetState& state, const std::string& blob);

}  // namespace crema

#endif  // CREMA_COMPILER_SELECTION_H_
