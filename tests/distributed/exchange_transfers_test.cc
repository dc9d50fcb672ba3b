// What PeerTransfers say to each message, one by one.
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <optional>

#include "distributed/exchange/exchange.h"
#include "distributed/exchange_math.h"

namespace crema {
namespace {

constexpr Milliseconds kNever = std::numeric_limits<Milliseconds>::max();

ChunkReceived Here() {
  ChunkReceived here;
  here.set_transfer(0);
  return here;
}

// Chunks and answers of what is to be sent.
std::vector<PeerTransfers::Outgoing> ChunksOf(std::vector<PeerTransfers::Outgoing> all) {
  std::erase_if(all, [](const PeerTransfers::Outgoing& out) {
    return !out.message.has_chunk() || out.message.chunk().transfer() == 0;
  });
  return all;
}
std::vector<PeerTransfers::Outgoing> AnswersOf(std::vector<PeerTransfers::Outgoing> all) {
  std::erase_if(all, [](const PeerTransfers::Outgoing& out) { return out.message.has_chunk(); });
  return all;
}

TEST(PeerTransfers, NoMoreIsUnderWayThanAllowed) {
  const TransferOptions options{.chunk_bytes = 256 << 10, .credits = 4, .patience = 100};
  const size_t count = 8 << 18;  // 8 segments of a MiB
  const FloatMath math;
  const ExchangePlan plan = PlanOf(DistributedParameter::TREE, 2, 1);
  PeerTransfers leaf(plan, ValuesOf(plan, count)[1], math, options, 0);
  EXPECT_TRUE(ChunksOf(leaf.TakeOutgoing()).empty());
  leaf.OnChunkReceived(0, Here(), 0);
  uint64_t came = 0, segments = 0;
  std::map<uint64_t, TransferReceiver> receivers;
  for (auto chunks = ChunksOf(leaf.TakeOutgoing()); !chunks.empty(); chunks = ChunksOf(leaf.TakeOutgoing())) {
    ASSERT_LE(chunks.size(), 4u);
    for (const auto& out : chunks) {
      EXPECT_EQ(out.to, 0);
      came += out.slice.count;
      const auto answer = receivers.try_emplace(out.message.chunk().transfer(), 1 << 20)
                              .first->second.OnChunk(out.message.chunk(), out.slice.bytes());
      ASSERT_TRUE(answer);
      segments += answer->offset() == out.message.chunk().total();
      leaf.OnChunkReceived(0, *answer, 0);
    }
  }
  EXPECT_EQ(came, count * sizeof(float));
  EXPECT_EQ(segments, 8u);
  EXPECT_EQ(leaf.deadline(), kNever);
}

TEST(PeerTransfers, AskWhoIsThereBeforeTheySendToThem) {
  const FloatMath math;
  const std::vector<Payload> values = ValuesOf(PlanOf(DistributedParameter::RING, 3), 30);
  PeerTransfers worker(PlanOf(DistributedParameter::RING, 3, 1), values[1], math, kSmall, 0);
  // It is there for the one before it, and asks the one behind it.
  auto said = worker.TakeOutgoing();
  ASSERT_EQ(said.size(), 2u);
  EXPECT_EQ(said[0].to, 0);
  EXPECT_TRUE(said[0].message.has_chunk_received());
  EXPECT_EQ(said[0].message.chunk_received().transfer(), 0u);
  for (const Milliseconds again : {0, 200, 600, 1400}) {
    if (again > 0) {
      EXPECT_EQ(worker.deadline(), again);
      worker.Poll(again - 1);
      EXPECT_TRUE(worker.TakeOutgoing().empty());
      worker.Poll(again);
      said = worker.TakeOutgoing();
      ASSERT_EQ(said.size(), 1u);
    }
    EXPECT_EQ(said.back().to, 2);
    EXPECT_TRUE(said.back().message.has_chunk());
    EXPECT_EQ(said.back().message.chunk().transfer(), 0u);
    ASSERT_TRUE(said.back().slice.payload);
    EXPECT_TRUE(said.back().slice.payload->empty());
  }
  EXPECT_EQ(worker.bytes_sent(), 0u);
  // Whoever asks is told, again and again.
  PeerTransfers behind(PlanOf(DistributedParameter::RING, 3, 2), values[2], math, kSmall, 0);
  behind.TakeOutgoing();
  for (int i = 0; i < 2; ++i) {
    behind.OnChunk(1, said.back().message.chunk(), {}, 0);
    const auto answers = behind.TakeOutgoing();
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers[0].to, 1);
    worker.OnChunkReceived(2, answers[0].message.chunk_received(), 1500);
    EXPECT_EQ(worker.TakeOutgoing().size(), i == 0 ? 1u : 0u);
  }
  EXPECT_EQ(worker.bytes_sent(), 40u);
}

TEST(PeerTransfers, KnowThatThereIsOneThatAsksOrSends) {
  const FloatMath math;
  const std::vector<Payload> values = ValuesOf(PlanOf(DistributedParameter::SHARDED, 2), 10);
  PeerTransfers a(PlanOf(DistributedParameter::SHARDED, 2, 0), values[0], math, kSmall, 0);
  a.OnChunkReceived(1, Here(), 0);
  const auto chunks = ChunksOf(a.TakeOutgoing());
  ASSERT_EQ(chunks.size(), 1u);
  Chunk question;
  question.set_transfer(0);
  for (const bool asks : {true, false}) {
    PeerTransfers b(PlanOf(DistributedParameter::SHARDED, 2, 1), values[1], math, kSmall, 0);
    EXPECT_TRUE(ChunksOf(b.TakeOutgoing()).empty());
    if (asks) {
      b.OnChunk(0, question, {}, 0);
    } else {
      b.OnChunk(0, chunks[0].message.chunk(), chunks[0].slice.bytes(), 0);
    }
    EXPECT_EQ(ChunksOf(b.TakeOutgoing()).size(), asks ? 1u : 2u);
  }
}

TEST(PeerTransfers, GoOnAnsweringAndServingWhenTheyAreDone) {
  const FloatMath math;
  const std::vector<Payload> values = ValuesOf(PlanOf(DistributedParameter::SHARDED, 2), 10);
  PeerTransfers a(PlanOf(DistributedParameter::SHARDED, 2, 0), values[0], math, kSmall, 0);
  PeerTransfers b(PlanOf(DistributedParameter::SHARDED, 2, 1), values[1], math, kSmall, 0);
  a.OnChunkReceived(1, Here(), 0);
  b.OnChunkReceived(0, Here(), 0);
  // All that b says reaches a, and of what a says only its chunks of stage 0 reach b.
  for (const auto& out : ChunksOf(a.TakeOutgoing())) b.OnChunk(0, out.message.chunk(), out.slice.bytes(), 0);
  const auto of_b = ChunksOf(b.TakeOutgoing());
  ASSERT_EQ(of_b.size(), 2u);
  for (const auto& out : of_b) a.OnChunk(1, out.message.chunk(), out.slice.bytes(), 0);
  ASSERT_TRUE(a.result());
  EXPECT_FALSE(b.result());
  a.TakeOutgoing();  // lost
  // b sends again: a answers with all that it had, though it has the result.
  b.Poll(200);
  const auto again = ChunksOf(b.TakeOutgoing());
  ASSERT_EQ(again.size(), 2u);
  for (const auto& out : again) {
    a.OnChunk(1, out.message.chunk(), out.slice.bytes(), 200);
    const auto answers = AnswersOf(a.TakeOutgoing());
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers[0].to, 1);
    EXPECT_EQ(answers[0].message.chunk_received().offset(), out.message.chunk().total());
    b.OnChunkReceived(0, answers[0].message.chunk_received(), 200);
  }
  EXPECT_EQ(b.deadline(), kNever);
  EXPECT_EQ(a.bytes_received(), 40u);
  // And a sends again what b needs.
  a.Poll(1000);
  for (const auto& out : ChunksOf(a.TakeOutgoing())) b.OnChunk(0, out.message.chunk(), out.slice.bytes(), 1000);
  ASSERT_TRUE(b.result());
  EXPECT_EQ(*a.result(), *b.result());
  for (const auto& out : AnswersOf(b.TakeOutgoing())) a.OnChunkReceived(1, out.message.chunk_received(), 1000);
  EXPECT_EQ(a.deadline(), kNever);
}

