// Tells copies of data apart, so that no worker trains on other records than the rest.
#ifndef CREMA_DISTRIBUTED_TRAINING_DATA_FINGERPRINT_H_
#define CREMA_DISTRIBUTED_TRAINING_DATA_FINGERPRINT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "crema/net.pb.h"

namespace crema {

// Of a database: of the number of records, and of the bytes of 64 of them, evenly spread, the first and the last among
// them. Of a list of images: of its paths, and labels; of videos of its numbers, too. Of a window file: of its bytes.
// Of HDF5 files: of their numbers of rows, and of 64 rows, likewise. `files`: of the images that 64 lines of lists and
// window files name, of videos their first frames, where all of them can be read here; else `unreadable` says which
// cannot. `value` is of the bytes of the layer's mean_file, too.
struct DataFingerprint {
  std::string layer;
  std::string path;  // where it was found
  uint64_t value = 0;
  std::optional<uint64_t> files = {};
  std::string unreadable = {};

  bool operator==(const DataFingerprint&) const = default;
};

// What the layer reads, as the file says it: the database of Data or AnnotatedData, the list of ImageData,
// DenseImageData, ImageSegData, ImageLabelmapData, VideoData, WindowData or HDF5Data; empty for other types.
std::string DataSourceOf(const LayerParameter& layer);
// Whether that is a database.
bool ReadsDatabase(const LayerParameter& layer);

// Lets the layers of those types read `path`: a database; a list, or the folder that its paths are relative to or that
// a list of the same name lies in (HDF5Data).
void ReadDataFrom(const std::string& path, NetParameter* net);

// Of every such layer of the net. Relative paths are looked for in the working directory, then in `folders`. Throws as
// OpenRecordSource, ReadImageList, ReadFileBytes and LookAtHdf5Files do.
std::vector<DataFingerprint> FingerprintData(const NetParameter& net, const std::vector<std::string>& folders);

// Throws UserError where one of these layers reads what is not here, or other records than `known` says of a layer of
// its name, whose paths are not looked at. `flag`: with which a path on this machine is given; `what`: stands before
// the layer in messages.
void RequireSameData(const NetParameter& net, const std::vector<std::string>& folders,
                     const std::vector<DataFingerprint>& known, const std::string& flag, const std::string& what);

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_TRAINING_DATA_FINGERPRINT_H_
