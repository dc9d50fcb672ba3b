// Against looking at everything that was placed before.
#include "compiler/occupied_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace crema {
namespace {

struct Piece {
  int first, last;
  size_t begin, end;
};

bool IsFree(const std::vector<Piece>& pieces, int first, int last, size_t begin, size_t end) {
  return std::none_of(pieces.begin(), pieces.end(), [&](const Piece& piece) {
    return piece.first <= last && first <= piece.last && piece.begin < end && begin < piece.end;
  });
}

// 0, or where another one ends.
size_t LowestFree(const std::vector<Piece>& pieces, int first, int last, size_t bytes) {
  std::vector<size_t> offsets = {0};
  for (const Piece& piece : pieces) offsets.push_back(piece.end);
  std::sort(offsets.begin(), offsets.end());
  return *std::find_if(offsets.begin(), offsets.end(),
                       [&](size_t offset) { return IsFree(pieces, first, last, offset, offset + bytes); });
}

TEST(OccupiedMemory, FindsTheLowestFreePlace) {
  std::mt19937 random(5);
  for (const int steps : {1, 2, 7, 64, 100}) {
    OccupiedMemory occupied(steps);
    std::vector<Piece> pieces;
    for (int i = 0; i < 300; ++i) {
      int first = static_cast<int>(random() % steps);
      int last = std::min(steps - 1, first + static_cast<int>(random() % (i % 3 == 0 ? steps : 4)));
      const size_t bytes = 1 + random() % (i % 2 == 0 ? 9 : 100);
      const size_t offset = occupied.LowestFree(first, last, bytes);
      ASSERT_EQ(offset, LowestFree(pieces, first, last, bytes)) << "piece " << i << " of " << steps << " steps";
      occupied.Take(first, last, offset, bytes);
      pieces.push_back({first, last, offset, offset + bytes});
    }
  }
}

}  // namespace
}  // namespace crema
