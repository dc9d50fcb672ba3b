// Codecs where workers exchange values among themselves: the same bits as with a coordinator where codes mean the same,
// and nothing is lost for good.
#include "distributed/codecs/peer_coding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random.h"
#include "distributed/contributions.h"

namespace crema {
namespace {

using Codec = DistributedParameter;

// A large parameter, a bias, one of little more than a block, a small one, a statistic of no layer, and a history.
StateLayout PeerLayout(int64_t history = 0) {
  StateLayout layout;
  layout.buckets = {{10'600, false}, {500, true}, {2500, false}, {300, false}};
  layout.trained = 13'900;
  layout.values = layout.trained + 7;
  layout.history = history;
  return layout;
}

DistributedParameter Settings(Codec::Topology topology, Codec::Codec up, Codec::Codec down,
                              Codec::Mode mode = Codec::AVERAGE) {
  DistributedParameter settings;
  settings.set_mode(mode);
  settings.set_topology(topology);
  settings.set_codec(up);
  settings.set_down_codec(down);
  settings.set_codec_warmup_rounds(2);
  settings.set_topk_ratio(0.05f);
  settings.set_codec_threshold(0.003f);
  return settings;
}

// Workers that exchange, and what they have.
struct Workers {
  Workers(const DistributedParameter& settings, const StateLayout& layout, int count, Payload start,
          const GradientUpdate& update = {})
      : state(std::move(start)) {
    for (int i = 0; i < count; ++i) {
      moves.push_back(std::make_unique<LocalMoves>(settings, layout, 0, nullptr, update));
    }
  }

  ExchangePlan PlanOf(const std::vector<Contribution>& contributions, uint64_t version) const {
    ExchangePlan plan{.topology = DistributedParameter::SHARDED, .iteration = version, .version = version};
    plan.from = state;
    for (const Contribution& c : contributions) plan.examples.push_back(c.push.examples());
    return plan;
  }

  // An exchange by these workers; all of them come to the same.
  Payload Exchange(const std::vector<Contribution>& contributions, uint64_t version, bool with_history = false) {
    const ExchangePlan plan = PlanOf(contributions, version);
    std::vector<Payload> values;
    std::vector<const ExchangeMath*> maths;
    for (const Contribution& c : contributions) {
      values.push_back(moves[c.slot]->Offer(c.values, with_history));
      maths.push_back(moves[c.slot]->exchange());
    }
    bytes.assign(contributions.size(), 0);
    const std::vector<Payload> results = ExchangeAll(plan, values, maths, &bytes);
    Payload next;
    for (size_t i = 0; i < results.size(); ++i) {
      const Payload mine =
          results[i] ? moves[contributions[i].slot]->Conclude(plan, results[i], with_history, state) : nullptr;
      EXPECT_TRUE(mine) << i;
      EXPECT_TRUE(!mine || i == 0 || *mine == *next) << i;
      next = mine;
    }
    return next;
  }

  void Settle(WorkerMath::Outcome outcome) {
    for (const auto& move : moves) move->Settle(outcome);
  }

  std::vector<std::unique_ptr<LocalMoves>> moves;
  std::vector<uint64_t> bytes;
  Payload state;
};

// What workers learned from `state` in a round: gradients, or parameters that differ a little.
std::vector<Contribution> Learned(const StateLayout& layout, const Payload& state, int workers, uint32_t round,
                                  bool gradients, bool with_history = false) {
  std::vector<Contribution> contributions;
  for (int i = 0; i < workers; ++i) {
    std::vector<float> values =
        RandomFloats(1000 * round + static_cast<uint32_t>(i), layout.bytes(with_history) / sizeof(float));
    for (int64_t k = 0; k < layout.trained; ++k) {
      values[k] *= 0.01f;
      if (!gradients) values[k] = FloatsOf(state)[k] + values[k];
    }
    contributions.push_back(Of(static_cast<uint32_t>(i), 5 + 3 * static_cast<uint64_t>(i), values, with_history));
  }
  return contributions;
}

// As long as membership stays, and with codes that take values one by one, or in runs that blocks are made of.
void ExpectSameBits(DistributedParameter star, int64_t history) {
  SCOPED_TRACE(star.ShortDebugString());
  DistributedParameter sharded = star;
  sharded.set_topology(DistributedParameter::SHARDED);
  const StateLayout layout = PeerLayout(history);
  const bool gradients = star.mode() == DistributedParameter::GRADIENT;
  const Payload start = PayloadOf(RandomFloats(7, layout.state_bytes(false) / sizeof(float)));
  const GradientUpdate update = [&](uint64_t, const float* gradient, float* values, float*) {
    for (int64_t i = 0; i < layout.trained; ++i) values[i] -= 0.5f * gradient[i];
  };
  std::unique_ptr<Averaging> math;
  if (gradients) {
    math = std::make_unique<GradientMean>(star, layout, start, GradientMean::Update{update, [] {}});
  } else {
    math = std::make_unique<Averaging>(star, layout, start, std::vector<float>());
  }
  Workers around(star, layout, 3, start), among(sharded, layout, 3, start, gradients ? update : GradientUpdate());
  for (uint64_t version = 0; version < 8; ++version) {
    const bool with_history = history > 0;
    std::vector<Contribution> now =
        Learned(layout, among.state, 3, static_cast<uint32_t>(version), gradients, with_history);
    const Payload next = among.Exchange(now, version, with_history);
    ASSERT_TRUE(next);
    among.Settle(WorkerMath::Outcome::kCommitted);
    for (Contribution& c : now) {
      c.values = around.moves[c.slot]->Encode(c.values, around.state, version);
      ASSERT_EQ(math->Check(c), "");
    }
    Round round;
    round.version = round.iteration = version;
    round.with_history = with_history;
    around.state = math->Reduce(round, now);
    math->Accept();
    around.Settle(WorkerMath::Outcome::kCommitted);
    ASSERT_TRUE(*next == *around.state) << version;
    among.state = next;
  }
}

TEST(PeerCoding, ShardedIsStarToTheBit) {
  for (const auto up : {Codec::NONE, Codec::FP16, Codec::BF16, Codec::INT8, Codec::THRESHOLD}) {
    for (const auto down : {Codec::NONE, Codec::FP16, Codec::BF16, Codec::INT8, Codec::THRESHOLD}) {
      ExpectSameBits(Settings(DistributedParameter::STAR, up, down), up == Codec::INT8 ? 13'900 : 0);
    }
    ExpectSameBits(Settings(DistributedParameter::STAR, up, Codec::NONE, DistributedParameter::GRADIENT), 0);
  }
  DistributedParameter momentum = Settings(DistributedParameter::STAR, Codec::INT8, Codec::NONE);
  momentum.set_outer_lr(0.7f);
  ExpectSameBits(momentum, 0);
}

// The same values in each round: what is left out must come in the end, also where others take the pieces meanwhile.
TEST(PeerCoding, EverythingArrives) {
  struct Case {
    Codec::Codec up, down;
    double most;  // of what is on its way
  };
  for (const Case& c : {Case{Codec::TOPK, Codec::INT8, 0.25}, Case{Codec::ONEBIT, Codec::FP16, 0.3},
                        Case{Codec::INT8, Codec::INT8, 0.01}, Case{Codec::NONE, Codec::TOPK, 0.25}}) {
    for (const bool gradients : {false, true}) {
      const auto settings = Settings(DistributedParameter::SHARDED, c.up, c.down,
                                     gradients ? DistributedParameter::GRADIENT : DistributedParameter::AVERAGE);
      SCOPED_TRACE(settings.ShortDebugString());
      const StateLayout layout = PeerLayout();
      const Payload start = PayloadOf(RandomFloats(7, layout.state_bytes(false) / sizeof(float)));
      const GradientUpdate update = [&](uint64_t, const float* gradient, float* values, float*) {
        for (int64_t i = 0; i < layout.trained; ++i) values[i] += gradient[i];
      };
      Workers workers(settings, layout, 3, start, gradients ? update : GradientUpdate());
      std::vector<double> exact(FloatsOf(start).begin(), FloatsOf(start).end());
      const std::vector<float> zeros(static_cast<size_t>(layout.values));
      for (uint64_t version = 0; version < 30; ++version) {
        const std::vector<Contribution> moved = Learned(layout, PayloadOf(zeros), 3, 5, true);
        std::vector<Contribution> now = moved;
        double total = 0;
        for (const Contribution& one : now) total += static_cast<double>(one.push.examples());
        for (Contribution& one : now) {
          std::vector<float> values = Floats(one.values);
          for (int64_t k = 0; k < layout.trained; ++k) {
            exact[k] += static_cast<double>(one.push.examples()) / total * values[k];
            if (!gradients) values[k] += FloatsOf(workers.state)[k];
          }
          one.values = PayloadOf(values);
        }
        const Payload next = workers.Exchange(now, version);
        ASSERT_TRUE(next);
        workers.Settle(WorkerMath::Outcome::kCommitted);
        workers.state = next;
      }
      double most = 0;
      for (int64_t k = 0; k < layout.trained; ++k) {
        most = std::max(most, std::fabs(exact[k] - FloatsOf(workers.state)[k]));
      }
      EXPECT_LT(most, c.most);
    }
  }
}

// Attempts that came to nothing, among others and by other ways, leave no trace.
TEST(PeerCoding, AttemptsThatDidNotCountLeaveNoTrace) {
  const auto settings = Settings(DistributedParameter::SHARDED, Codec::TOPK, Codec::INT8);
  const StateLayout layout = PeerLayout();
  const Payload start = PayloadOf(RandomFloats(7, layout.state_bytes(false) / sizeof(float)));
  Workers steady(settings, layout, 3, start), shaken(settings, layout, 3, start);
  for (uint64_t version = 0; version < 8; ++version) {
    const std::vector<Contribution> now = Learned(layout, steady.state, 3, static_cast<uint32_t>(version), false);
    if (version % 2 == 1) {
      ASSERT_TRUE(shaken.Exchange({now[2], now[0]}, version));  // cut in other places
    }
    if (version % 3 == 1) {
      ASSERT_TRUE(shaken.Exchange(now, version));
      shaken.Settle(WorkerMath::Outcome::kDropped);
    }
    const Payload next = steady.Exchange(now, version), again = shaken.Exchange(now, version);
    ASSERT_TRUE(next && again);
    ASSERT_TRUE(*next == *again) << version;
    steady.Settle(WorkerMath::Outcome::kCommitted);
    shaken.Settle(WorkerMath::Outcome::kCommitted);
    if (version == 5) {
      // A round through the coordinator: values as they are, and what was given to an exchange before is not committed.
      const std::vector<Contribution> detour = Learned(layout, next, 3, 77, false);
      ASSERT_TRUE(shaken.Exchange(detour, version));
      for (const Contribution& c : detour) {
        const Payload sent = shaken.moves[c.slot]->Encode(c.values, next, version);
        EXPECT_EQ(sent, c.values);
      }
      shaken.Settle(WorkerMath::Outcome::kCommitted);
    }
    steady.state = shaken.state = next;
  }
  // What is not known to have come is forgotten, rather than sent twice.
  steady.Settle(WorkerMath::Outcome::kUnknown);
  Workers fresh(settings, layout, 3, steady.state);
  const std::vector<Contribution> now = Learned(layout, steady.state, 3, 90, false);
  fresh.state = steady.state;
  const Payload a = steady.Exchange(now, 8), b = fresh.Exchange(now, 8), c = shaken.Exchange(now, 8);
  EXPECT_TRUE(*a == *b);
  EXPECT_FALSE(*a == *c);
}

TEST(PeerCoding, PiecesAreCutBetweenBlocks) {
  const auto settings = Settings(DistributedParameter::SHARDED, Codec::INT8, Codec::INT8);
  const StateLayout layout = PeerLayout(13'900);
  const PeerAveraging math(settings, layout);
  for (const bool with_history : {false, true}) {
    for (const int pieces : {1, 2, 3, 7, 20}) {
      const std::vector<uint64_t> cuts = math.Cuts(layout.bytes(with_history), pieces);
      ASSERT_EQ(cuts.size(), static_cast<size_t>(pieces) + 1);
      EXPECT_TRUE(std::is_sorted(cuts.begin(), cuts.end()));
      EXPECT_EQ(cuts.back(), layout.bytes(with_history));
      for (const uint64_t cut : cuts) {
        const int64_t place = static_cast<int64_t>(cut / sizeof(float));
        if (place < 10'600) {
          EXPECT_EQ(place % 2048, 0);
        } else if (place < layout.trained) {
          EXPECT_TRUE(place == 10'600 || place == 11'100 || place == 13'600) << place;
        } else {
          EXPECT_TRUE(place == layout.trained || place >= layout.values) << place;
        }
      }
    }
  }
  // 10600 = 4 * 2048 + 2408: the last block is the longer one.
  EXPECT_EQ(PeerCoding(settings, layout).CutNear(8500), 8192);
  EXPECT_EQ(PeerCoding(settings, layout).CutNear(10'500), 10'600);
  EXPECT_EQ(PeerCoding(settings, layout).CutNear(13'905), 13'905);
}

// 2 S (N - 1) / N bytes out of each worker, S being the bytes of the codes.
TEST(PeerCoding, BytesAreThoseOfTheFormula) {
  StateLayout layout;
  layout.buckets = {{200'000, false}, {500, true}};
  layout.trained = layout.values = 200'500;
  for (const auto& [codec, bytes] : {std::pair(Codec::FP16, 2.0), {Codec::BF16, 2.0}, {Codec::INT8, 1 + 4.0 / 256}}) {
    for (const int count : {2, 3}) {
      Workers workers(Settings(DistributedParameter::SHARDED, codec, codec), layout, count,
                      PayloadOf(RandomFloats(7, 200'500)));
      const double coded = 200'000 * bytes + 4 * 500;
      ASSERT_TRUE(workers.Exchange(Learned(layout, workers.state, count, 3, false), 5));
      for (const uint64_t sent : workers.bytes) {
        EXPECT_NEAR(static_cast<double>(sent) / (2 * coded * (count - 1) / count), 1, 0.03);
      }
    }
  }
}

TEST(PeerCoding, CodesThatAreNoneMakeNothing) {
  const auto settings = Settings(DistributedParameter::SHARDED, Codec::INT8, Codec::TOPK);
  const StateLayout layout = PeerLayout();
  PeerCoding coding(settings, layout);
  const std::vector<float> values = RandomFloats(3, static_cast<size_t>(layout.values));
  const PeerCoding::Range piece{2048, layout.values};
  const size_t others = 7;
  for (const Direction direction : {Direction::kUp, Direction::kDown}) {
    const Payload code = coding.Encode(direction, piece, values.data() + 2048, {}, false);
    ASSERT_TRUE(code);
    EXPECT_LE(code->size(), coding.most_bytes());
    const Payload decoded = coding.Decode(direction, piece, code, {});
    ASSERT_TRUE(decoded);
    ASSERT_EQ(decoded->size(), (values.size() - 2048) * sizeof(float));
    EXPECT_TRUE(std::equal(values.end() - others, values.end(), FloatsOf(decoded).end() - others));
    EXPECT_EQ(coding.Decode(direction, piece, nullptr, {}), nullptr);
    EXPECT_EQ(coding.Decode(direction, {0, layout.values}, code, {}), nullptr) << "of another piece";
    for (size_t size = 0; size < code->size(); size += 1 + size / 3) {
      const auto cut = std::make_shared<Bytes>(code->begin(), code->begin() + size);
      EXPECT_EQ(coding.Decode(direction, piece, cut, {}), nullptr) << size;
    }
    const RandomStream random(5, 6);
    for (uint64_t i = 0; i < 200; ++i) {
      auto broken = std::make_shared<Bytes>(*code);
      for (uint64_t k = 0; k < 4; ++k) {
        (*broken)[random.Below(8 * i + k, broken->size())] = static_cast<std::byte>(random.Below(8 * i + 4 + k, 256));
      }
      const Payload got = coding.Decode(direction, piece, broken, {});
      if (got) {
        EXPECT_EQ(got->size(), decoded->size());
      }
    }
  }
  std::vector<float> infinite = values;
  infinite[5000] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(coding.Encode(Direction::kUp, piece, infinite.data() + 2048, {}, false), nullptr);
}

// A worker that sends no code, or of another codec, spoils the attempt and nothing else.
TEST(PeerCoding, WhoSendsNonsenseSpoilsTheExchangeOnly) {
  const StateLayout layout = PeerLayout();
  const Payload start = PayloadOf(RandomFloats(7, layout.state_bytes(false) / sizeof(float)));
  Workers right(Settings(DistributedParameter::SHARDED, Codec::INT8, Codec::INT8), layout, 3, start),
      wrong(Settings(DistributedParameter::SHARDED, Codec::FP16, Codec::FP16), layout, 3, start);
  const std::vector<Contribution> now = Learned(layout, start, 3, 4, false);
  std::vector<Payload> values;
  for (const Contribution& c : now) values.push_back(c.values);
  const std::vector<Payload> results =
      ExchangeAll(right.PlanOf(now, 5), values,
                  {right.moves[0]->exchange(), wrong.moves[1]->exchange(), right.moves[2]->exchange()});
  for (const Payload& result : results) EXPECT_EQ(result, nullptr);
  EXPECT_TRUE(right.Exchange(now, 5));
}

}  // namespace
}  // namespace crema
