// IDX files, the format of MNIST and its kin (http://yann.lecun.com/exdb/mnist): a magic number, the extents, then one
// byte a value. Plain or compressed with gzip.
#ifndef CREMA_DATA_FILES_IDX_FILE_H_
#define CREMA_DATA_FILES_IDX_FILE_H_

#include <zlib.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace crema {

// Read item by item (item: an image or a label), so files may be larger than memory. Used by one thread.
class IdxReader {
 public:
  // Throws UserError unless the file is an IDX of bytes with `axes` extents (1: labels, 3: images) and, where it is not
  // compressed, is as long as they say. `what` ("images") says in messages what the file should hold.
  IdxReader(const std::string& path, int axes, const std::string& what);

  // Items first: count, height, width for images.
  const std::vector<int64_t>& extents() const { return extents_; }
  int64_t count() const { return extents_[0]; }
  // Values of one item.
  int64_t item_size() const { return item_size_; }
  // Reads the next item. Throws UserError where the file ends early.
  void Read(std::span<uint8_t> item);
  // Closes the file. Throws UserError where it goes on behind the last item or a compressed file lacks its checksum.
  void ExpectEnd();

 private:
  struct CloseFile {
    void operator()(gzFile_s* file) const { gzclose(file); }
  };

  [[noreturn]] void Fail(const std::string& why) const;
  // Number of bytes read, less than asked for at the end of the file only.
  size_t ReadBytes(void* to, size_t bytes);
  uint32_t ReadNumber();
  void CheckLength(int axes);

  std::string path_, what_;
  std::unique_ptr<gzFile_s, CloseFile> file_;
  std::vector<int64_t> extents_;
  int64_t item_size_ = 1, items_read_ = 0;
  bool cut_short_ = false;  // zlib says so at some read, by version, or when the file is closed
};

}  // namespace crema

#endif  // CREMA_DATA_FILES_IDX_FILE_H_
