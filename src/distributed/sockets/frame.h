// Messages as bytes: a preamble of 16 bytes ("CRMA", major and minor version of the protocol, two zero bytes, length of
// the message and its CRC-32, little-endian), and the message in protobuf's wire format.
#ifndef CREMA_DISTRIBUTED_SOCKETS_FRAME_H_
#define CREMA_DISTRIBUTED_SOCKETS_FRAME_H_

#include <cstddef>
#include <span>
#include <string>

#include "distributed/protocol/messages.pb.h"

namespace crema {

// Longer messages are refused; the bytes behind a Chunk do not count.
constexpr size_t kMostMessageBytes = size_t{16} << 20;

std::string EncodeFrame(const ClusterMessage& message);

// False for anything that is not one whole message, whoever made it. A message of another major version has only its
// Hello looked at (so that it can be answered).
bool DecodeFrame(std::span<const std::byte> bytes, ClusterMessage* message);

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_SOCKETS_FRAME_H_
