// Which of this machine's addresses others reach it by.
#ifndef CREMA_DISTRIBUTED_SOCKETS_OWN_ADDRESS_H_
#define CREMA_DISTRIBUTED_SOCKETS_OWN_ADDRESS_H_

#include <string>
#include <string_view>

namespace crema {

// How endpoints of TCP begin.
inline constexpr std::string_view kTcp = "tcp://";

// What this process is called for people: its machine's name and its number, HOST:PROCESS.
std::string OwnName();

// The address from which packets to the host of a ZeroMQ endpoint leave, as endpoints have it: "10.0.0.7" or
// "[fd00::7]"; of a loopback address that itself. Nothing is sent to it, but its name is looked up. Throws
// EnvironmentError where there is none that other machines could use.
std::string AddressTowards(const std::string& tcp_endpoint);

// Why the name of the host of a tcp endpoint leads nowhere; empty where it does not, and for other endpoints.
std::string HostProblem(const std::string& endpoint);

// What a user says others reach this machine by: HOST or HOST:PORT, where HOST is a name, an IPv4 address or an IPv6
// address; that in brackets where a port follows. Port 0: none. Throws UserError for anything else.
struct NamedAddress {
  std::string host;  // as endpoints have it
  int port = 0;
};
NamedAddress ParseNamedAddress(const std::string& text);

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_SOCKETS_OWN_ADDRESS_H_
