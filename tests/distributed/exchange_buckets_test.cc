// Exchanges of values that are still being made.
#include <gtest/gtest.h>

#include "base/random.h"
#include "distributed/exchange_math.h"
#include "distributed/in_the_making.h"

namespace crema {
namespace {

struct Letter {
  int from = 0;
  Exchange::Message message;
};

TEST(ExchangeInBuckets, GivesTheSameBitsWhateverIsThereFirst) {
  for (const int n : {1, 2, 3, 5}) {
    for (const size_t count : {0u, 1u, 7u, 1000u}) {
      for (const int buckets : {1, 2, 7}) {
        for (const auto cutting : {FloatMath::Cutting::kEven, FloatMath::Cutting::kSkewed}) {
          SCOPED_TRACE(testing::Message() << n << " workers, " << count << " values, " << buckets << " buckets");
          FloatMath math(count * sizeof(float), cutting);
          math.set_buckets(buckets);
          ExchangePlan plan = PlanOf(DistributedParameter::SHARDED, n);
          const std::vector<Payload> values = ValuesOf(plan, count);
          const Payload mean = FloatMath().Combine(plan, 0, count * sizeof(float), values);
          std::vector<InTheMaking> making(values.begin(), values.end());
          std::vector<std::unique_ptr<Exchange>> exchanges;
          for (plan.rank = 0; plan.rank < n; ++plan.rank) {
            const InTheMaking& own = making[static_cast<size_t>(plan.rank)];
            exchanges.push_back(MakeExchange(plan, own.bytes(), math, own.there_from()));
          }
          const RandomStream random(static_cast<uint64_t>(n * buckets), count);
          uint64_t drawn = 0;
          std::vector<Letter> way;
          const auto done = [&] {
            return std::all_of(exchanges.begin(), exchanges.end(), [](const auto& one) { return one->result(); });
          };
          for (int turn = 0; !done(); ++turn) {
            ASSERT_LT(turn, 10'000);
            const auto r = static_cast<size_t>(random.Below(drawn++, static_cast<uint64_t>(n)));
            if (random.Below(drawn++, 3) == 0) {
              const uint64_t less = random.Below(drawn++, 2 + count * sizeof(float) / 3);
              making[r].MakeFrom(making[r].there_from() - std::min(making[r].there_from(), less));
              exchanges[r]->OnValues(making[r].there_from());
            } else if (!way.empty()) {
              const size_t i = random.Below(drawn++, way.size());
              const Letter letter = way[i];
              way.erase(way.begin() + static_cast<std::ptrdiff_t>(i));
              exchanges[static_cast<size_t>(letter.message.to)]->OnMessage(letter.from, letter.message.stage,
                                                                           letter.message.payload);
            }
            for (int from = 0; from < n; ++from) {
              for (Exchange::Message& message : exchanges[static_cast<size_t>(from)]->TakeMessages()) {
                way.push_back({from, std::move(message)});
              }
            }
          }
          for (const auto& one : exchanges) EXPECT_EQ(*one->result(), *mean);
        }
      }
    }
  }
}

TEST(ExchangeInBuckets, SendsWhatIsThereAndGivesBackWhatCameOfIt) {
  FloatMath math;
  math.set_buckets(4);
  ExchangePlan plan = PlanOf(DistributedParameter::SHARDED, 2);
  const std::vector<Payload> values = ValuesOf(plan, 800);
  InTheMaking own(values[0]);
  const auto exchange = MakeExchange(plan, own.bytes(), math, own.there_from());
  EXPECT_TRUE(exchange->TakeMessages().empty());
  own.MakeFrom(2401);
  exchange->OnValues(2401);
  EXPECT_TRUE(exchange->TakeMessages().empty()) << "a byte of the last bucket is missing";
  own.MakeFrom(2000);
  exchange->OnValues(2000);
  std::vector<Exchange::Message> sent = exchange->TakeMessages();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].stage, 6u);
  EXPECT_EQ(*sent[0].payload, Bytes(values[0]->begin() + 2800, values[0]->end()));
  // The other one's piece of the same bucket.
  exchange->OnMessage(1, 6, std::make_shared<Bytes>(values[1]->begin() + 2400, values[1]->begin() + 2800));
  sent = exchange->TakeMessages();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].stage, 7u);
  EXPECT_FALSE(exchange->result());
  EXPECT_FALSE(exchange->failed());
}

}  // namespace
}  // namespace crema
