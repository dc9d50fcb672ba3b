#include <algorithm>
#include <filesystem>
#include <limits>

#include "base/input_file.h"
#include "base/listed.h"
#include "base/suggest.h"
#include "crema/error.h"
#include "hdf5/files.h"
#include "hdf5/handle.h"

namespace crema::hdf5 {

namespace {

using FileHandle = Handle<H5Fclose>;
using Object = Handle<H5Oclose>;
using Type = Handle<H5Tclose>;
using Space = Handle<H5Sclose>;

const char* WhatItHolds(H5T_class_t kind) {
  switch (kind) {
    case H5T_STRING:
      return "text";
    case H5T_COMPOUND:
      return "compound values (records)";
    case H5T_VLEN:
      return "values of varying length";
    case H5T_ARRAY:
      return "arrays as values";
    case H5T_REFERENCE:
      return "references";
    case H5T_TIME:
      return "times";
    default:
      return "values that are no numbers";
  }
}

// Whether numbers of the type can be what they say; the library trusts what a damaged header says.
bool IsSound(hid_t type) {
  constexpr size_t kMostBytes = 16;
  const size_t bytes = H5Tget_size(type), bits = 8 * bytes;
  if (bytes == 0 || bytes > kMostBytes) return false;
  if (H5Tget_class(type) == H5T_ENUM) {
    const Type base(H5Tget_super(type));
    return base.valid() && H5Tget_class(base.id()) == H5T_INTEGER && IsSound(base.id());
  }
  const size_t precision = H5Tget_precision(type);
  const int offset = H5Tget_offset(type);
  if (precision == 0 || precision > bits || offset < 0 || static_cast<size_t>(offset) > bits - precision) return false;
  if (H5Tget_class(type) != H5T_FLOAT) return true;
  size_t sign = 0, exponent = 0, exponent_bits = 0, mantissa = 0, mantissa_bits = 0;
  if (H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) < 0) return false;
  const auto fits = [bits](size_t at, size_t count) { return count > 0 && count <= bits && at <= bits - count; };
  return sign < bits && fits(exponent, exponent_bits) && fits(mantissa, mantissa_bits);
}

// "group/data" -> "group"; "/" without one.
std::string GroupOf(const std::string& name) {
  const size_t slash = name.find_last_of('/');
  return slash == std::string::npos || slash == 0 ? "/" : name.substr(0, slash);
}

// Members are called by one thread at a time, with the lock (Calls) held.
class OpenFile {
 public:
  explicit OpenFile(const std::string& path) : path_(path), file_(Open(path)) {}

  [[noreturn]] void Fail(const std::string& message) const { throw UserError({path_}, message); }
  [[noreturn]] void Damaged(const std::string& what) const {
    const std::string reason = LastError();
    Fail(what + ": " + reason + "; is the file damaged, or compressed by a filter that this HDF5 does not have?");
  }

  Hdf5File::Names List(const std::string& group) const {
    Hdf5File::Names names;
    const Object at(H5Oopen(file_.id(), group.c_str(), H5P_DEFAULT));
    H5G_info_t info;
    if (!at.valid() || H5Gget_info(at.id(), &info) < 0) Damaged("its group \"" + group + "\" cannot be read");
    for (hsize_t i = 0; i < info.nlinks; ++i) {
      const std::string name = LinkName(at.id(), i);
      const Object object(H5Oopen(at.id(), name.c_str(), H5P_DEFAULT));
      if (!object.valid()) {
        names.unreadable.push_back(name);
        continue;
      }
      const H5I_type_t kind = H5Iget_type(object.id());
      if (kind == H5I_DATASET) names.datasets.push_back(name);
      if (kind == H5I_GROUP) names.groups.push_back(name);
    }
    return names;
  }

  H5I_type_t KindOf(const std::string& name) const {
    const Object object(H5Oopen(file_.id(), name.c_str(), H5P_DEFAULT));
    return object.valid() ? H5Iget_type(object.id()) : H5I_BADID;
  }

