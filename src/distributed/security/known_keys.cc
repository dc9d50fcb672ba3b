#include "distributed/security/known_keys.h"

#include <utility>

namespace crema {

void KeySet::Set(std::set<std::string> public_keys) {
  const std::lock_guard lock(mutex_);
  keys_ = std::move(public_keys);
}

std::optional<std::string> KeySet::NameOf(const std::string& public_key) const {
  const std::lock_guard lock(mutex_);
  if (!keys_.contains(public_key)) return std::nullopt;
  return public_key;
}

}  // namespace crema
