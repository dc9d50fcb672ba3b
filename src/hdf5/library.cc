#include "hdf5/files.h"

extern "C" {
extern const crema::Hdf5Library crema_hdf5_library;
const crema::Hdf5Library crema_hdf5_library{crema::kHdf5Interface, crema::hdf5::OpenFileAt, crema::hdf5::CreateFileAt};
}
