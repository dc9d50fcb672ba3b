// For those who run a net and have nothing to write into it, or are several who run it.
#ifndef CREMA_RUNTIME_REFUSE_INPUTS_H_
#define CREMA_RUNTIME_REFUSE_INPUTS_H_

#include <string>

#include "crema/net.h"

namespace crema {

// Throws UserError at the first layer of the net whose tops its program writes (Net::inputs): `which` is "the train
// net", `why` what is said of such a layer, with the remedy, of which a layer that reads data is the rest.
void RefuseInputs(const Net& net, const std::string& which, const std::string& why);

// The same for the programs, none of which writes them.
void RefuseInputs(const Net& net, const std::string& which);

// Throws UserError at the first layer that takes what the net made out of it (IsOutputType): `why` that is not for this
// training.
void RefuseOutputs(const Net& net, const std::string& why);

}  // namespace crema

#endif  // CREMA_RUNTIME_REFUSE_INPUTS_H_
