#include "distributed/sockets/frame.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace crema {
namespace {

std::span<const std::byte> BytesOf(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

ClusterMessage Example() {
  ClusterMessage message;
  message.set_job(77);
  message.set_member(3);
  message.mutable_push()->set_loss(0.5);
  message.mutable_push()->add_output(1);
  return message;
}

TEST(Frame, BringsMessagesOver) {
  const std::string frame = EncodeFrame(Example());
  ClusterMessage message;
  ASSERT_TRUE(DecodeFrame(BytesOf(frame), &message));
  EXPECT_EQ(message.SerializeAsString(), Example().SerializeAsString());
  ASSERT_TRUE(DecodeFrame(BytesOf(EncodeFrame(ClusterMessage())), &message));
}

TEST(Frame, RefusesEveryChangedByteAndLength) {
  const std::string frame = EncodeFrame(Example());
  ClusterMessage message;
  for (size_t i = 0; i < frame.size(); ++i) {
    if (i == 5) continue;  // the minor version, which may differ
    std::string changed = frame;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    EXPECT_FALSE(DecodeFrame(BytesOf(changed), &message)) << i;
    EXPECT_FALSE(DecodeFrame(BytesOf(frame.substr(0, i)), &message)) << i;
  }
  EXPECT_FALSE(DecodeFrame(BytesOf(frame + "x"), &message));
}

TEST(Frame, TakesOnlyAHelloOfAnotherMajorVersion) {
  std::string push = EncodeFrame(Example());
  push[4] = 99;
  ClusterMessage message;
  EXPECT_FALSE(DecodeFrame(BytesOf(push), &message));
  ClusterMessage hello;
  hello.mutable_hello()->set_major(99);
  std::string frame = EncodeFrame(hello);
  frame[4] = 99;
  EXPECT_TRUE(DecodeFrame(BytesOf(frame), &message));
}

TEST(Frame, SurvivesRandomBytes) {
  std::mt19937 random(1);
  const std::string frame = EncodeFrame(Example());
  ClusterMessage message;
  for (int i = 0; i < 20000; ++i) {
    std::string bytes(random() % 200, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    // With a right beginning, too.
    if (i % 2) bytes = frame.substr(0, random() % frame.size()) + bytes;
    DecodeFrame(BytesOf(bytes), &message);
  }
}

}  // namespace
}  // namespace crema
