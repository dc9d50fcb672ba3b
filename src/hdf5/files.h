// What the library offers (base/hdf5.h).
#ifndef CREMA_HDF5_FILES_H_
#define CREMA_HDF5_FILES_H_

#include <memory>
#include <string>

#include "base/hdf5.h"

namespace crema::hdf5 {

std::unique_ptr<Hdf5File> OpenFileAt(const std::string& path);
std::unique_ptr<Hdf5Writer> CreateFileAt(const std::string& path);

}  // namespace crema::hdf5

#endif  // CREMA_HDF5_FILES_H_
