// Some of many records, spread evenly.
#ifndef CREMA_BASE_EVENLY_SPREAD_H_
#define CREMA_BASE_EVENLY_SPREAD_H_

#include <algorithm>
#include <cstdint>

namespace crema {

// Calls look(record) with at most `most` of the first `count` numbers in rising order, 0 and the last one among them.
template <typename Look>
void ForEachSpread(uint64_t count, uint64_t most, const Look& look) {
  const uint64_t looked_at = std::min(count, most);
  for (uint64_t i = 0; i < looked_at; ++i) look(looked_at == 1 ? 0 : i * (count - 1) / (looked_at - 1));
}

}  // namespace crema

#endif  // CREMA_BASE_EVENLY_SPREAD_H_
