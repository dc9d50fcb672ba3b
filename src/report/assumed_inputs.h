// Nets without their files: layers that read data become Input layers of given shapes, layers that write it nothing.
#ifndef CREMA_REPORT_ASSUMED_INPUTS_H_
#define CREMA_REPORT_ASSUMED_INPUTS_H_

#include <string>
#include <utility>
#include <vector>

#include "crema/files.h"
#include "crema/tensor.h"

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

}  // namespace crema

#endif  // CREMA_REPORT_ASSUMED_INPUTS_H_
