#include <algorithm>
#include <map>
#include <utility>

#include "crema/error.h"
#include "hdf5/files.h"
#include "hdf5/handle.h"

namespace crema::hdf5 {

namespace {

using FileHandle = Handle<H5Fclose>;
using DatasetHandle = Handle<H5Dclose>;
using Space = Handle<H5Sclose>;
using Properties = Handle<H5Pclose>;

constexpr hsize_t kChunkBytes = 1 << 16;  // about; at least a row

class Writer : public Hdf5Writer {
 public:
  explicit Writer(const std::string& path) : path_(path) {
    const Calls calls;
    const Properties access(H5Pcreate(H5P_FILE_ACCESS));
    // The oldest form that does, which Caffe's HDF5 reads; HDF5 2.0 would choose a newer one.
    H5Pset_libver_bounds(access.id(), H5F_LIBVER_EARLIEST, H5F_LIBVER_LATEST);
    file_ = std::make_unique<FileHandle>(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.id()));
    if (!file_->valid()) Fail();
  }
  ~Writer() override {
    const Calls calls;
    datasets_.clear();
    file_.reset();
  }

  const std::string& path() const override { return path_; }

  void Write(const std::string& name, const std::vector<int64_t>& extents, const float* values) override {
    const std::vector<hsize_t> dims(extents.begin(), extents.end());
    const Calls calls;
    const Space space(dims.empty() ? H5Screate(H5S_SCALAR)
                                   : H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr));
    WriteWhole(name, space, H5T_NATIVE_FLOAT, values);
  }

  void WriteInteger(const std::string& name, int value) override {
    const hsize_t one = 1;
    const Calls calls;
    WriteWhole(name, Space(H5Screate_simple(1, &one, nullptr)), H5T_NATIVE_INT, &value);
  }

  void WriteText(const std::string& name, const std::string& text) override {
    const Calls calls;
    const Handle<H5Tclose> type(H5Tcopy(H5T_C_S1));
    H5Tset_size(type.id(), text.size() + 1);
    WriteWhole(name, Space(H5Screate(H5S_SCALAR)), type.id(), text.c_str());
  }

  void WriteBytes(const std::string& name, const std::string& bytes) override {
    const hsize_t count = bytes.size();
    const Calls calls;
    WriteWhole(name, Space(H5Screate_simple(1, &count, nullptr)), H5T_NATIVE_UCHAR, bytes.data());
  }

  void MakeGroup(const std::string& name) override {
    const Calls calls;
    const Properties links = WithGroups();
    const Handle<H5Gclose> group(H5Gcreate2(file_->id(), name.c_str(), links.id(), H5P_DEFAULT, H5P_DEFAULT));
    if (!group.valid()) Fail();
  }

  void Append(const std::string& name, const std::vector<int64_t>& extents, const float* values) override {
    const Calls calls;
    const std::vector<hsize_t> added(extents.begin(), extents.end());
    auto at = datasets_.find(name);
    if (at == datasets_.end()) at = datasets_.emplace(name, Make(name, added)).first;
    Dataset& dataset = at->second;
    std::vector<hsize_t> whole = added, begin(added.size(), 0);
    begin[0] = dataset.rows;
    whole[0] += dataset.rows;
    if (H5Dset_extent(dataset.handle.id(), whole.data()) < 0) Fail();
    const Space in_file(H5Dget_space(dataset.handle.id()));
    const Space in_memory(H5Screate_simple(static_cast<int>(added.size()), added.data(), nullptr));
    if (H5Sselect_hyperslab(in_file.id(), H5S_SELECT_SET, begin.data(), nullptr, added.data(), nullptr) < 0 ||
        H5Dwrite(dataset.handle.id(), H5T_NATIVE_FLOAT, in_memory.id(), in_file.id(), H5P_DEFAULT, values) < 0) {
      Fail();
    }
    dataset.rows = whole[0];
  }

  void Flush() override {
    const Calls calls;
    if (H5Fflush(file_->id(), H5F_SCOPE_LOCAL) < 0) Fail();
  }

  void Close() override {
    Flush();
    const Calls calls;
    for (auto& [name, dataset] : datasets_) {
      if (!dataset.handle.Closes()) Fail();
    }
    if (!file_->Closes()) Fail();
  }

 private:
  struct Dataset {
    DatasetHandle handle;
    hsize_t rows = 0;
  };

  // Of links: what their names name is made as well.
  static Properties WithGroups() {
    Properties links(H5Pcreate(H5P_LINK_CREATE));
    H5Pset_create_intermediate_group(links.id(), 1);
    return links;
  }

  void WriteWhole(const std::string& name, const Space& space, hid_t type, const void* values) const {
    const Properties links = WithGroups(), without_time(H5Pcreate(H5P_DATASET_CREATE));
    // So that the same values make the same file.
    H5Pset_obj_track_times(without_time.id(), 0);
    DatasetHandle dataset(
        H5Dcreate2(file_->id(), name.c_str(), type, space.id(), links.id(), without_time.id(), H5P_DEFAULT));
    // Small ones are written when they are closed.
    if (!dataset.valid() || H5Dwrite(dataset.id(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0 ||
        !dataset.Closes()) {
      Fail();
    }
  }

  Dataset Make(const std::string& name, const std::vector<hsize_t>& added) const {
    std::vector<hsize_t> none = added, most = added, chunk = added;
    none[0] = 0;
    most[0] = H5S_UNLIMITED;
    hsize_t row_bytes = sizeof(float);
    for (size_t axis = 1; axis < added.size(); ++axis) row_bytes *= added[axis];
    chunk[0] = std::max<hsize_t>(1, kChunkBytes / row_bytes);
    const int axes = static_cast<int>(added.size());
    const Space space(H5Screate_simple(axes, none.data(), most.data()));
    const Properties links = WithGroups(), in_chunks(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_chunk(in_chunks.id(), axes, chunk.data());
    DatasetHandle handle(
        H5Dcreate2(file_->id(), name.c_str(), H5T_NATIVE_FLOAT, space.id(), links.id(), in_chunks.id(), H5P_DEFAULT));
    if (!handle.valid()) Fail();
    return {std::move(handle)};
  }

  [[noreturn]] void Fail() const {
    const std::string reason = LastError();
    std::string remedy;
    if (reason.find("unable to lock") != std::string::npos || reason.find("already open") != std::string::npos) {
      remedy =
          "; another program, or another net of this one, has it open: let only one write it (where the file "
          "system cannot lock, set HDF5_USE_FILE_LOCKING=FALSE)";
    }
    throw EnvironmentError("cannot write " + path_ + ": " + reason + remedy);
  }

  std::string path_;
  std::unique_ptr<FileHandle> file_;
  std::map<std::string, Dataset> datasets_;  // each still open
};

}  // namespace

std::unique_ptr<Hdf5Writer> CreateFileAt(const std::string& path) { return std::make_unique<Writer>(path); }

}  // namespace crema::hdf5
