#include "base/sha256.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "crema/error.h"

namespace crema {

std::string Sha256::Finish() {
  unsigned char digest[crypto_hash_sha256_BYTES];
  char text[2 * sizeof(digest) + 1];
  crypto_hash_sha256_final(&state_, digest);
  return sodium_bin2hex(text, sizeof(text), digest, sizeof(digest));
}

std::string Sha256OfFile(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) throw EnvironmentError("cannot open \"" + path + "\": " + std::strerror(errno));
  Sha256 sum;
  std::vector<char> buffer(size_t{1} << 16);
  while (const size_t read = std::fread(buffer.data(), 1, buffer.size(), file.get())) sum.Add(buffer.data(), read);
  if (std::ferror(file.get())) throw EnvironmentError("cannot read \"" + path + "\": " + std::strerror(errno));
  return sum.Finish();
}

}  // namespace crema
