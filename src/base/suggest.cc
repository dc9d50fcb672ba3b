#include "base/suggest.h"

#include <algorithm>

#include "base/lower_case.h"

namespace crema {

int EditDistance(std::string_view a, std::string_view b) {
  const auto same = [](char x, char y) { return LowerCase(x) == LowerCase(y); };
  const size_t columns = b.size() + 1;
  std::vector<int> before(columns), last(columns), row(columns);
  for (size_t j = 0; j < columns; ++j) last[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j < columns; ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same(a[i - 1], b[j - 1]) ? 0 : 1)});
      if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1])) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::string DidYouMean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string* best = nullptr;
  int best_distance = std::max<int>(1, static_cast<int>(word.size()) / 3) + 1;
  for (const std::string& candidate : candidates) {
    const int distance = EditDistance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = &candidate;
    }
  }
  return best ? "; did you mean \"" + *best + "\"?" : "";
}

}  // namespace crema
