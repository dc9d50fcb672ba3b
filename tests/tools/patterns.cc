#include "tools/patterns.h"

#include <regex>

namespace crema::testing_tools {

bool Matches(const std::string& text, const std::string& pattern) {
  return std::regex_search(text, std::regex(pattern));
}

std::vector<std::string> FindAll(const std::string& text, const std::string& pattern, int group) {
  const std::regex compiled(pattern);
  const std::sregex_token_iterator first(text.begin(), text.end(), compiled, group);
  return {first, std::sregex_token_iterator()};
}

std::string Replaced(const std::string& text, const std::string& pattern, const std::string& by) {
  return std::regex_replace(text, std::regex(pattern), by);
}

}  // namespace crema::testing_tools
