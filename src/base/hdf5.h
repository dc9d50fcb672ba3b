// Reading and writing HDF5 files, through libcrema_hdf5: a library of its own, loaded when the first such file is
// opened, because HDF5 brings some forty other libraries along.
#ifndef CREMA_BASE_HDF5_H_
#define CREMA_BASE_HDF5_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace crema {

// An open file. Datasets are named by paths ("data", "group/data"). May be used by any thread; the calls of all files
// take turns. All functions throw UserError at the file where it does not hold what is asked for, or is damaged.
class Hdf5File {
 public:
  struct Names {
    std::vector<std::string> datasets, groups;  // each in the order of their names
    std::vector<std::string> unreadable;        // links that lead nowhere, and what is damaged
  };

  virtual ~Hdf5File() = default;

  virtual const std::string& path() const = 0;
  // What lies directly in a group; "/" is the file's own.
  virtual Names List(const std::string& group) const = 0;
  virtual bool HasGroup(const std::string& group) const = 0;
  // Empty for a single value. The dataset holds numbers, which were written: others throw.
  virtual std::vector<int64_t> Extents(const std::string& dataset) const = 0;
  // Whether rows can be added to it.
  virtual bool Grows(const std::string& dataset) const = 0;
  // All values in C order, as HDF5 itself turns floats and integers of any size into float.
  virtual void Read(const std::string& dataset, float* values) const = 0;
  // Those of [begin, end) of the first axis.
  virtual void ReadRows(const std::string& dataset, int64_t begin, int64_t end, float* values) const = 0;
  // Of a dataset of one whole number.
  virtual int64_t ReadInteger(const std::string& dataset) const = 0;
  // Of a dataset of one string, or of bytes (integers from 0 to 255).
  virtual std::string ReadText(const std::string& dataset) const = 0;
  virtual std::string ReadBytes(const std::string& dataset) const = 0;
};

// Throws UserError where `path` is absent, no HDF5 file, or cut short; EnvironmentError where it cannot be read, or
// where this crema has no HDF5. CREMA_HDF5_LIBRARY names another library than the libcrema_hdf5.so beside libcrema.
std::unique_ptr<Hdf5File> OpenHdf5(const std::string& path);

// A file that is being written. Any HDF5 from 1.6 on reads it. Groups in the name of a dataset are made with it. May be
// used by any thread; the calls of all files take turns. All functions throw EnvironmentError, with the file and the
// cause, where the disk is full or the file cannot be written.
class Hdf5Writer {
 public:
  // Closes the file.
  virtual ~Hdf5Writer() = default;

  virtual const std::string& path() const = 0;
  // A whole dataset; without extents a single value. None may be 0.
  virtual void Write(const std::string& dataset, const std::vector<int64_t>& extents, const float* values) = 0;
  virtual void WriteInteger(const std::string& dataset, int value) = 0;
  // As H5LTmake_dataset_string writes it, which Caffe reads; not empty.
  virtual void WriteText(const std::string& dataset, const std::string& text) = 0;
  // Unsigned integers of a byte; not empty.
  virtual void WriteBytes(const std::string& dataset, const std::string& bytes) = 0;
  virtual void MakeGroup(const std::string& group) = 0;
  // Adds rows to a dataset of floats, which the first call makes. `extents`, each at least 1, are those of what is
  // added: the first one counts its rows, the others are the same in every call.
  virtual void Append(const std::string& dataset, const std::vector<int64_t>& extents, const float* values) = 0;
  // Hands everything to the system: the file is whole, also where the process is killed before it adds more.
  virtual void Flush() = 0;
  // Flushes and closes the file, of which nothing else may be asked then. Its destructor closes it, too, but cannot say
  // that something could not be written.
  virtual void Close() = 0;
};

// Makes the file, empty, in place of any that is there. Throws EnvironmentError where it cannot be written, or where
// this crema has no HDF5.
std::unique_ptr<Hdf5Writer> CreateHdf5(const std::string& path);

// What libcrema_hdf5 exports under the name "crema_hdf5_library".
constexpr int kHdf5Interface = 4;
struct Hdf5Library {
  int interface_version;
  std::unique_ptr<Hdf5File> (*open)(const std::string& path);
  std::unique_ptr<Hdf5Writer> (*create)(const std::string& path);
};

// Whether the file begins as HDF5 files do; false where it cannot be read.
bool BeginsAsHdf5(const std::string& path);

}  // namespace crema

#endif  // CREMA_BASE_HDF5_H_
