// SHA-256 (FIPS 180-4), by which published files are recognised.
#ifndef CREMA_BASE_SHA256_H_
#define CREMA_BASE_SHA256_H_

#include <sodium.h>

#include <cstddef>
#include <string>

namespace crema {

// Of bytes that come in parts.
class Sha256 {
 public:
  Sha256() { crypto_hash_sha256_init(&state_); }

  void Add(const void* data, size_t bytes) {
    crypto_hash_sha256_update(&state_, static_cast<const unsigned char*>(data), bytes);
  }
  // 64 hexadecimal digits in lower case; ends the sum.
  std::string Finish();

 private:
  crypto_hash_sha256_state state_;
};

// Of a whole file; throws EnvironmentError where it cannot be read.
std::string Sha256OfFile(const std::string& path);

}  // namespace crema

#endif  // CREMA_BASE_SHA256_H_
