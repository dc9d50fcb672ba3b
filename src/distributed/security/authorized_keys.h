// The folder of the public keys of those who may join a training, one NAME.public each.
#ifndef CREMA_DISTRIBUTED_SECURITY_AUTHORIZED_KEYS_H_
#define CREMA_DISTRIBUTED_SECURITY_AUTHORIZED_KEYS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "distributed/security/known_keys.h"

namespace crema {

// Follows the folder: files that were added, changed or removed count after the next Refresh. Not thread-safe.
class AuthorizedKeys : public KnownKeys {
 public:
  // `folder` as the user gave it. Reads nothing yet.
  explicit AuthorizedKeys(std::string folder);

  // Looks at the folder and reads it again if anything in it changed. Files that are no public keys, and a key that
  // came before under another name, authorize nobody; each is told once, until the folder changes again. Returns what
  // is wrong, empty where nothing is or nothing changed. A folder that cannot be read authorizes nobody.
  std::vector<Diagnostic> Refresh() override;

  // The name (its file's, without ".public") of a Z85 public key, if that is authorized.
  std::optional<std::string> NameOf(const std::string& public_key) const override;
  std::string Remedy(const std::string& public_key) const override;

  size_t size() const { return names_.size(); }

 private:
  // Device, inode, bytes, time of the last change in seconds and nanoseconds, permissions.
  using Fingerprint = std::tuple<uint64_t, uint64_t, int64_t, int64_t, int64_t, uint32_t>;
  using Listing = std::map<std::string, Fingerprint>;  // by file name

  bool List(Listing* listing, std::string* problem) const;

  std::string folder_;
  std::optional<Listing> listing_;
  std::map<std::string, std::string> names_;  // by key
};

// Throws UserError with all that is wrong with `folder`: it is absent, not a folder, writable by everybody, without any
// public key, or holds files that are no good ones.
void CheckAuthorizedKeys(const std::string& folder);

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_SECURITY_AUTHORIZED_KEYS_H_
