#include "data/loaders/image_list_loader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "crema/error.h"
#include "data/loaders/encoded_image.h"

namespace crema {

namespace {

class OpenFile {
 public:
  // A pipe would keep this waiting for somebody to write.
  explicit OpenFile(const char* path) : descriptor_(open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {}
  ~OpenFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

std::string NameOf(const ImageList& list, size_t entry) { return "image " + list.Named(entry); }

[[noreturn]] void CannotRead(const ImageList& list, size_t entry, int error) {
  if (error == ENOENT || error == ENOTDIR) {
    throw UserError(NameOf(list, entry) + " does not exist; correct the list, or root_folder, which is put before it" +
                    LabelCountHint(list, entry));
  }
  if (error == EISDIR) throw UserError(NameOf(list, entry) + " is a folder; the list must name files");
  if (error == ESPIPE) throw UserError(NameOf(list, entry) + " is a pipe or device; the list must name files");
  throw EnvironmentError("cannot read " + NameOf(list, entry) + ": " + std::strerror(error));
}

ImageSize FirstItemSize(const ImageList& list, const Transform& transform) {
  const std::optional<ImageExtent> extent = transform.fixed_extent();
  if (extent && transform.colors() != DecodeOptions::Colors::kAsStored) {
    const int channels = transform.colors() == DecodeOptions::Colors::kColor ? 3 : 1;
    return {channels, extent->height, extent->width};
  }
  ItemScratch scratch;
  ImageSize size;
  std::string problem = EncodedImageSize(ReadImage(list, 0, scratch), transform, &size);
  if (!problem.empty()) throw UserError(NameOf(list, 0) + " " + problem);
  problem = transform.Check(size);
  if (!problem.empty()) throw UserError(NameOf(list, 0) + ": " + problem);
  return transform.OutputSize(size);
}

}  // namespace

std::span<const uint8_t> ReadImageFile(ItemScratch& scratch, int* error) {
  const auto fail = [error](int number) {
    *error = number;
    return std::span<const uint8_t>();
  };
  *error = 0;
  const OpenFile file(scratch.path.c_str());
  if (file.descriptor() < 0) return fail(errno);
  size_t used = 0;
  struct stat status;
  if (fstat(file.descriptor(), &status) != 0) return fail(errno);
  if (S_ISDIR(status.st_mode)) return fail(EISDIR);
  if (!S_ISREG(status.st_mode)) return fail(ESPIPE);
  // One byte more, so that the end is seen without growing.
  const size_t expected = status.st_size > 0 ? static_cast<size_t>(status.st_size) + 1 : size_t{1} << 16;
  if (scratch.bytes.size() < expected) scratch.bytes.resize(expected);
  for (;;) {
    if (used == scratch.bytes.size()) scratch.bytes.resize(2 * used);
    const ssize_t bytes = read(file.descriptor(), scratch.bytes.data() + used, scratch.bytes.size() - used);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return fail(errno);
    if (bytes == 0) return {scratch.bytes.data(), used};
    used += static_cast<size_t>(bytes);
  }
}

std::span<const uint8_t> ReadImage(const ImageList& list, size_t entry, ItemScratch& scratch) {
  scratch.path = list.root;
  scratch.path += list.entries[entry].path;
  int error = 0;
  const std::span<const uint8_t> bytes = ReadImageFile(scratch, &error);
  if (error != 0) CannotRead(list, entry, error);
  return bytes;
}

ImageListLoader::ImageListLoader(std::shared_ptr<const ImageList> list, Transform transform, SampleOrder order)
    : list_(std::move(list)), transform_(std::move(transform)), order_(order) {
  CREMA_CHECK(!list_->entries.empty());
  order_.records = list_->entries.size();
  if (order_.balance_classes) {
    std::vector<int32_t> labels;
    for (const ImageList::Entry& entry : list_->entries) labels.push_back(entry.label);
    order_.classes = std::make_shared<const ClassBalance>(labels);
  }
  item_size_ = FirstItemSize(*list_, transform_);
  item_shape_ = item_size_.shape();
}

void ImageListLoader::Load(uint64_t position, float* data, float* label, ItemScratch& scratch) const {
  LoadImage(position, data, scratch);
  const size_t entry = EntryAt(position);
  *label = static_cast<float>(list_->entries[entry].label);
  std::ranges::copy(list_->NumbersOf(entry), label);
}

void ImageListLoader::LoadImage(uint64_t position, float* data, ItemScratch& scratch) const {
  const size_t entry = EntryAt(position);
  const std::string problem = LoadEncodedImage(ReadImage(*list_, entry, scratch), transform_, order_.RandomAt(position),
                                               item_size_, scratch, data);
  if (!problem.empty()) throw UserError(NameOf(*list_, entry) + problem);
}

std::string ImageListLoader::Describe(uint64_t position) const { return NameOf(*list_, EntryAt(position)); }

}  // namespace crema
