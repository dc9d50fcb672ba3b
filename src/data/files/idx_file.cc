#include "data/files/idx_file.h"

#include <sys/stat.h>

#include <cerrno>

#include "base/input_file.h"
#include "crema/error.h"

namespace crema {

namespace {

constexpr int64_t kMaxItemBytes = int64_t{1} << 28;
constexpr uint32_t kUnsignedBytes = 0x08;

const char* ElementName(uint32_t code) {
  switch (code) {
    case 0x09:
      return "signed bytes";
    case 0x0B:
      return "16-bit integers";
    case 0x0C:
      return "32-bit integers";
    case 0x0D:
      return "floats";
    case 0x0E:
      return "doubles";
    default:
      return nullptr;
  }
}

}  // namespace

IdxReader::IdxReader(const std::string& path, int axes, const std::string& what) : path_(path), what_(what) {
  ExpectFile(path, "the IDX file with the " + what);
  file_.reset(gzopen(path.c_str(), "rb"));
  if (!file_) FailToRead(path, errno);
  gzbuffer(file_.get(), 1 << 18);

  const uint32_t magic = ReadNumber();
  const uint32_t type = magic >> 8, found_axes = magic & 0xff;
  const std::string expected =
      "; expected the magic number " + std::to_string(kUnsignedBytes << 8 | axes) + " of " + what;
  if (type != kUnsignedBytes) {
    const char* element = ElementName(type);
    Fail(element ? std::string("holds ") + element + ", not unsigned bytes" + expected
                 : "is no IDX file: it starts with " + std::to_string(magic) + expected);
  }
  if (found_axes != static_cast<uint32_t>(axes)) {
    const bool swapped = found_axes == 1 || found_axes == 3;
    Fail("has " + std::to_string(found_axes) + " extent(s), magic number " + std::to_string(magic) + expected +
         (swapped ? "; are the files of images and labels swapped?" : ""));
  }
  for (int i = 0; i < axes; ++i) extents_.push_back(ReadNumber());
  CheckLength(axes);
}

void IdxReader::Fail(const std::string& why) const { throw UserError("\"" + path_ + "\" " + why); }

void IdxReader::CheckLength(int axes) {
  if (count() == 0) Fail("holds no " + what_);
  for (int i = 1; i < axes; ++i) {
    item_size_ *= extents_[i];
    if (extents_[i] == 0 || item_size_ > kMaxItemBytes) {
      Fail("is damaged: extent " + std::to_string(i) + " of its " + what_ + " is " + std::to_string(extents_[i]));
    }
  }
  struct stat status;
  if (!gzdirect(file_.get()) || stat(path_.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  const int64_t wanted = 4 + 4 * axes + count() * item_size_;
  if (status.st_size != wanted) {
    Fail("has " + std::to_string(status.st_size) + " bytes, but " + std::to_string(count()) + " " + what_ + " take " +
         std::to_string(wanted) + "; copy or download it again");
  }
}

size_t IdxReader::ReadBytes(void* to, size_t bytes) {
  const int got = gzread(file_.get(), to, static_cast<unsigned>(bytes));
  int error = Z_OK;
  const char* message = gzerror(file_.get(), &error);
  cut_short_ |= error == Z_BUF_ERROR;
  if (got >= 0 && static_cast<size_t>(got) == bytes) return bytes;
  if (error == Z_ERRNO) FailToRead(path_, errno);
  if (error != Z_OK && error != Z_BUF_ERROR && error != Z_STREAM_END) {
    Fail(std::string("is damaged: ") + message + "; copy or download it again");
  }
  return got < 0 ? 0 : static_cast<size_t>(got);
}

uint32_t IdxReader::ReadNumber() {
  uint8_t bytes[4];
  if (ReadBytes(bytes, 4) != 4) Fail("ends in its header; copy or download it again");
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

void IdxReader::Read(std::span<uint8_t> item) {
  if (ReadBytes(item.data(), item.size()) != item.size()) {
    Fail("is cut short: it ends after " + std::to_string(items_read_) + " of " + std::to_string(count()) + " " + what_ +
         "; copy or download it again");
  }
  ++items_read_;
}

void IdxReader::ExpectEnd() {
  uint8_t byte;
  if (ReadBytes(&byte, 1) != 0) Fail("goes on behind its " + std::to_string(count()) + " " + what_);
  if (gzclose(file_.release()) == Z_BUF_ERROR || cut_short_) {
    Fail("is cut short: its checksum is missing; copy or download it again");
  }
}

}  // namespace crema
