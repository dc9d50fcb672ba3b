// Nets without what a blob does not need.
#ifndef CREMA_INFERENCE_NEEDED_LAYERS_H_
#define CREMA_INFERENCE_NEEDED_LAYERS_H_

#include <string>
#include <vector>

#include "crema/files.h"

namespace crema {

// Takes a layer out of nets of this phase, without moving others, whose places messages name.
void LeaveOut(Phase phase, LayerParameter* layer);

// Leaves out the layers, and the blobs of Input layers, that `blobs` do not need. Earlier layers of the same name as
// one that is needed stay, by whose number weights are found. Throws UserError, at `path`, where there is no such blob.
void KeepWhatIsNeeded(const std::vector<std::string>& blobs, const NetState& state, const std::string& path,
                      NetParameter* net);

}  // namespace crema

#endif  // CREMA_INFERENCE_NEEDED_LAYERS_H_
