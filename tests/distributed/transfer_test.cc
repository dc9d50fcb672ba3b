#include "distributed/protocol/transfer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "base/random.h"

namespace crema {
namespace {

Payload PayloadOf(size_t count, uint64_t seed = 1) {
  auto bytes = std::make_shared<Bytes>(count);
  const RandomStream random(seed, 0);
  for (size_t i = 0; i < count; ++i) (*bytes)[i] = static_cast<std::byte>(random.Below(i, 256));
  return bytes;
}

struct Sent {
  Chunk chunk;
  Slice slice;
};

std::vector<Sent> Poll(TransferSender& sender, Milliseconds now) {
  std::vector<Sent> all;
  sender.Poll(now, [&](Chunk chunk, Slice slice) { all.push_back({std::move(chunk), std::move(slice)}); });
  return all;
}

const TransferOptions kSmall{.chunk_bytes = 10, .credits = 3, .patience = 100};

TEST(Transfer, ArrivesWholeAndIsNeverFurtherAheadThanAllowed) {
  for (const size_t size : {0u, 1u, 9u, 10u, 11u, 30u, 99u}) {
    TransferSender sender(kSmall);
    TransferReceiver receiver(100);
    const Payload payload = PayloadOf(size);
    sender.Start(5, payload, 0);
    uint64_t received = 0;
    while (!sender.done()) {
      const std::vector<Sent> sent = Poll(sender, 0);
      ASSERT_FALSE(sent.empty());
      ASSERT_LE(sent.size(), 3u);
      for (const Sent& s : sent) {
        ASSERT_LE(s.chunk.offset() + s.slice.count, received + 30);
        const auto answer = receiver.OnChunk(s.chunk, s.slice.bytes());
        ASSERT_TRUE(answer);
        received = answer->offset();
        sender.OnReceived(*answer, 0);
      }
    }
    ASSERT_TRUE(receiver.Whole(5));
    EXPECT_EQ(*receiver.Whole(5), *payload);
    EXPECT_EQ(receiver.Whole(4), nullptr);
    EXPECT_EQ(sender.bytes_sent(), size);
  }
}

TEST(Transfer, SurvivesLossDuplicatesAndAnotherOrder) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const RandomStream random(seed, 1);
    uint64_t drawn = 0;
    TransferSender sender(kSmall);
    TransferReceiver receiver(1000);
    const Payload payload = PayloadOf(random.Below(drawn++, 400), seed);
    sender.Start(1 + seed, payload, 0);
    std::deque<Sent> way;
    Milliseconds now = 0;
    for (; !sender.done() && now < 10'000'000; now += 10) {
      for (Sent& sent : Poll(sender, now)) way.push_back(std::move(sent));
      while (!way.empty() && random.Below(drawn++, 4) > 0) {
        const size_t i = random.Below(drawn++, way.size());
        const uint64_t fate = random.Below(drawn++, 10);
        const Sent sent = way[i];
        if (fate != 0) way.erase(way.begin() + static_cast<std::ptrdiff_t>(i));  // else it comes again
        if (fate < 3) continue;
        const auto answer = receiver.OnChunk(sent.chunk, sent.slice.bytes());
        ASSERT_TRUE(answer);
        if (fate > 4) sender.OnReceived(*answer, now);
      }
    }
    ASSERT_TRUE(sender.done()) << "seed " << seed;
    ASSERT_TRUE(receiver.Whole(1 + seed));
    EXPECT_EQ(*receiver.Whole(1 + seed), *payload);
  }
}

TEST(Transfer, WaitsLongerEachTimeThatNothingMoves) {
  TransferSender sender(kSmall);
  sender.Start(1, PayloadOf(400), 0);
  EXPECT_EQ(Poll(sender, 0).size(), 2u);
  EXPECT_EQ(sender.deadline(), 100);
  EXPECT_TRUE(Poll(sender, 99).empty());
  EXPECT_EQ(Poll(sender, 100).size(), 1u);
  EXPECT_EQ(sender.deadline(), 300);
  EXPECT_TRUE(Poll(sender, 299).empty());
  EXPECT_EQ(Poll(sender, 300).size(), 1u);
  ChunkReceived received;
  received.set_transfer(1);
  received.set_offset(10);
  sender.OnReceived(received, 310);
  // As the line may be slow; then it was not.
  EXPECT_EQ(sender.deadline(), 310 + 600);
  for (uint64_t i = 2; i < 30; ++i) {
    Poll(sender, 310);
    received.set_offset(10 * i);
    sender.OnReceived(received, 310);
  }
  EXPECT_EQ(sender.deadline(), 310 + 100);
}