  // Of any values.
  Object AnyDataset(const std::string& name) const {
    Object object(H5Oopen(file_.id(), name.c_str(), H5P_DEFAULT));
    if (!object.valid() || H5Iget_type(object.id()) != H5I_DATASET) Missing(name, object.valid());
    // The library would read what a damaged header has not.
    const Handle<H5Pclose> properties(H5Dget_create_plist(object.id()));
    if (H5Pget_layout(properties.id()) == H5D_COMPACT) {
      const Space space(H5Dget_space(object.id()));
      const Type type(H5Dget_type(object.id()));
      const hssize_t values = H5Sget_simple_extent_npoints(space.id());
      const size_t bytes = H5Tget_size(type.id());
      if (values < 0 || bytes == 0 || H5Dget_storage_size(object.id()) / bytes < static_cast<hsize_t>(values)) {
        Damaged("its dataset \"" + name + "\" has less than it says");
      }
    }
    return object;
  }

  Object Dataset(const std::string& name) const {
    Object object = AnyDataset(name);
    const Type type(H5Dget_type(object.id()));
    const H5T_class_t kind = H5Tget_class(type.id());
    // Booleans of other languages are enumerations.
    if (kind != H5T_INTEGER && kind != H5T_FLOAT && kind != H5T_ENUM) {
      Fail("dataset \"" + name + "\" holds " + WhatItHolds(kind) + ", expected numbers (floats or integers)");
    }
    if (!IsSound(type.id())) Fail("dataset \"" + name + "\" holds numbers that cannot be; is the file damaged?");
    return object;
  }

  // What was never written reads as zeros, or whatever the file fills with.
  void ExpectWritten(const Object& dataset, const std::string& name) const {
    const Space space(H5Dget_space(dataset.id()));
    if (H5Sget_simple_extent_npoints(space.id()) <= 0) return;
    const Handle<H5Pclose> properties(H5Dget_create_plist(dataset.id()));
    const H5D_layout_t layout = H5Pget_layout(properties.id());
    if (layout == H5D_VIRTUAL) return ExpectSources(properties.id(), name);
    H5D_space_status_t status = H5D_SPACE_STATUS_ERROR;
    const bool has_files = layout == H5D_CONTIGUOUS && H5Pget_external_count(properties.id()) > 0;
    if (layout == H5D_COMPACT || has_files || H5Dget_space_status(dataset.id(), &status) < 0) return;
    // Chunks that are compressed count as a part.
    if (status != H5D_SPACE_STATUS_NOT_ALLOCATED) return;
    Fail("dataset \"" + name + "\" was never written: did the program that made it end early? Make it anew");
  }

  Space SpaceOf(const Object& dataset, const std::string& name, std::vector<int64_t>* extents) const {
    Space space(H5Dget_space(dataset.id()));
    const H5S_class_t kind = H5Sget_simple_extent_type(space.id());
    if (kind != H5S_SIMPLE && kind != H5S_SCALAR) Fail("dataset \"" + name + "\" holds nothing");
    std::vector<hsize_t> dims(static_cast<size_t>(H5Sget_simple_extent_ndims(space.id())));
    if (!dims.empty()) H5Sget_simple_extent_dims(space.id(), dims.data(), nullptr);
    hsize_t most = static_cast<hsize_t>(std::numeric_limits<int64_t>::max()) / sizeof(float);
    extents->clear();
    for (const hsize_t dim : dims) {
      if (dim > most) Fail("dataset \"" + name + "\" says it has more values than any memory holds; is it damaged?");
      if (dim > 0) most /= dim;
      extents->push_back(static_cast<int64_t>(dim));
    }
    return space;
  }

