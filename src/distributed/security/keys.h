// The keys by which machines that train together know each other: CurveZMQ (RFC 26/CURVEZMQ), that is Curve25519,
// written as Z85 (RFC 32/Z85), 40 characters.
//
// A pair is two text files, NAME.secret and NAME.public, with lines `secret = "..."` and `public = "..."`; lines that
// begin with '#' are comments. No message of crema ever contains a secret.
#ifndef CREMA_DISTRIBUTED_SECURITY_KEYS_H_
#define CREMA_DISTRIBUTED_SECURITY_KEYS_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace crema {

constexpr size_t kKeyCharacters = 40;

// A secret key; its memory is wiped when it goes.
class SecretKey {
 public:
  // All spaces, which no socket takes.
  SecretKey();
  // Z85 text of kKeyCharacters.
  explicit SecretKey(std::string_view text);
  SecretKey(const SecretKey&) = default;
  SecretKey& operator=(const SecretKey&) = default;
  ~SecretKey();

  // With a zero at the end.
  const char* text() const { return text_; }

 private:
  char text_[kKeyCharacters + 1];
};

struct KeyPair {
  std::string public_key;
  SecretKey secret_key;
};

// Whether `text` is Z85 of 32 bytes.
bool IsKey(std::string_view text);

// A new pair. Throws EnvironmentError where this libzmq has no CURVE.
KeyPair MakeKeyPair();

// The public key that belongs to a valid secret one. Throws EnvironmentError where this libzmq has no CURVE.
std::string PublicKeyOf(const SecretKey& secret_key);

struct KeyFiles {
  std::string secret_path, public_path;
};

// NAME.secret and NAME.public.
KeyFiles KeyFilesOf(const std::string& name);

// Writes both, or neither, the secret one for the eyes of its owner only. Throws UserError where one of them exists:
// keys are never overwritten; EnvironmentError where they cannot be written.
KeyFiles WriteKeyPair(const KeyPair& pair, const std::string& name);

// The pair of a .secret file. Throws UserError (file and line, remedy) where there is no such file, where it is not
// such a file, where group or others may read it, and for the test keys that the manual page zmq_curve(7) shows to all;
// EnvironmentError where it cannot be read.
KeyPair ReadKeyPair(const std::string& path);

// The key of a .public file, under the same conditions; everybody may read it, but not others write it.
std::string ReadPublicKey(const std::string& path);

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_SECURITY_KEYS_H_
