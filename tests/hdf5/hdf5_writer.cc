#include "hdf5/hdf5_writer.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#ifdef CREMA_HAS_HDF5
#include <hdf5.h>
#endif

namespace crema::testing {

std::vector<double> Ramp(int64_t count, double first) {
  std::vector<double> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), first);
  return values;
}

#ifdef CREMA_HAS_HDF5

namespace {

hid_t Checked(hid_t id, const std::string& what) {
  if (id < 0) throw std::runtime_error("the test cannot write " + what);
  return id;
}

hid_t TypeOf(Hdf5Dataset::Type type) {
  switch (type) {
    case Hdf5Dataset::kFloat:
      return H5Tcopy(H5T_IEEE_F32BE);
    case Hdf5Dataset::kDouble:
      return H5Tcopy(H5T_IEEE_F64LE);
    case Hdf5Dataset::kInt8:
      return H5Tcopy(H5T_STD_I8LE);
    case Hdf5Dataset::kInt64:
      return H5Tcopy(H5T_STD_I64BE);
    case Hdf5Dataset::kUint8:
      return H5Tcopy(H5T_STD_U8LE);
    case Hdf5Dataset::kUint16:
      return H5Tcopy(H5T_STD_U16LE);
    case Hdf5Dataset::kBool: {
      const hid_t type = H5Tenum_create(H5T_NATIVE_INT8);
      const int8_t no = 0, yes = 1;
      H5Tenum_insert(type, "FALSE", &no);
      H5Tenum_insert(type, "TRUE", &yes);
      return type;
    }
    case Hdf5Dataset::kText: {
      const hid_t type = H5Tcopy(H5T_C_S1);
      H5Tset_size(type, sizeof(double));
      return type;
    }
    case Hdf5Dataset::kRecord: {
      const hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(double));
      H5Tinsert(type, "x", 0, H5T_NATIVE_DOUBLE);
      return type;
    }
  }
  return -1;
}

void Write(hid_t file, hid_t links, const Hdf5Dataset& dataset) {
  const std::vector<hsize_t> dims(dataset.extents.begin(), dataset.extents.end());
  const hid_t type = Checked(TypeOf(dataset.type), "a type");
  const hid_t space =
      dims.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr);
  const hid_t options = H5Pcreate(H5P_DATASET_CREATE);
  if (dataset.chunk_rows > 0) {
    std::vector<hsize_t> chunk = dims;
    chunk[0] = static_cast<hsize_t>(std::min(dataset.chunk_rows, std::max<int64_t>(1, dataset.extents[0])));
    H5Pset_chunk(options, static_cast<int>(chunk.size()), chunk.data());
    H5Pset_deflate(options, 6);
  }
  const hid_t id =
      Checked(H5Dcreate2(file, dataset.name.c_str(), type, space, links, options, H5P_DEFAULT), dataset.name);
  herr_t status = 0;
  const bool is_empty = std::find(dims.begin(), dims.end(), hsize_t{0}) != dims.end();
  if (dataset.values.empty() && !is_empty) {
    // Made, and never written.
  } else if (dataset.type == Hdf5Dataset::kText || dataset.type == Hdf5Dataset::kRecord) {
    status = H5Dwrite(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, dataset.values.data());
  } else if (dataset.type == Hdf5Dataset::kBool) {
    const std::vector<int8_t> flags(dataset.values.begin(), dataset.values.end());
    status = H5Dwrite(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, flags.data());
  } else {
    status = H5Dwrite(id, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, dataset.values.data());
  }
  Checked(status, dataset.name);
  H5Dclose(id);
  H5Pclose(options);
  H5Sclose(space);
  H5Tclose(type);
}

}  // namespace

bool HasHdf5() { return true; }

void WriteHdf5(const std::string& path, const std::vector<Hdf5Dataset>& datasets,
               const std::vector<std::string>& groups) {
  const hid_t file = Checked(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), path);
  const hid_t links = H5Pcreate(H5P_LINK_CREATE);
  H5Pset_create_intermediate_group(links, 1);
  for (const std::string& group : groups) {
    H5Gclose(Checked(H5Gcreate2(file, group.c_str(), links, H5P_DEFAULT, H5P_DEFAULT), group));
  }
  for (const Hdf5Dataset& dataset : datasets) Write(file, links, dataset);
  H5Pclose(links);
  Checked(H5Fclose(file), path);
}

#else

bool HasHdf5() { return false; }

void WriteHdf5(const std::string&, const std::vector<Hdf5Dataset>&, const std::vector<std::string>&) {
  throw std::runtime_error("built without HDF5");
}

#endif

}  // namespace crema::testing
