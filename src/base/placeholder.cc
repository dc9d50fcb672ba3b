#include "base/placeholder.h"

namespace crema {

std::string PlaceholderNote(std::string_view text) {
  const size_t begin = text.find("${");
  const size_t end = begin == std::string_view::npos ? begin : text.find('}', begin);
  if (end == std::string_view::npos) return "";
  const std::string name(text.substr(begin, end + 1 - begin));
  return "; a script was to fill in " + name + ", as DeepLab's run_pascal.sh does: write its value, by sed 's/" + name +
         "/.../g' say";
}

}  // namespace crema