// A chunk takes longer than the patience: what is under way is not sent again and again.
TEST(Transfer, LearnsHowLongAnswersTake) {
  const TransferOptions options{.chunk_bytes = 100, .credits = 4, .patience = 100};
  const auto pace = std::make_shared<TransferPace>();
  uint64_t sent_bytes = 0;
  Milliseconds now = 0, free_at = 0;
  for (uint64_t id = 1; id <= 3; ++id) {
    TransferSender sender(options, pace);
    TransferReceiver receiver(10'000);
    sender.Start(id, PayloadOf(2'000), now);
    std::deque<std::pair<Milliseconds, Sent>> line;
    for (; !sender.done() && now < 1'000'000; ++now) {
      for (Sent& sent : Poll(sender, now)) {
        free_at = std::max(now, free_at) + 150;
        line.emplace_back(free_at, std::move(sent));
      }
      for (; !line.empty() && line.front().first <= now; line.pop_front()) {
        sender.OnReceived(*receiver.OnChunk(line.front().second.chunk, line.front().second.slice.bytes()), now);
      }
    }
    ASSERT_TRUE(sender.done());
    sent_bytes += sender.bytes_sent();
  }
  EXPECT_LE(sent_bytes, 6'000u * 6 / 5);
}

// Chunks under way when all that were sent before are answered after `took`, and the next answers come as late.
std::vector<size_t> UnderWay(TransferSender& sender, const std::vector<Milliseconds>& took) {
  std::vector<size_t> counts;
  Milliseconds now = 0;
  for (const Milliseconds wait : took) {
    const std::vector<Sent> sent = Poll(sender, now);
    counts.push_back(sent.size());
    now += wait;
    ChunkReceived received;
    received.set_transfer(sender.id());
    received.set_offset(sent.back().chunk.offset() + sent.back().slice.count);
    sender.OnReceived(received, now);
  }
  return counts;
}

TEST(Transfer, MoreAreUnderWayWhereAnswersComeSoon) {
  const TransferOptions options{.chunk_bytes = 10, .credits = 7, .patience = 100};
  const auto pace = std::make_shared<TransferPace>();
  TransferSender sender(options, pace);
  sender.Start(1, PayloadOf(1000), 0);
  EXPECT_EQ(UnderWay(sender, {1, 10, 10, 15, 60, 60, 60, 1}), (std::vector<size_t>{2, 4, 7, 7, 7, 3, 1, 1}));
  // The next one to the same receiver begins where this one was.
  TransferSender next(options, pace);
  next.Start(1, PayloadOf(1000), 0);
  EXPECT_EQ(UnderWay(next, {1}), (std::vector<size_t>{2}));
}

// Three transfers over one line that carries a chunk in 0.26 seconds.
TEST(Transfer, SendsNothingTwiceOverASlowLineAndLeavesRoom) {
  const TransferOptions options;
  constexpr uint64_t kBytesPerMillisecond = 1000;
  constexpr Milliseconds kDelay = 20;
  struct OnItsWay {
    size_t to;
    Sent sent;
    Milliseconds at;
  };
  std::vector<TransferSender> senders;
  std::vector<TransferReceiver> receivers;
  const Payload payload = PayloadOf(20 << 20);
  for (int i = 0; i < 3; ++i) {
    senders.emplace_back(options).Start(1, payload, 0);
    receivers.emplace_back(payload->size());
  }
  std::deque<OnItsWay> line;
  Milliseconds now = 0, free_at = 0, longest = 0;
  const auto all_done = [&] {
    return std::all_of(senders.begin(), senders.end(), [](const TransferSender& sender) { return sender.done(); });
  };
  for (; !all_done() && now < 1'000'000; ++now) {
    for (size_t i = 0; i < senders.size(); ++i) {
      for (Sent& sent : Poll(senders[i], now)) {
        free_at = std::max(now, free_at) + static_cast<Milliseconds>(sent.slice.count / kBytesPerMillisecond);
        longest = std::max(longest, free_at - now);
        line.push_back({i, std::move(sent), free_at + kDelay});
      }
    }
    for (; !line.empty() && line.front().at <= now; line.pop_front()) {
      const OnItsWay& here = line.front();
      senders[here.to].OnReceived(*receivers[here.to].OnChunk(here.sent.chunk, here.sent.slice.bytes()), now);
    }
  }
  ASSERT_TRUE(all_done());
  for (const TransferSender& sender : senders) EXPECT_EQ(sender.bytes_sent(), payload->size());
  EXPECT_LE(longest, 3'500);
  EXPECT_LE(now, 70'000) << "the line was left idle";
}

TEST(Transfer, TheSenderIgnoresAnswersThatMakeNoSense) {
  TransferSender sender(kSmall);
  sender.Start(7, PayloadOf(50), 0);
  Poll(sender, 0);
  ChunkReceived received;
  received.set_transfer(6);
  received.set_offset(50);
  sender.OnReceived(received, 0);
  EXPECT_FALSE(sender.done());
  received.set_transfer(7);
  received.set_offset(51);
  sender.OnReceived(received, 0);
  EXPECT_FALSE(sender.done());
  EXPECT_TRUE(Poll(sender, 0).empty());
  received.set_offset(50);
  sender.OnReceived(received, 0);
  EXPECT_TRUE(sender.done());
}

TEST(Transfer, ACancelledOneIsNotDoneAndAnyLaterIdMayFollow) {
  TransferSender sender(kSmall);
  sender.Cancel();
  sender.Start(1, PayloadOf(5), 0);
  Poll(sender, 0);
  sender.Cancel();
  EXPECT_FALSE(sender.done());
  EXPECT_FALSE(sender.active());
  EXPECT_TRUE(Poll(sender, 1000).empty());
}

TEST(Transfer, RefusesWhatCannotBe) {
  TransferReceiver receiver(100);
  const Payload payload = PayloadOf(100);
  TransferSender sender({.chunk_bytes = 50, .credits = 10});
  sender.Start(3, payload, 0);
  const std::vector<Sent> sent = Poll(sender, 0);
  ASSERT_EQ(sent.size(), 2u);
  const auto refused = [&](const Chunk& chunk, std::span<const std::byte> bytes) {
    const uint64_t before = receiver.refused();
    return !receiver.OnChunk(chunk, bytes) && receiver.refused() == before + 1;
  };
  Chunk chunk = sent[0].chunk;
  chunk.set_total(101);
  EXPECT_TRUE(refused(chunk, sent[0].slice.bytes()));
  chunk = sent[0].chunk;
  chunk.set_check(chunk.check() ^ 1);
  EXPECT_TRUE(refused(chunk, sent[0].slice.bytes()));
  chunk = sent[0].chunk;
  chunk.set_offset(61);
  EXPECT_TRUE(refused(chunk, sent[0].slice.bytes()));
  chunk.set_offset(UINT64_MAX - 5);
  EXPECT_TRUE(refused(chunk, sent[0].slice.bytes()));
  chunk = sent[0].chunk;
  EXPECT_TRUE(refused(chunk, {}));
  chunk.set_transfer(0);
  EXPECT_TRUE(refused(chunk, sent[0].slice.bytes()));
  ASSERT_TRUE(receiver.OnChunk(sent[0].chunk, sent[0].slice.bytes()));
  chunk = sent[1].chunk;
  chunk.set_total(90);
  EXPECT_TRUE(refused(chunk, sent[1].slice.bytes()));
  chunk = sent[1].chunk;
  chunk.set_transfer(2);
  EXPECT_TRUE(refused(chunk, sent[1].slice.bytes()));
  for (const Sent& s : sent) ASSERT_TRUE(receiver.OnChunk(s.chunk, s.slice.bytes()));
  EXPECT_EQ(*receiver.Whole(3), *payload);
}

TEST(Transfer, ANewOneEndsTheOldAndAReleasedOneIsNotSentAgain) {
  TransferReceiver receiver(100);
  TransferSender sender({.chunk_bytes = 60, .credits = 10, .patience = 10});
  sender.Start(1, PayloadOf(100), 0);
  const std::vector<Sent> old = Poll(sender, 0);
  ASSERT_TRUE(receiver.OnChunk(old[0].chunk, old[0].slice.bytes()));
  sender.Start(2, PayloadOf(70, 2), 0);
  for (const Sent& s : Poll(sender, 0)) ASSERT_TRUE(receiver.OnChunk(s.chunk, s.slice.bytes()));
  EXPECT_FALSE(receiver.OnChunk(old[1].chunk, old[1].slice.bytes()));
  ASSERT_TRUE(receiver.Whole(2));
  receiver.Release(2);
  EXPECT_EQ(receiver.Whole(2), nullptr);
  for (const Sent& s : Poll(sender, 10)) sender.OnReceived(*receiver.OnChunk(s.chunk, s.slice.bytes()), 10);
  EXPECT_TRUE(sender.done());
  EXPECT_EQ(receiver.bytes_received(), 130u);
}

}  // namespace
}  // namespace crema
