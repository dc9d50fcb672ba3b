// PeerTransfers of several workers, with a network between them that loses, repeats, breaks and delays.
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <memory>

#include "base/random.h"
#include "distributed/exchange/exchange.h"
#include "distributed/exchange_math.h"

namespace crema {
namespace {

struct Faults {
  uint64_t lost = 0, repeated = 0, broken = 0;  // of a hundred
  Milliseconds least = 1, most = 1;             // on the way
};

// Workers, what is on its way between them, and a clock.
class Network {
 public:
  Network(const ExchangePlan& plan, std::vector<Payload> values, const ExchangeMath& math,
          const TransferOptions& options, const Faults& faults, uint64_t seed)
      : plan_(plan),
        values_(std::move(values)),
        math_(math),
        options_(options),
        faults_(faults),
        random_(seed, 8),
        workers_(values_.size()),
        starts_(values_.size()) {}

  void StartLater(int rank, Milliseconds when) { starts_[static_cast<size_t>(rank)] = when; }

  // Until all have a result and nothing to send; false: not before `end`.
  bool Run(Milliseconds end) {
    for (; now_ < end; ++now_) {
      for (int r = 0; r < size(); ++r) {
        auto& worker = workers_[static_cast<size_t>(r)];
        if (!worker && now_ >= starts_[static_cast<size_t>(r)]) {
          ExchangePlan plan = plan_;
          plan.rank = r;
          worker = std::make_unique<PeerTransfers>(plan, values_[static_cast<size_t>(r)], math_, options_, now_);
        }
        if (worker && now_ >= worker->deadline()) worker->Poll(now_);
        Collect(r);
      }
      while (!way_.empty() && way_.begin()->first <= now_) {
        const Packet packet = std::move(way_.begin()->second);
        way_.erase(way_.begin());
        Deliver(packet);
      }
      if (Over()) return true;
    }
    return false;
  }

  PeerTransfers& at(int rank) { return *workers_[static_cast<size_t>(rank)]; }
  int size() const { return static_cast<int>(workers_.size()); }
  Milliseconds now() const { return now_; }

 private:
  struct Packet {
    int from = 0;
    PeerTransfers::Outgoing outgoing;
    bool broken = false;
  };

  bool Chance(uint64_t of_hundred) { return random_.Below(drawn_++, 100) < of_hundred; }

  void Collect(int from) {
    if (!workers_[static_cast<size_t>(from)]) return;
    for (PeerTransfers::Outgoing& out : at(from).TakeOutgoing()) {
      const Packet packet{from, std::move(out), Chance(faults_.broken)};
      for (int copies = 1 + Chance(faults_.repeated); copies > 0; --copies) {
        const Milliseconds takes =
            faults_.least +
            static_cast<Milliseconds>(random_.Below(drawn_++, static_cast<uint64_t>(faults_.most - faults_.least + 1)));
        if (!Chance(faults_.lost)) way_.emplace(now_ + takes, packet);
      }
    }
  }

  void Deliver(const Packet& packet) {
    const int to = packet.outgoing.to;
    if (!workers_[static_cast<size_t>(to)]) return;
    const ClusterMessage& message = packet.outgoing.message;
    if (message.has_chunk_received()) {
      at(to).OnChunkReceived(packet.from, message.chunk_received(), now_);
    } else {
      const Slice& slice = packet.outgoing.slice;
      Bytes bytes;
      if (slice.payload) bytes.assign(slice.bytes().begin(), slice.bytes().end());
      if (packet.broken && !bytes.empty()) bytes[bytes.size() / 2] ^= std::byte{4};
      at(to).OnChunk(packet.from, message.chunk(), bytes, now_);
    }
    Collect(to);
  }

  bool Over() const {
    for (const auto& worker : workers_) {
      if (!worker || !worker->result() || worker->deadline() != std::numeric_limits<Milliseconds>::max()) return false;
    }
    return true;
  }

