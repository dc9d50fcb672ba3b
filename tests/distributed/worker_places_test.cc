#include "distributed/protocol/worker_places.h"

#include <gtest/gtest.h>

namespace crema {
namespace {

TEST(WorkerPlaces, GivesTheLowestFreeOne) {
  WorkerPlaces places(4);
  EXPECT_EQ(places.Take({}), 0u);
  EXPECT_EQ(places.Take({}), 1u);
  EXPECT_EQ(places.Take({}), 2u);
  places.Return(1);
  EXPECT_EQ(places.Take({}), 1u);
  EXPECT_EQ(places.Take({}), 3u);
}

TEST(WorkerPlaces, GivesTheWantedOneWhereItIsFree) {
  WorkerPlaces places(4);
  EXPECT_EQ(places.Take(2), 2u);
  EXPECT_EQ(places.Take(2), 0u);
  EXPECT_EQ(places.Take(4), 1u);  // not one of four
  EXPECT_EQ(places.Take({}), 3u);
  places.Return(2);
  EXPECT_EQ(places.Take(2), 2u);
}

}  // namespace
}  // namespace crema
