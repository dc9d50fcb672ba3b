// Darknet's activations.
#ifndef CREMA_DARKNET_ACTIVATION_H_
#define CREMA_DARKNET_ACTIVATION_H_

#include <string>
#include <vector>

#include "darknet/net_reader.h"

namespace crema::darknet {

// What the section's key "activation" says; one that crema has no layer for is complained about. `fallback`: Darknet's
// default for the section.
std::string ReadActivation(SectionReader& section, const std::string& fallback);

// Appends it, as ReadActivation returned it, in place.
void Activate(SectionReader& section, const std::string& activation, const Value& value);

// All that there are.
std::vector<std::string> ActivationNames();

}  // namespace crema::darknet

#endif  // CREMA_DARKNET_ACTIVATION_H_