  const ExchangePlan plan_;
  const std::vector<Payload> values_;
  const ExchangeMath& math_;
  const TransferOptions options_;
  const Faults faults_;
  const RandomStream random_;
  uint64_t drawn_ = 0;
  std::vector<std::unique_ptr<PeerTransfers>> workers_;
  std::vector<Milliseconds> starts_;
  std::multimap<Milliseconds, Packet> way_;
  Milliseconds now_ = 0;
};

class PeerTransfersTest : public testing::TestWithParam<DistributedParameter::Topology> {};

TEST_P(PeerTransfersTest, SurviveLossDuplicatesAndAnotherOrder) {
  for (const int n : {1, 2, 3, 4, 7, 9}) {
    for (uint64_t seed = 0; seed < 6; ++seed) {
      SCOPED_TRACE(testing::Message() << n << " workers, seed " << seed);
      const ExchangePlan plan = PlanOf(GetParam(), n);
      const size_t count = seed == 5 ? 2 : 700;
      const auto cutting = seed % 2 == 0 ? FloatMath::Cutting::kEven : FloatMath::Cutting::kSkewed;
      const FloatMath math(count * sizeof(float), cutting);
      const std::vector<Payload> values = ValuesOf(plan, count);
      Network calm(plan, values, math, kSmall, {}, 0);
      ASSERT_TRUE(calm.Run(100'000));
      Network network(plan, values, math, kSmall, {.lost = 15, .repeated = 15, .broken = 5, .least = 1, .most = 60},
                      seed);
      for (int r = 0; r < n; ++r) network.StartLater(r, static_cast<Milliseconds>(seed * 37) * r);
      ASSERT_TRUE(network.Run(3'000'000));
      uint64_t ignored = 0;
      for (int r = 0; r < n; ++r) {
        ASSERT_FALSE(network.at(r).failed());
        ASSERT_EQ(*network.at(r).result(), *calm.at(0).result());
        ASSERT_EQ(*network.at(r).result(), *calm.at(r).result());
        // Each byte counts once where it came, and as often as it went.
        ASSERT_EQ(network.at(r).bytes_received(), calm.at(r).bytes_received());
        ASSERT_GE(network.at(r).bytes_sent(), calm.at(r).bytes_sent());
        ASSERT_EQ(calm.at(r).ignored(), 0u);
        ignored += network.at(r).ignored();
      }
      if (n > 2 && count > 2) {
        ASSERT_GT(ignored, 0u);
      }
    }
  }
}

TEST_P(PeerTransfersTest, SendNoByteTwiceWhereNothingIsLost) {
  const ExchangePlan plan = PlanOf(GetParam(), 4);
  const FloatMath math;
  Network network(plan, ValuesOf(plan, 1024), math, kSmall, {}, 1);
  ASSERT_TRUE(network.Run(10'000));
  uint64_t sent = 0, received = 0;
  for (int r = 0; r < 4; ++r) {
    sent += network.at(r).bytes_sent();
    received += network.at(r).bytes_received();
  }
  EXPECT_EQ(sent, 2 * 4096u * 3);
  EXPECT_EQ(received, sent);
}

// Nothing would else happen until the others lose patience.
TEST_P(PeerTransfersTest, NobodyWaitsLongForOneThatComesLater) {
  const TransferOptions options{.chunk_bytes = 100, .credits = 3, .patience = 1'000'000};
  for (int late = 0; late < 5; ++late) {
    const ExchangePlan plan = PlanOf(GetParam(), 5);
    const FloatMath math;
    Network network(plan, ValuesOf(plan, 500), math, options, {}, 1);
    network.StartLater(late, 700);
    ASSERT_TRUE(network.Run(10'000)) << late;
    EXPECT_GE(network.now(), 700);
  }
}

TEST_P(PeerTransfersTest, KeepNothingOfWhatHasArrived) {
  for (const int n : {2, 3, 4, 6}) {
    const ExchangePlan plan = PlanOf(GetParam(), n);
    const FloatMath math;
    Network network(plan, ValuesOf(plan, 500), math, kSmall, {}, 1);
    ASSERT_TRUE(network.Run(10'000));
    for (const Payload& alive : math.Alive()) {
      bool result = false;
      for (int r = 0; r < n; ++r) result = result || alive == network.at(r).result();
      EXPECT_TRUE(result) << n << " workers, " << alive->size() << " bytes";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Topologies, PeerTransfersTest, testing::ValuesIn(kTopologies),
                         [](const auto& info) { return DistributedParameter::Topology_Name(info.param); });

}  // namespace
}  // namespace crema
