// HDF5 files for tests, written with the HDF5 library itself.
#ifndef CREMA_TESTS_HDF5_HDF5_WRITER_H_
#define CREMA_TESTS_HDF5_HDF5_WRITER_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "temporary_folder.h"

namespace crema::testing {

// False where this build has no HDF5.
bool HasHdf5();

struct Hdf5Dataset {
  enum Type { kFloat, kDouble, kInt8, kInt64, kUint8, kUint16, kBool, kText, kRecord };

  std::string name;              // groups in front of it are made
  std::vector<int64_t> extents;  // empty: a single value
  std::vector<double> values;    // empty: none is written
  Type type = kFloat;
  int64_t chunk_rows = 0;  // 0: contiguous; else in compressed chunks
};

// `groups` are made besides those of the datasets.
void WriteHdf5(const std::string& path, const std::vector<Hdf5Dataset>& datasets,
               const std::vector<std::string>& groups = {});

// `count` values from `first` on, each one more than the last.
std::vector<double> Ramp(int64_t count, double first = 0);

// Skips, saying so, where this build has no HDF5.
class Hdf5Test : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasHdf5()) GTEST_SKIP() << "built without HDF5 (libhdf5-dev)";
  }
  TemporaryFolder folder_;
};

}  // namespace crema::testing

#endif  // CREMA_TESTS_HDF5_HDF5_WRITER_H_
