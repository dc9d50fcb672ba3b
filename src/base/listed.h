// Names or numbers in messages, however many there are.
#ifndef CREMA_BASE_LISTED_H_
#define CREMA_BASE_LISTED_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <ranges>
#include <string>
#include <string_view>

namespace crema {

constexpr size_t kAllNames = SIZE_MAX;

struct ListOptions {
  size_t most = 20;  // what is told by name; kAllNames for lists that the program itself holds
  bool quoted = false;
  std::string_view last = ", ";  // before the last one, where all are told
};

// `a, b, c`, or `a, b and 7 more` where there are more than options.most.
template <std::ranges::forward_range Names>
std::string Listed(const Names& names, const ListOptions& options = {}) {
  const auto count = static_cast<size_t>(std::ranges::distance(names));
  const char* quote = options.quoted ? "\"" : "";
  std::string text;
  size_t told = 0;
  for (const auto& name : names) {
    if (told == options.most) return text + " and " + std::to_string(count - told) + " more";
    if (told > 0) text += told + 1 == count ? options.last : ", ";
    if constexpr (std::integral<std::ranges::range_value_t<Names>>) {
      text += std::to_string(name);
    } else {
      text.append(quote).append(std::string_view(name)).append(quote);
    }
    ++told;
  }
  return text;
}

}  // namespace crema

#endif  // CREMA_BASE_LISTED_H_
