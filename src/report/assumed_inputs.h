// Nets without their files: layers that read data become Input layers of given shapes, layers that write it nothing.
#ifndef CREMA_REPORT_ASSUMED_INPUTS_H_
#define CREMA_REPORT_ASSUMED_INPUTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "crema/files.h"
#include "crema/net.h"
#include "crema/tensor.h"
#include "graph/program.h"

namespace crema {

// Shapes by the name of a blob, as --shape gives them.
using BlobShapes = std::vector<std::pair<std::string, Shape>>;

// Whether the layer's tops come from files or from the program around the net.
bool ReadsData(const LayerParameter& layer);

// Turns layers that read data, and layers without bottoms whose type is unknown here, into Input layers where `shapes`
// has every top. `only_unknown`: leaves those alone whose type exists. Places in the file stay valid.
NetFile AssumeInputs(NetFile file, const BlobShapes& shapes, bool only_unknown);

// Turns layers that write files (HDF5Output) into Silence, for nets that are only measured: what such a file holds is
// worth more.
NetFile WithoutWriters(NetFile file);

// The shapes of all that comes into the net, with `wanted` for the first extents that are `batch`.
BlobShapes ShapesForBatch(const Graph& graph, int64_t batch, int64_t wanted);

// The net, made with `options`, for one item more in each input of `batch`: what has another extent counts items.
// Throws UserError where it cannot be had, as with a Reshape to so many.
std::unique_ptr<CompiledNet> CompileForOneMore(const CompiledNet& net, NetOptions options, int64_t batch);

}  // namespace crema

#endif  // CREMA_REPORT_ASSUMED_INPUTS_H_
