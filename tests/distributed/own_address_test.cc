// By which addresses this machine says that it is reached.
#include "distributed/own_address.h"

#include <gtest/gtest.h>

#include <string>

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

}  // namespace
}  // namespace crema::testing_distributed
