#include "distributed/sockets/own_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/number_text.h"
#include "crema/error.h"

namespace crema {

namespace {

struct HostAndPort {
  std::string host, port;  // without brackets
};

// What is before a semicolon is where the connection comes from.
HostAndPort Split(std::string_view endpoint) {
  endpoint.remove_prefix(std::min(endpoint.size(), kTcp.size()));
  const size_t semicolon = endpoint.rfind(';');
  if (semicolon != std::string_view::npos) endpoint.remove_prefix(semicolon + 1);
  const size_t colon = endpoint.rfind(':');
  std::string_view host = endpoint.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return {std::string(host), colon == std::string_view::npos ? "" : std::string(endpoint.substr(colon + 1))};
}

std::string TextOf(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text, sizeof text);
    return text;
  }
  inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, text, sizeof text);
  return std::string("[") + text + "]";
}

// Such an address means something only together with an interface of one machine.
bool IsLinkLocal(const sockaddr_storage& address) {
  return address.ss_family == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

// Connecting a UDP socket only asks for the route. Empty where there is none.
std::string LocalEndOf(const addrinfo& remote) {
  const int fd = socket(remote.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return "";
  sockaddr_storage local = {};
  socklen_t bytes = sizeof local;
  const bool known = connect(fd, remote.ai_addr, remote.ai_addrlen) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&local), &bytes) == 0;
  close(fd);
  return known && !IsLinkLocal(local) ? TextOf(local) : "";
}

bool IsIp6(const std::string& host) {
  in6_addr address;
  return inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

using AddressList = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

// Null, with a problem, where the name is not known.
AddressList Addresses(const HostAndPort& there, std::string* problem) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(there.host.c_str(), there.port.c_str(), &hints, &list);
  if (error != 0) *problem = gai_strerror(error);
  return {error == 0 ? list : nullptr, freeaddrinfo};
}

bool IsHost(std::string_view host) {
  return !host.empty() && host.size() <= 253 && std::all_of(host.begin(), host.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '.' || c == '-' || c == '_';
  });
}

}  // namespace

std::string HostProblem(const std::string& endpoint) {
  if (!endpoint.starts_with(kTcp)) return {};
  const HostAndPort there = Split(endpoint);
  std::string problem;
  Addresses(there, &problem);
  return problem.empty() ? "" : "\"" + there.host + "\" is not known: " + problem;
}

std::string OwnName() {
  char host[256] = "unknown";
  gethostname(host, sizeof host - 1);
  return std::string(host) + ":" + std::to_string(getpid());
}

std::string AddressTowards(const std::string& tcp_endpoint) {
  const HostAndPort there = Split(tcp_endpoint);
  const std::string remedy = "; say by which address others reach this machine";
  std::string problem;
  const AddressList list = Addresses(there, &problem);
  if (!problem.empty()) {
    throw EnvironmentError("cannot find out by which address others reach this machine, as \"" + there.host +
                           "\" is not known: " + problem + remedy);
  }
  for (const addrinfo* at = list.get(); at; at = at->ai_next) {
    const std::string address = LocalEndOf(*at);
    if (!address.empty()) return address;
  }
  throw EnvironmentError("no address of this machine reaches " + tcp_endpoint + " and can be reached from others" +
                         remedy);
}

NamedAddress ParseNamedAddress(const std::string& text) {
  NamedAddress named{.host = text};
  std::string port;
  const size_t colon = text.rfind(':');
  if (colon != std::string::npos && !text.ends_with(']') && !IsIp6(text)) {
    named.host = text.substr(0, colon);
    port = text.substr(colon + 1);
    if (!ParseWhole(port, &named.port) || named.port < 1 || named.port > 65535) named.host.clear();
  }
  const bool brackets = named.host.starts_with('[') && named.host.ends_with(']');
  const std::string bare = brackets ? named.host.substr(1, named.host.size() - 2) : named.host;
  if (IsIp6(bare) && (brackets || port.empty())) return {"[" + bare + "]", named.port};
  if (brackets || !IsHost(bare)) {
    throw UserError("\"" + text +
                    "\" is no address by which others reach this machine; write HOST or HOST:PORT, as in 203.0.113.7, "
                    "node3.example.org:5571 or [2001:db8::7]:5571");
  }
  return named;
}

}  // namespace crema
