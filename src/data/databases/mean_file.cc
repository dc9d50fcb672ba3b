#include "data/databases/mean_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>

#include "base/atomic_file.h"
#include "base/check.h"
#include "base/input_file.h"
#include "crema/blob.pb.h"
#include "crema/error.h"
#include "schema/blob_shape.h"
#include "schema/wire_bytes.h"

namespace crema {

namespace {

constexpr size_t kImageAxes = 3, kVolumeAxes = 4;

[[noreturn]] void NoMean(const std::string& path, const std::string& why, size_t axes = kImageAxes) {
  throw UserError("mean file \"" + path + "\" " + why + "; expected a binaryproto of " +
                  (axes == kImageAxes ? "channels x height x width values as compute_image_mean writes it"
                                      : "1 x channels x length x height x width values"));
}

Shape MeanShape(const std::string& path, const BlobProto& blob, size_t axes) {
  const Shape whole = ShapeOf(blob);
  std::vector<int64_t> dims = whole.dims();
  if (dims.size() == axes + 1 && dims[0] == 1) dims.erase(dims.begin());
  if (dims.size() != axes) NoMean(path, "holds " + whole.ToString() + " values", axes);
  int64_t count = 1;
  for (const int64_t extent : dims) {
    if (extent <= 0 || extent > INT32_MAX || (count *= extent) > INT32_MAX) {
      NoMean(path, "is damaged: it says it holds " + whole.ToString() + " values", axes);
    }
  }
  return Shape(std::move(dims));
}

MeanImage Read(const std::string& path, size_t axes) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
    throw UserError("mean file \"" + path +
                    "\" does not exist; make it with compute_image_mean, or give one mean_value " +
                    "per channel instead");
  }
  ExpectFile(path, "a mean file");
  BlobProto blob;
  if (!blob.ParseFromString(ReadFileText(path))) NoMean(path, "is not a binary BlobProto", axes);
  MeanImage mean;
  mean.shape = MeanShape(path, blob, axes);
  if (blob.data_size() > 0) {
    mean.values.assign(blob.data().begin(), blob.data().end());
  } else {
    mean.values.assign(blob.double_data().begin(), blob.double_data().end());
  }
  if (static_cast<int64_t>(mean.values.size()) != mean.shape.count()) {
    NoMean(path,
           "is damaged: it says it is " + mean.shape.ToString() + ", but it holds " +
               std::to_string(mean.values.size()) + " values",
           axes);
  }
  const auto odd = std::find_if_not(mean.values.begin(), mean.values.end(), [](float v) { return std::isfinite(v); });
  if (odd != mean.values.end()) {
    NoMean(path, "is damaged: its value " + std::to_string(odd - mean.values.begin()) + " is no finite number", axes);
  }
  return mean;
}

}  // namespace

MeanImage ReadMean(const std::string& path) { return Read(path, kImageAxes); }

MeanImage ReadVolumeMean(const std::string& path) { return Read(path, kVolumeAxes); }

void WriteMean(const MeanImage& mean, const std::string& path) {
  CREMA_CHECK(mean.shape.axes() == 3) << "mean of shape " << mean.shape.ToString();
  BlobProto blob;
  blob.set_num(1);
  blob.set_channels(static_cast<int32_t>(mean.shape[0]));
  blob.set_height(static_cast<int32_t>(mean.shape[1]));
  blob.set_width(static_cast<int32_t>(mean.shape[2]));
  blob.mutable_data()->Add(mean.values.begin(), mean.values.end());
  WriteWholeFile(path, WireBytes(blob));
}

}  // namespace crema
