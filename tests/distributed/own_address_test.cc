// By which addresses this machine says that it is reached.
#include "distributed/sockets/own_address.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>

#include "crema/error.h"
#include "distributed/peer_sockets_fixture.h"

namespace crema::testing_distributed {
namespace {

TEST(OwnAddress, OfLoopbackIsLoopback) {
  EXPECT_EQ(AddressTowards("tcp://127.0.0.1:5570"), "127.0.0.1");
  EXPECT_EQ(AddressTowards("tcp://192.0.2.1:0;127.0.0.1:5570"), "127.0.0.1");
  const std::string named = AddressTowards("tcp://localhost:5570");
  EXPECT_TRUE(named == "127.0.0.1" || named == "[::1]") << named;
}

TEST(OwnAddress, OfIp6LoopbackIsLoopbackAndIsReached) {
  try {
    EXPECT_EQ(AddressTowards("tcp://[::1]:5570"), "[::1]");
  } catch (const EnvironmentError& error) {
    GTEST_SKIP() << "no IPv6 here: " << error.what();
  }
  Node a(Keyed("tcp://[::1]:5570")), b(Keyed());
  EXPECT_TRUE(a.address().endpoint().starts_with("tcp://[::1]:")) << a.address().endpoint();
  a.Know({&b});
  b.Know({&a});
  EXPECT_TRUE(Reaches(b, a, 1));
  EXPECT_TRUE(Reaches(a, b, 2));
}

TEST(OwnAddress, ThatOthersReachIsReachedWithKeysOnly) {
  std::string address;
  try {
    address = AddressTowards("tcp://192.0.2.1:5570");  // of no machine (RFC 5737): what matters is the route there
  } catch (const EnvironmentError& error) {
    GTEST_SKIP() << "no way out of this machine: " << error.what();
  }
  EXPECT_FALSE(address.starts_with("127.") || address == "0.0.0.0") << address;
  Node a(Keyed("tcp://192.0.2.1:5570")), b(Keyed());
  EXPECT_TRUE(a.address().endpoint().starts_with("tcp://" + address + ":")) << a.address().endpoint();
  a.Know({&b});
  b.Know({&a});
  EXPECT_TRUE(Reaches(b, a, 1));
  EXPECT_THROW(Node({.coordinator = "tcp://192.0.2.1:5570"}), UserError);
}

TEST(OwnAddress, IsWhereSocketsListen) {
  Node ipc({.coordinator = kIpc}), tcp({.coordinator = kLoopback});
  EXPECT_TRUE(ipc.address().endpoint().starts_with("ipc:///")) << ipc.address().endpoint();
  EXPECT_TRUE(tcp.address().endpoint().starts_with("tcp://127.0.0.1:")) << tcp.address().endpoint();
  const std::filesystem::path path = ipc.address().endpoint().substr(6);
  EXPECT_EQ(std::filesystem::status(path.parent_path()).permissions(), std::filesystem::perms::owner_all);
  EXPECT_EQ(tcp.address().public_key(), "");

  // Given, it listens everywhere, and says the other name.
  Node given({.coordinator = kIpc, .announced = "node3.example.org", .keys = MakeKeyPair()});
  EXPECT_TRUE(given.address().endpoint().starts_with("tcp://node3.example.org:")) << given.address().endpoint();
  PeerAddress here = given.address();
  here.set_endpoint("tcp://127.0.0.1:" + std::to_string(PortOf(here.endpoint())));
  Node other(Keyed());
  other.sockets().SetPeers({{here}});
  given.Know({&other});
  other.Send(here.endpoint(), 1);
  EXPECT_EQ(given.Await(1).size(), 1u);
}

TEST(OwnAddress, ThatCannotBeIsAnError) {
  const auto error_of = [](PeerOptions options) -> std::string {
    try {
      Node node(std::move(options));
    } catch (const UserError& error) {
      return std::string("user: ") + error.what();
    } catch (const EnvironmentError& error) {
      return std::string("environment: ") + error.what();
    }
    return "";
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(has(error_of({.coordinator = kIpc, .announced = "10.0.0.7"}), "user: "));
  EXPECT_TRUE(has(error_of({.coordinator = kIpc, .announced = "10.0.0.7"}), "it has no keys"));
  EXPECT_EQ(error_of({.coordinator = kIpc, .announced = "10.0.0.7", .allow_plaintext = true}), "");
  EXPECT_TRUE(has(error_of({.coordinator = kIpc, .announced = "10.0.0.7:"}), "is no address by which"));
  EXPECT_TRUE(has(error_of({.coordinator = "pgm://a"}), "tcp://HOST:5570"));
  EXPECT_TRUE(has(error_of({.coordinator = "tcp://nowhere.invalid:5570"}), "environment: "));
  Node first({.coordinator = kLoopback, .announced = "127.0.0.1", .allow_plaintext = true});
  EXPECT_TRUE(has(error_of({.coordinator = kLoopback,
                            .announced = "127.0.0.1:" + std::to_string(PortOf(first.address().endpoint())),
                            .allow_plaintext = true}),
                  "another program does"));
}

TEST(OwnAddress, IsReadAsUsersWriteIt) {
  const auto read = [](const std::string& text) {
    const NamedAddress named = ParseNamedAddress(text);
    return named.host + " " + std::to_string(named.port);
  };
  EXPECT_EQ(read("203.0.113.7"), "203.0.113.7 0");
  EXPECT_EQ(read("203.0.113.7:5571"), "203.0.113.7 5571");
  EXPECT_EQ(read("node3.example.org:65535"), "node3.example.org 65535");
  EXPECT_EQ(read("2001:db8::7"), "[2001:db8::7] 0");
  EXPECT_EQ(read("[2001:db8::7]"), "[2001:db8::7] 0");
  EXPECT_EQ(read("[2001:db8::7]:1"), "[2001:db8::7] 1");
  for (const char* text :
       {"", ":", ":5571", "host:", "host:0", "host:65536", "host:-1", "host:+1", "host:5571x", "a b", "tcp://host:5571",
        "*", "*:5571", "[host]:5571", "[::1", "::1]:5571", "2001:db8:::7", "a;b"}) {
    EXPECT_THROW(ParseNamedAddress(text), UserError) << text;
  }
}

TEST(HostProblem, NamesAHostThatIsNotKnown) {
  EXPECT_EQ(HostProblem("tcp://127.0.0.1:5570"), "");
  EXPECT_EQ(HostProblem("tcp://[::1]:5570"), "");
  EXPECT_EQ(HostProblem("ipc:///tmp/socket"), "");
  EXPECT_EQ(HostProblem("tcp://no.such.host.invalid:5570").find("\"no.such.host.invalid\" is not known: "), 0u);
}

}  // namespace
}  // namespace crema::testing_distributed
