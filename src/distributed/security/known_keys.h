// Whom an Authenticator lets in.
#ifndef CREMA_DISTRIBUTED_SECURITY_KNOWN_KEYS_H_
#define CREMA_DISTRIBUTED_SECURITY_KNOWN_KEYS_H_

#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "crema/error.h"

namespace crema {

// Asked by the Authenticator's thread alone.
class KnownKeys {
 public:
  virtual ~KnownKeys() = default;
  // Comes before each NameOf. What went wrong, to be logged.
  virtual std::vector<Diagnostic> Refresh() { return {}; }
  // The name under which a Z85 public key is let in, if it is.
  virtual std::optional<std::string> NameOf(const std::string& public_key) const = 0;
  // What lets an unknown key in, for people to read. Empty where that may happen by itself, and soon: then nothing
  // is logged, and the connection is left waiting for it.
  virtual std::string Remedy(const std::string& public_key) const = 0;
};

// Those that the program says at the moment, each under itself as its name. Any thread may say.
class KeySet : public KnownKeys {
 public:
  void Set(std::set<std::string> public_keys);
  std::optional<std::string> NameOf(const std::string& public_key) const override;
  std::string Remedy(const std::string&) const override { return ""; }

 private:
  mutable std::mutex mutex_;
  std::set<std::string> keys_;  // under mutex_
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_SECURITY_KNOWN_KEYS_H_
