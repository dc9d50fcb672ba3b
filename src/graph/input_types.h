// Layers whose tops nobody in crema makes.
#ifndef CREMA_GRAPH_INPUT_TYPES_H_
#define CREMA_GRAPH_INPUT_TYPES_H_

#include <string_view>

namespace crema {

// Whether the program that runs the net writes the tops of layers of this type (Net::inputs).
inline bool IsInputType(std::string_view type) { return type == "Input" || type == "MemoryData"; }

}  // namespace crema

#endif  // CREMA_GRAPH_INPUT_TYPES_H_
