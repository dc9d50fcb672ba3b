#include "darknet/weights_file.h"

#include <array>
#include <filesystem>

#include "base/check.h"
#include "base/input_file.h"
#include "crema/error.h"

namespace crema::darknet {

namespace {

constexpr int64_t kVersionBytes = 12, kShortHeader = 16, kLongHeader = 20;
constexpr int32_t kOldMark = 1000;

}  // namespace

WeightsFile::WeightsFile(const std::string& path) : path_(path) {
  CheckRegularFile(path, ".weights");
  file_.open(path, std::ios::binary);
  left_ = size_ = static_cast<int64_t>(std::filesystem::file_size(path));
  if (size_ < kShortHeader) {
    throw UserError({path, 0, 0}, "has " + std::to_string(size_) + " bytes; a .weights of Darknet begins with " +
                                      std::to_string(kShortHeader) + " or " + std::to_string(kLongHeader) +
                                      " bytes of header; was the file cut short?");
  }
  std::array<int32_t, 3> version{};
  ReadBytes(kVersionBytes, version.data());
  const int64_t major = version[0], minor = version[1];
  transposed_ = major > kOldMark || minor > kOldMark;
  header_ = major * 10 + minor >= 2 && major < kOldMark && minor < kOldMark ? kLongHeader : kShortHeader;
  if (size_ < header_) {
    throw UserError({path, 0, 0}, "has " + std::to_string(size_) + " bytes; the header of version " +
                                      std::to_string(major) + "." + std::to_string(minor) + " alone has " +
                                      std::to_string(header_) + "; was the file cut short?");
  }
  std::array<char, kLongHeader - kVersionBytes> images{};
  ReadBytes(header_ - kVersionBytes, images.data());
}

void WeightsFile::Read(int64_t count, float* to) { ReadBytes(count * static_cast<int64_t>(sizeof(float)), to); }

void WeightsFile::ReadBytes(int64_t count, void* to) {
  CREMA_CHECK(count <= left_) << count << " of " << left_;
  file_.read(static_cast<char*>(to), count);
  if (!file_) FailToRead(path_, file_);
  left_ -= count;
}

}  // namespace crema::darknet
