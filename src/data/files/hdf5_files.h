// The HDF5 files that the layer HDF5Data reads, and what lies in them.
#ifndef CREMA_DATA_FILES_HDF5_FILES_H_
#define CREMA_DATA_FILES_HDF5_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "crema/tensor.h"

namespace crema {

// Datasets of the same names in every file. The first axis counts rows, of which all datasets of a file have the same
// number; the other extents of a dataset are those of every file.
struct Hdf5Files {
  std::vector<std::string> paths;
  std::vector<uint64_t> rows;         // of each file
  std::vector<std::string> datasets;  // their names
  std::vector<Shape> row_shapes;      // of one row of each dataset

  uint64_t row_count() const;
};

// The files that a list names, one per line; blank lines are left out. A path is taken as it is, or else from beside
// the list. Throws UserError at the lines (the first 20) that name none, EnvironmentError where the list cannot be
// read.
std::vector<std::string> ReadHdf5List(const std::string& list);

// Opens every file of the list. Throws UserError, naming file and dataset, where they are not as above or have no rows
// at all.
Hdf5Files LookAtHdf5Files(const std::string& list, const std::vector<std::string>& datasets);

}  // namespace crema

#endif  // CREMA_DATA_FILES_HDF5_FILES_H_
