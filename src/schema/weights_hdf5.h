// Weights in HDF5 (.caffemodel.h5), as Caffe writes them where snapshot_format is HDF5.
#ifndef CREMA_SCHEMA_WEIGHTS_HDF5_H_
#define CREMA_SCHEMA_WEIGHTS_HDF5_H_

#include <string>
#include <vector>

#include "crema/files.h"

namespace crema {

// Datasets "0", "1", ... of the group /data/<layer name>, in the order of the names; groups nest where a name holds
// '/'. Layers without blobs are left out: one that shares all its parameters has none. Throws as OpenHdf5 does, and
// UserError where the file holds something else.
std::vector<LayerWeights> ReadHdf5Weights(const std::string& path);

}  // namespace crema

#endif  // CREMA_SCHEMA_WEIGHTS_HDF5_H_
