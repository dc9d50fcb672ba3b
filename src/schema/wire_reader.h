// Reads protobuf's binary encoding straight from a file, so that files of any size need no memory for what is skipped.
// Format: https://protobuf.dev/programming-guides/encoding
#ifndef CREMA_SCHEMA_WIRE_READER_H_
#define CREMA_SCHEMA_WIRE_READER_H_

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace crema {

enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kStartGroup = 3, kEndGroup = 4, kFixed32 = 5 };

struct WireTag {
  uint32_t field = 0;
  WireType type = WireType::kVarint;
};

// The bytes do not follow the format.
class WireError : public std::runtime_error {
 public:
  WireError(uint64_t position, const std::string& message) : std::runtime_error(message), position(position) {}
  uint64_t position;
};

// A position in a file. Throws WireError for malformed bytes, EnvironmentError where the system fails to read.
class WireReader {
 public:
  // Throws as CheckRegularFile does. kind: ".caffemodel".
  WireReader(const std::string& path, const std::string& kind);
  // Of bytes in memory, which must outlive it.
  explicit WireReader(std::string_view bytes);
  ~WireReader();
  WireReader(const WireReader&) = delete;
  WireReader& operator=(const WireReader&) = delete;

  uint64_t size() const { return size_; }
  uint64_t position() const { return buffer_at_ + next_; }
  void Seek(uint64_t position);

  // False at `end`, where a message that lies in [.., end) is over.
  bool NextTag(uint64_t end, WireTag* tag);
  uint64_t Varint(uint64_t end);
  uint32_t Fixed32(uint64_t end);
  uint64_t Fixed64(uint64_t end);
  // Reads a length and returns where the bytes after it end; never beyond `end`.
  uint64_t Length(uint64_t end);
  void Bytes(void* to, uint64_t count, uint64_t end);
  void Skip(WireTag tag, uint64_t end);

 private:
  uint8_t Byte(uint64_t end);
  void Fill();
  void ReadAt(uint64_t position, void* to, uint64_t count);

  std::string path_;
  int fd_ = -1;
  std::string_view memory_;  // instead
  uint64_t size_ = 0;
  std::vector<uint8_t> buffer_;
  uint64_t buffer_at_ = 0;
  size_t next_ = 0, filled_ = 0;
};

}  // namespace crema

#endif  // CREMA_SCHEMA_WIRE_READER_H_
