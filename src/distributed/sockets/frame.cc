#include "distributed/sockets/frame.h"

#include <bit>
#include <cstring>

#include "base/crc32.h"
#include "distributed/protocol/protocol_version.h"
#include "schema/wire_bytes.h"

namespace crema {

namespace {

static_assert(std::endian::native == std::endian::little, "preambles are little-endian");

struct Preamble {
  char magic[4] = {'C', 'R', 'M', 'A'};
  uint8_t major = kProtocolMajor, minor = kProtocolMinor;
  uint16_t zero = 0;
  uint32_t length = 0, crc32 = 0;
};
static_assert(sizeof(Preamble) == 16);

}  // namespace

std::string EncodeFrame(const ClusterMessage& message) {
  std::string frame(sizeof(Preamble), '\0');
  AppendWireBytes(message, &frame);
  Preamble preamble;
  preamble.length = static_cast<uint32_t>(frame.size() - sizeof preamble);
  preamble.crc32 = Crc32(frame.data() + sizeof preamble, preamble.length);
  std::memcpy(frame.data(), &preamble, sizeof preamble);
  return frame;
}

bool DecodeFrame(std::span<const std::byte> bytes, ClusterMessage* message) {
  Preamble preamble;
  if (bytes.size() < sizeof preamble || bytes.size() > sizeof preamble + kMostMessageBytes) return false;
  std::memcpy(&preamble, bytes.data(), sizeof preamble);
  const std::span<const std::byte> body = bytes.subspan(sizeof preamble);
  if (std::memcmp(preamble.magic, Preamble().magic, sizeof preamble.magic) != 0 || preamble.zero != 0 ||
      preamble.length != body.size() || preamble.crc32 != Crc32(body.data(), body.size()) ||
      !message->ParseFromArray(body.data(), static_cast<int>(body.size()))) {
    return false;
  }
  return preamble.major == kProtocolMajor || message->has_hello();
}

}  // namespace crema