TEST(PeerTransfers, IgnoreWhatIsOfNoTransfer) {
  const FloatMath math(100);
  const ExchangePlan plan = PlanOf(DistributedParameter::RING, 4, 1);
  PeerTransfers worker(plan, ValuesOf(plan, 40)[1], math, kSmall, 0);
  PeerTransfers before(PlanOf(DistributedParameter::RING, 4, 0), ValuesOf(plan, 40)[0], math, kSmall, 0);
  worker.TakeOutgoing();
  before.OnChunkReceived(1, Here(), 0);
  const auto chunks = ChunksOf(before.TakeOutgoing());
  ASSERT_EQ(chunks.size(), 1u);
  const Chunk& sound = chunks[0].message.chunk();
  const auto bytes = chunks[0].slice.bytes();
  const auto ignored = [&](int from, const Chunk& chunk, std::span<const std::byte> behind) {
    const uint64_t count = worker.ignored();
    worker.OnChunk(from, chunk, behind, 1);
    return worker.ignored() == count + 1 && worker.TakeOutgoing().empty();
  };
  for (const int from : {-1, 1, 2, 3, 4, 1000}) EXPECT_TRUE(ignored(from, sound, bytes)) << from;
  for (const uint64_t transfer : {uint64_t{0}, uint64_t{7}, uint64_t{1} << 32, UINT64_MAX}) {
    Chunk chunk = sound;
    chunk.set_transfer(transfer);
    EXPECT_TRUE(ignored(0, chunk, bytes)) << transfer;
  }
  Chunk chunk = sound;
  chunk.set_total(101);
  EXPECT_TRUE(ignored(0, chunk, bytes));
  chunk = sound;
  chunk.set_check(chunk.check() + 1);
  EXPECT_TRUE(ignored(0, chunk, bytes));
  ChunkReceived received;
  received.set_transfer(1);
  received.set_offset(40);
  for (const int from : {-1, 4, 1000}) {
    const uint64_t count = worker.ignored();
    worker.OnChunkReceived(from, received, 1);
    EXPECT_EQ(worker.ignored(), count + 1);
  }
  EXPECT_EQ(worker.bytes_received(), 0u);
  EXPECT_FALSE(ignored(0, sound, bytes));
  EXPECT_EQ(worker.bytes_received(), 40u);
}

