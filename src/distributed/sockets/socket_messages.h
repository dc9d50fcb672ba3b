// The protocol's messages on ZeroMQ sockets: what is the same for a coordinator, a worker and its peers.
#ifndef CREMA_DISTRIBUTED_SOCKETS_SOCKET_MESSAGES_H_
#define CREMA_DISTRIBUTED_SOCKETS_SOCKET_MESSAGES_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <zmq.hpp>

#include "distributed/protocol/outgoing.h"
#include "distributed/sockets/frame.h"

namespace crema {

// `bytes` holds during the call.
using OnReceived =
    std::function<void(const std::string& route, const ClusterMessage& message, std::span<const std::byte> bytes)>;

// How endpoints begin that are within one process, and one context. They need neither keys nor a handshake.
constexpr std::string_view kInproc = "inproc://";

// Messages of one socket that are handed over before it is the others' turn, so that a flood on one does not starve
// them, nor the clock.
constexpr int kMostAtOnce = 64;
// What a socket receives that does not know how long chunks may be.
constexpr uint64_t kMostSocketBytes = kMostMessageBytes + (64 << 10);

// Of every socket. Longer messages than `most_bytes` end their connection.
void SetCommonOptions(zmq::socket_t& socket, uint64_t most_bytes);

// Returns the endpoint as it is: with its port where that was left to the system. Throws EnvironmentError.
std::string ListenAt(zmq::socket_t& socket, const std::string& endpoint);

// Sends message and slice to `identity`, which is null for sockets that know only one other side; the slice is not
// copied. False where that cannot be done at once. Throws EnvironmentError where the socket is of no use.
bool SendParts(zmq::socket_t& socket, const std::string* identity, const Outgoing& outgoing);

// One message with all its parts; false where there is none.
bool ReceiveParts(zmq::socket_t& socket, std::vector<zmq::message_t>& parts);

// Of the parts behind the routing id. False where they are no message of the protocol.
bool DecodeParts(std::span<zmq::message_t> parts, ClusterMessage* message, std::span<const std::byte>* bytes);

zmq::pollitem_t ItemOf(zmq::socket_t& socket);

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_SOCKETS_SOCKET_MESSAGES_H_
