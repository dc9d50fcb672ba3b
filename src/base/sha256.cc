#include "base/sha256.h"

#include <string_view>

#include "base/input_file.h"

namespace crema {

std::string Sha256::Finish() {
  unsigned char digest[crypto_hash_sha256_BYTES];
  char text[2 * sizeof(digest) + 1];
  crypto_hash_sha256_final(&state_, digest);
  return sodium_bin2hex(text, sizeof(text), digest, sizeof(digest));
}

std::string Sha256OfFile(const std::string& path) {
  Sha256 sum;
  VisitFile(path, [&sum](std::string_view part) {
    sum.Add(part.data(), part.size());
    return true;
  });
  return sum.Finish();
}

}  // namespace crema