TEST(PeerTransfers, SayNothingMoreWhenTheyHaveFailed) {
  FloatMath math;
  const ExchangePlan plan = PlanOf(DistributedParameter::RING, 3, 1);
  PeerTransfers before(PlanOf(DistributedParameter::RING, 3, 0), ValuesOf(plan, 30)[0], math, kSmall, 0);
  PeerTransfers worker(plan, ValuesOf(plan, 30)[1], math, kSmall, 0);
  worker.OnChunkReceived(2, Here(), 0);
  before.OnChunkReceived(1, Here(), 0);
  EXPECT_EQ(ChunksOf(worker.TakeOutgoing()).size(), 1u);
  math.FailAfter(0);
  const auto chunks = ChunksOf(before.TakeOutgoing());
  for (int i = 0; i < 2; ++i) {
    for (const auto& out : chunks) worker.OnChunk(0, out.message.chunk(), out.slice.bytes(), 0);
    EXPECT_TRUE(worker.failed());
    EXPECT_FALSE(worker.result());
    EXPECT_TRUE(ChunksOf(worker.TakeOutgoing()).empty());
  }
  EXPECT_EQ(worker.ignored(), 1u);
  EXPECT_EQ(worker.deadline(), kNever);
  worker.Poll(100'000);
  EXPECT_TRUE(worker.TakeOutgoing().empty());
}

// In a ring there are as many stages as workers, and nothing may be done for each of the one and the other.
TEST(PeerTransfers, ALargeRingBeginsAtOnce) {
  constexpr int kWorkers = 200'000;
  const FloatMath math;
  ExchangePlan plan = PlanOf(DistributedParameter::RING, kWorkers);
  plan.rank = 1;
  PeerTransfers transfers(plan, ValuesOf(PlanOf(DistributedParameter::RING, 1), 8)[0], math, kSmall, 0);
  std::vector<int> greeted;
  for (const PeerTransfers::Outgoing& out : transfers.TakeOutgoing()) {
    if (out.message.has_chunk_received()) greeted.push_back(out.to);
  }
  EXPECT_EQ(greeted, std::vector<int>{0}) << "who sends to this one, and nobody else";
}

}  // namespace
}  // namespace crema
