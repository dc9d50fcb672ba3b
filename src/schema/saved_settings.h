// What a file of weights tells of the net that saved it.
#ifndef CREMA_SCHEMA_SAVED_SETTINGS_H_
#define CREMA_SCHEMA_SAVED_SETTINGS_H_

#include <string>
#include <vector>

namespace crema {

// BN layers of a .caffemodel, by name, that have SegNet's fields and normalise by the batch; none where it does not
// hold the net, as files of HDF5 do not. Throws as ReadWeights does.
std::vector<std::string> SegNetLayersThatNormalize(const std::string& path);

}  // namespace crema

#endif  // CREMA_SCHEMA_SAVED_SETTINGS_H_
