#include "schema/wire_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/input_file.h"
#include "crema/error.h"

namespace crema {

static_assert(std::endian::native == std::endian::little, "weights are copied as they lie in the file");

namespace {

constexpr size_t kBuffer = 1 << 16;
constexpr int kMostNestedGroups = 100;

}  // namespace

WireReader::WireReader(const std::string& path, const std::string& kind) : path_(path), buffer_(kBuffer) {
  CheckRegularFile(path, kind);
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd_ < 0) FailToRead(path, errno);
  struct stat status = {};
  ::fstat(fd_, &status);
  size_ = static_cast<uint64_t>(status.st_size);
}

WireReader::WireReader(std::string_view bytes) : memory_(bytes), size_(bytes.size()), buffer_(kBuffer) {}

WireReader::~WireReader() {
  if (fd_ >= 0) ::close(fd_);
}

void WireReader::Seek(uint64_t position) {
  if (position >= buffer_at_ && position <= buffer_at_ + filled_) {
    next_ = position - buffer_at_;
    return;
  }
  buffer_at_ = position;
  next_ = filled_ = 0;
}

void WireReader::ReadAt(uint64_t position, void* to, uint64_t count) {
  if (fd_ < 0) {
    memory_.copy(static_cast<char*>(to), count, position);
    return;
  }
  char* out = static_cast<char*>(to);
  while (count > 0) {
    const ssize_t got = ::pread(fd_, out, std::min<uint64_t>(count, 1u << 30), static_cast<off_t>(position));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) FailToRead(path_, errno);
    if (got == 0) throw EnvironmentError(path_ + ": became shorter while it was read");
    out += got;
    position += got;
    count -= got;
  }
}

void WireReader::Fill() {
  buffer_at_ += next_;
  next_ = 0;
  filled_ = std::min<uint64_t>(kBuffer, size_ - std::min(buffer_at_, size_));
  ReadAt(buffer_at_, buffer_.data(), filled_);
}

uint8_t WireReader::Byte(uint64_t end) {
  if (position() >= end) throw WireError(position(), "the data ends in the middle of a value");
  if (next_ == filled_) Fill();
  return buffer_[next_++];
}

uint64_t WireReader::Varint(uint64_t end) {
  const uint64_t start = position();
  uint64_t value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    const uint64_t byte = Byte(end);
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  throw WireError(start, "a number is longer than ten bytes");
}

bool WireReader::NextTag(uint64_t end, WireTag* tag) {
  const uint64_t start = position();
  if (start >= end) return false;
  const uint64_t key = Varint(end);
  if (key >> 32 || (key >> 3) == 0 || (key & 7) > 5) throw WireError(start, "no field starts here");
  tag->field = static_cast<uint32_t>(key >> 3);
  tag->type = static_cast<WireType>(key & 7);
  return true;
}

void WireReader::Bytes(void* to, uint64_t count, uint64_t end) {
  if (count > end - std::min(position(), end)) throw WireError(position(), "the data ends in the middle of a value");
  const size_t buffered = static_cast<size_t>(std::min<uint64_t>(count, filled_ - next_));
  if (buffered > 0) std::memcpy(to, buffer_.data() + next_, buffered);
  next_ += buffered;
  const uint64_t rest = count - buffered;
  if (rest == 0) return;
  const uint64_t from = position();
  ReadAt(from, static_cast<char*>(to) + buffered, rest);
  Seek(from + rest);
}

uint32_t WireReader::Fixed32(uint64_t end) {
  uint32_t value = 0;
  Bytes(&value, sizeof(value), end);
  return value;
}

uint64_t WireReader::Fixed64(uint64_t end) {
  uint64_t value = 0;
  Bytes(&value, sizeof(value), end);
  return value;
}

uint64_t WireReader::Length(uint64_t end) {
  const uint64_t start = position();
  const uint64_t length = Varint(end);
  const uint64_t left = end - position();
  if (length > left) {
    throw WireError(start, "a field of " + std::to_string(length) + " bytes starts here, but only " +
                               std::to_string(left) + " are left");
  }
  return position() + length;
}

void WireReader::Skip(WireTag tag, uint64_t end) {
  std::vector<uint32_t> groups;
  do {
    const uint64_t start = position();
    switch (tag.type) {
      case WireType::kVarint:
        Varint(end);
        break;
      case WireType::kFixed64:
        Fixed64(end);
        break;
      case WireType::kFixed32:
        Fixed32(end);
        break;
      case WireType::kBytes:
        Seek(Length(end));
        break;
      case WireType::kStartGroup:
        groups.push_back(tag.field);
        if (groups.size() > kMostNestedGroups) throw WireError(start, "groups are nested too deeply");
        break;
      case WireType::kEndGroup:
        if (groups.empty() || groups.back() != tag.field) throw WireError(start, "a group ends that never began");
        groups.pop_back();
        break;
    }
    if (!groups.empty() && !NextTag(end, &tag)) throw WireError(position(), "a group does not end");
  } while (!groups.empty());
}

}  // namespace crema
