// Nets as texts, for tests of what reads them.
#ifndef CREMA_TESTS_SCHEMA_NET_TEXT_H_
#define CREMA_TESTS_SCHEMA_NET_TEXT_H_

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>

#include "crema/error.h"
#include "crema/files.h"
#include "crema/net.pb.h"
#include "errors.h"

namespace crema::testing_schema {

inline NetParameter Net(const std::string& text) {
  NetParameter net;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &net)) << text;
  return net;
}

// What is wrong with a net's file "n"; empty where nothing is.
inline std::string Errors(const std::string& text) {
  return ThrownBy<UserError>([&] { ParseNet(text, "n"); });
}

}  // namespace crema::testing_schema

#endif  // CREMA_TESTS_SCHEMA_NET_TEXT_H_
