// Types of layers at the border between a net and what is around it.
#ifndef CREMA_GRAPH_BOUNDARY_TYPES_H_
#define CREMA_GRAPH_BOUNDARY_TYPES_H_

#include <string_view>

namespace crema {

// Whether the program that runs the net writes the tops of layers of this type (Net::inputs).
inline bool IsInputType(std::string_view type) { return type == "Input" || type == "MemoryData"; }

// Whether layers of this type take what the net made out of it: they make nothing, and read their bottoms in the host's
// memory, on a GPU when the pass is over.
inline bool IsOutputType(std::string_view type) { return type == "HDF5Output"; }

}  // namespace crema

#endif  // CREMA_GRAPH_BOUNDARY_TYPES_H_
