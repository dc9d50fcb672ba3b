// Names of machines in tables.
#ifndef CREMA_BASE_SHORT_NAME_H_
#define CREMA_BASE_SHORT_NAME_H_

#include <cstddef>
#include <string>

namespace crema {

// At most `most` >= 3 characters: both ends of a longer name, which tell hosts and processes apart, and "~" between.
inline std::string ShortName(const std::string& name, size_t most) {
  if (name.size() <= most) return name;
  return name.substr(0, most - 1 - most / 2) + "~" + name.substr(name.size() - most / 2);
}

}  // namespace crema

#endif  // CREMA_BASE_SHORT_NAME_H_
