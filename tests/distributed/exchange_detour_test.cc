#include "distributed/protocol/exchange_detour.h"

#include <gtest/gtest.h>

namespace crema {
namespace {

// Fails in both attempts of the round behind `version`.
uint64_t FailRound(ExchangeDetour* detour, uint64_t version) {
  detour->BeginRound();
  EXPECT_EQ(detour->OnFailure(version), 0u);
  EXPECT_FALSE(detour->Includes(version));
  return detour->OnFailure(version);
}

TEST(ExchangeDetour, BeginsWithTheSecondFailureOfARound) {
  ExchangeDetour detour;
  EXPECT_EQ(FailRound(&detour, 5), 10u);
  EXPECT_TRUE(detour.Includes(5));
  EXPECT_TRUE(detour.Includes(14));
  EXPECT_FALSE(detour.Includes(15));
  // One failure of each round is none.
  for (uint64_t version = 15; version < 18; ++version) {
    detour.BeginRound();
    EXPECT_EQ(detour.OnFailure(version), 0u);
    EXPECT_FALSE(detour.Includes(version));
  }
}

TEST(ExchangeDetour, GetsLongerUntilAnExchangeSucceeds) {
  ExchangeDetour detour;
  uint64_t version = 0, last = 0;
  for (const uint64_t rounds : {10, 20, 40, 80, 160, 320, 640, 1000, 1000}) {
    last = FailRound(&detour, version);
    EXPECT_EQ(last, rounds);
    version += last;
  }
  detour.OnSuccess();
  EXPECT_EQ(FailRound(&detour, version), 10u);
}

}  // namespace
}  // namespace crema