  std::string Text(const std::string& name) const {
    const Object object = AnyDataset(name);
    const Type type(H5Dget_type(object.id()));
    const Space space(H5Dget_space(object.id()));
    if (H5Tget_class(type.id()) != H5T_STRING || H5Sget_simple_extent_npoints(space.id()) != 1) {
      Fail("dataset \"" + name + "\" is expected to hold one text");
    }
    std::string text;
    if (H5Tis_variable_str(type.id()) > 0) {
      char* read = nullptr;
      if (H5Dread(object.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, &read) < 0) Unread(name);
      if (read) text = read;
      H5Dvlen_reclaim(type.id(), space.id(), H5P_DEFAULT, &read);
    } else {
      text.resize(H5Tget_size(type.id()));
      if (H5Dread(object.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()) < 0) Unread(name);
      text.resize(std::min(text.size(), text.find('\0')));
    }
    return text;
  }

  [[noreturn]] void Unread(const std::string& name) const { Damaged("dataset \"" + name + "\" cannot be read"); }

  const std::string& path() const { return path_; }

 private:
  // Of a dataset that is made of others.
  void ExpectSources(hid_t properties, const std::string& name) const {
    size_t count = 0;
    H5Pget_virtual_count(properties, &count);
    for (size_t i = 0; i < count; ++i) {
      const ssize_t length = H5Pget_virtual_filename(properties, i, nullptr, 0);
      if (length <= 0) continue;
      std::string source(static_cast<size_t>(length) + 1, '\0');
      H5Pget_virtual_filename(properties, i, source.data(), source.size());
      source.pop_back();
      // "." is this file; with % it is several.
      if (source == "." || source.find('%') != std::string::npos) continue;
      std::error_code ignored;
      const std::filesystem::path beside = std::filesystem::path(path_).parent_path() / source;
      if (std::filesystem::exists(source, ignored) || std::filesystem::exists(beside, ignored)) continue;
      Fail("dataset \"" + name + "\" is made of others, but there is no file \"" + source +
           "\"; bring it, or correct the path");
    }
  }

  static FileHandle Open(const std::string& path) {
    FileHandle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
    if (file.valid()) return file;
    const std::string reason = LastError();
    if (H5Fis_hdf5(path.c_str()) <= 0) throw UserError({path}, "is not an HDF5 file");
    if (reason.find("unable to lock") != std::string::npos) {
      FailToRead(path, reason +
                           "; another program has it open for writing: wait for it, or end it (where the file "
                           "system cannot lock, set HDF5_USE_FILE_LOCKING=FALSE)");
    }
    throw UserError({path}, "is cut short or damaged: " + reason + "; was it copied or downloaded in full?");
  }

  std::string LinkName(hid_t group, hsize_t i) const {
    const auto get = [&](char* name, size_t bytes) {
      return H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, name, bytes, H5P_DEFAULT);
    };
    const ssize_t length = get(nullptr, 0);
    if (length < 0) Damaged("its names cannot be read");
    std::string name(static_cast<size_t>(length) + 1, '\0');
    get(name.data(), name.size());
    name.resize(static_cast<size_t>(length));
    return name;
  }

  [[noreturn]] void Missing(const std::string& name, bool is_group) const {
    if (is_group) Fail("\"" + name + "\" is a group, expected a dataset");
    std::string group = GroupOf(name);
    if (KindOf(group) != H5I_GROUP) group = "/";
    const std::string prefix = group == "/" ? "" : group + "/";
    const Hdf5File::Names listed = List(group);
    for (const std::string& link : listed.unreadable) {
      if (prefix + link == name) Fail("\"" + name + "\" is a link that leads nowhere, or is damaged; mend the file");
    }
    std::vector<std::string> names = listed.datasets;
    for (std::string& one : names) one = prefix + one;
    const std::string where = group == "/" ? "it" : "its group \"" + group + "\"";
    Fail("has no dataset \"" + name + "\" (" + where + " has " +
         (names.empty() ? "none" : Listed(names, {.quoted = true})) + ")" + DidYouMean(name, names));
  }

  std::string path_;
  FileHandle file_;
};

class File : public Hdf5File {
 public:
  explicit File(const std::string& path) {
    const Calls calls;
    file_ = std::make_unique<OpenFile>(path);
  }
  ~File() override {
    const Calls calls;
    file_.reset();
  }

  const std::string& path() const override { return file_->path(); }

  Names List(const std::string& group) const override {
    const Calls calls;
    return file_->List(group);
  }

  bool HasGroup(const std::string& group) const override {
    const Calls calls;
    return file_->KindOf(group) == H5I_GROUP;
  }

  std::vector<int64_t> Extents(const std::string& dataset) const override {
    const Calls calls;
    std::vector<int64_t> extents;
    const Object object = file_->Dataset(dataset);
    file_->SpaceOf(object, dataset, &extents);
    file_->ExpectWritten(object, dataset);
    return extents;
  }

  bool Grows(const std::string& dataset) const override {
    const Calls calls;
    const Object object = file_->Dataset(dataset);
    const Space space(H5Dget_space(object.id()));
    std::vector<hsize_t> most(static_cast<size_t>(std::max(0, H5Sget_simple_extent_ndims(space.id()))));
    return !most.empty() && H5Sget_simple_extent_dims(space.id(), nullptr, most.data()) >= 0 &&
           most[0] == H5S_UNLIMITED;
  }

  void Read(const std::string& dataset, float* values) const override {
    const Calls calls;
    const Object object = file_->Dataset(dataset);
    if (H5Dread(object.id(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0) {
      file_->Unread(dataset);
    }
  }

  int64_t ReadInteger(const std::string& dataset) const override {
    const Calls calls;
    const Object object = file_->Dataset(dataset);
    std::vector<int64_t> extents;
    const Space space = file_->SpaceOf(object, dataset, &extents);
    if (H5Sget_simple_extent_npoints(space.id()) != 1) {
      file_->Fail("dataset \"" + dataset + "\" is expected to hold one number");
    }
    int64_t value = 0;
    if (H5Dread(object.id(), H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value) < 0) file_->Unread(dataset);
    return value;
  }

  std::string ReadText(const std::string& dataset) const override {
    const Calls calls;
    return file_->Text(dataset);
  }

  std::string ReadBytes(const std::string& dataset) const override {
    const Calls calls;
    const Object object = file_->Dataset(dataset);
    std::vector<int64_t> extents;
    file_->SpaceOf(object, dataset, &extents);
    if (extents.size() != 1) file_->Fail("dataset \"" + dataset + "\" is expected to be a row of bytes");
    std::error_code ignored;
    if (static_cast<uintmax_t>(extents[0]) > std::filesystem::file_size(path(), ignored)) {
      file_->Fail("dataset \"" + dataset + "\" says that it is larger than the file; is it damaged?");
    }
    std::string bytes(static_cast<size_t>(extents[0]), '\0');
    if (H5Dread(object.id(), H5T_NATIVE_UCHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()) < 0) {
      file_->Unread(dataset);
    }
    return bytes;
  }

  void ReadRows(const std::string& dataset, int64_t begin, int64_t end, float* values) const override {
    const Calls calls;
    const Object object = file_->Dataset(dataset);
    std::vector<int64_t> extents;
    const Space all = file_->SpaceOf(object, dataset, &extents);
    if (extents.empty() || begin < 0 || begin > end || end > extents[0]) {
      file_->Fail("dataset \"" + dataset + "\" has no rows " + std::to_string(begin) + " to " + std::to_string(end));
    }
    if (begin == end) return;
    std::vector<hsize_t> start(extents.size(), 0), count(extents.begin(), extents.end());
    start[0] = static_cast<hsize_t>(begin);
    count[0] = static_cast<hsize_t>(end - begin);
    const Space rows(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr));
    if (H5Sselect_hyperslab(all.id(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr) < 0 ||
        H5Dread(object.id(), H5T_NATIVE_FLOAT, rows.id(), all.id(), H5P_DEFAULT, values) < 0) {
      file_->Unread(dataset);
    }
  }

 private:
  std::unique_ptr<OpenFile> file_;
};

}  // namespace

std::unique_ptr<Hdf5File> OpenFileAt(const std::string& path) { return std::make_unique<File>(path); }

}  // namespace crema::hdf5
