#include "distributed/security/keys.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/atomic_file.h"
#include "base/check.h"
#include "base/input_file.h"
#include "base/trimmed.h"
#include "base/utf8.h"
#include "crema/error.h"
#include "distributed/sockets/library.h"

namespace crema {

namespace {

constexpr size_t kMaxFileBytes = 4096;
constexpr char kRemedy[] = "; `crema keygen --output=NAME` makes files like that";
// Of a public key, which comes from another machine.
constexpr char kCopyRemedy[] = "; copy the .public file that `crema keygen` made on the machine of its owner";

// zmq_curve(7), "TEST KEY VALUES".
constexpr std::string_view kTestKeys[] = {
    "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID", "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs",
    "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7", "JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6"};

constexpr std::string_view kDigits =
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

// Bytes that are wiped when they go.
template <size_t kBytes>
struct Wiped {
  ~Wiped() { explicit_bzero(data, sizeof(data)); }
  char data[kBytes];
};

class OpenFile {
 public:
  OpenFile(const std::string& path, const std::string& remedy) {
    // A pipe would block until somebody writes into it.
    fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd_ >= 0) return;
    const int error = errno;
    if (error != ENOENT && error != ENOTDIR) FailToRead(path, error);
    std::error_code ignored;
    if (std::filesystem::is_symlink(path, ignored)) {
      throw UserError(Location{path}, "is a link to a file that is not there; remove it, or put the key file there");
    }
    throw UserError(Location{path}, "there is no such file" + RelativePathNote(path) + remedy);
  }
  ~OpenFile() { close(fd_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int fd() const { return fd_; }

 private:
  int fd_;
};

struct Keys {
  std::optional<SecretKey> secret_key;
  std::optional<std::string> public_key;
  int secret_line = 0, public_line = 0;
};

// The text between quotes of `name = "text"`; a malformed line is reported without it, for it may be a secret.
std::string_view ValueOf(std::string_view line, std::string_view name, const Location& where,
                         const std::string& remedy) {
  std::string_view rest = Trimmed(line.substr(name.size()));
  if (!rest.starts_with("=")) {
    throw UserError(where, "expected " + std::string(name) + " = \"KEY\"" + remedy);
  }
  rest = Trimmed(rest.substr(1));
  if (rest.size() < 2 || rest.front() != '"' || rest.back() != '"') {
    throw UserError(where, "the key must stand between quotes: " + std::string(name) + " = \"KEY\"");
  }
  rest = rest.substr(1, rest.size() - 2);
  if (!IsKey(rest)) {
    throw UserError(where, "not a key: expected 40 characters of Z85, got " + std::to_string(rest.size()) +
                               (rest.size() == kKeyCharacters ? " of which some are none of Z85's" : "") + remedy);
  }
  if (std::find(std::begin(kTestKeys), std::end(kTestKeys), rest) != std::end(kTestKeys)) {
    throw UserError(where, "this is a test key of the manual page zmq_curve(7), whose secret everybody knows" +
                               std::string(kRemedy));
  }
  return rest;
}

Keys Parse(std::string_view text, const std::string& path, const std::string& remedy) {
  Keys keys;
  // The text itself may be a secret, which is copied nowhere.
  std::string start(text.substr(0, 3));
  const size_t marked = start.size();
  DropByteOrderMark(path, &start);
  text.remove_prefix(marked - start.size());
  int number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = Trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const Location where{path, ++number, 0};
    if (line.empty() || line.starts_with("#")) continue;
    if (line.starts_with("secret")) {
      if (keys.secret_key) throw UserError(where, "a second secret key; a file holds one: remove one of them");
      keys.secret_key.emplace(ValueOf(line, "secret", where, remedy));
      keys.secret_line = number;
    } else if (line.starts_with("public")) {
      if (keys.public_key) throw UserError(where, "a second public key; a file holds one: remove one of them");
      keys.public_key.emplace(ValueOf(line, "public", where, remedy));
      keys.public_line = number;
    } else {
      throw UserError(where, "expected secret = \"KEY\", public = \"KEY\" or a comment that begins with #" + remedy);
    }
  }
  return keys;
}

// Also who else than its owner may do what with the file, as permissions.
Keys Read(const std::string& path, const std::string& remedy, mode_t* others) {
  if (path.empty()) throw UserError("the path of a key file is empty");
  const OpenFile file(path, remedy);
  struct stat status;
  if (fstat(file.fd(), &status) != 0) FailToRead(path, errno);
  if (!S_ISREG(status.st_mode)) {
    throw UserError(Location{path}, S_ISDIR(status.st_mode) ? "is a directory; give a key file"
                                                            : "is not a regular file; give a key file");
  }
  *others = status.st_mode & (S_IRWXG | S_IRWXO);
  Wiped<kMaxFileBytes + 1> text;
  size_t bytes = 0;
  while (bytes < sizeof(text.data)) {
    const ssize_t got = read(file.fd(), text.data + bytes, sizeof(text.data) - bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) FailToRead(path, errno);
    if (got == 0) break;
    bytes += static_cast<size_t>(got);
  }
  if (bytes > kMaxFileBytes) throw UserError(Location{path}, "is too long for a key file" + remedy);
  return Parse({text.data, bytes}, path, remedy);
}

}  // namespace

SecretKey::SecretKey() {
  std::fill_n(text_, kKeyCharacters, ' ');
  text_[kKeyCharacters] = '\0';
}

SecretKey::SecretKey(std::string_view text) {
  CREMA_CHECK(text.size() == kKeyCharacters) << "a key of " << text.size() << " characters";
  std::copy(text.begin(), text.end(), text_);
  text_[kKeyCharacters] = '\0';
}

SecretKey::~SecretKey() { explicit_bzero(text_, sizeof(text_)); }

bool IsKey(std::string_view text) {
  if (text.size() != kKeyCharacters) return false;
  for (size_t begin = 0; begin < text.size(); begin += 5) {
    uint64_t value = 0;
    for (const char c : text.substr(begin, 5)) {
      const size_t digit = kDigits.find(c);
      if (digit == std::string_view::npos) return false;
      value = value * kDigits.size() + digit;
    }
    if (value > UINT32_MAX) return false;
  }
  return true;
}

KeyPair MakeKeyPair() {
  CheckLibrary();
  Wiped<kKeyCharacters + 1> secret_key;
  char public_key[kKeyCharacters + 1];
  if (zmq_curve_keypair(public_key, secret_key.data) != 0) {
    throw EnvironmentError(std::string("libzmq cannot make keys: ") + zmq_strerror(zmq_errno()));
  }
  return {public_key, SecretKey({secret_key.data, kKeyCharacters})};
}

std::string PublicKeyOf(const SecretKey& secret_key) {
  CheckLibrary();
  char public_key[kKeyCharacters + 1];
  if (zmq_curve_public(public_key, secret_key.text()) != 0) {
    throw EnvironmentError(std::string("libzmq cannot derive a public key: ") + zmq_strerror(zmq_errno()));
  }
  return public_key;
}

KeyFiles KeyFilesOf(const std::string& name) { return {name + ".secret", name + ".public"}; }

KeyFiles WriteKeyPair(const KeyPair& pair, const std::string& name) {
  const KeyFiles files = KeyFilesOf(name);
  const std::string remedy = "; keys are never overwritten: choose another name, or remove it if nobody uses it";
  for (const std::string& path : {files.secret_path, files.public_path}) {
    struct stat status;
    if (lstat(path.c_str(), &status) == 0) throw UserError(Location{path}, "exists already" + remedy);
  }
  AtomicFile secret_file(files.secret_path, {.mode = 0600, .replace = false});
  secret_file.Write(
      "# A secret key of crema. Whoever has it can pass for its owner: let nobody else read it,\n"
      "# and make one for each machine instead of copying it.\n"
      "secret = \"");
  secret_file.Write({pair.secret_key.text(), kKeyCharacters});
  secret_file.Write("\"\npublic = \"" + pair.public_key + "\"\n");
  AtomicFile public_file(files.public_path, {.mode = 0644, .replace = false});
  public_file.Write("# A public key of crema. Everybody may know it.\npublic = \"" + pair.public_key + "\"\n");
  secret_file.Commit();
  try {
    public_file.Commit();
  } catch (...) {
    unlink(files.secret_path.c_str());
    throw;
  }
  return files;
}

KeyPair ReadKeyPair(const std::string& path) {
  mode_t others = 0;
  Keys keys = Read(path, kRemedy, &others);
  if (!keys.secret_key) {
    throw UserError(Location{path}, keys.public_key ? "holds a public key only; give the .secret file"
                                                    : "holds no key" + std::string(kRemedy));
  }
  if (others != 0) {
    throw UserError(Location{path}, "is a secret key, but not for its owner's eyes only; run: chmod 600 " + path);
  }
  KeyPair pair{PublicKeyOf(*keys.secret_key), *keys.secret_key};
  if (keys.public_key && *keys.public_key != pair.public_key) {
    throw UserError(Location{path, keys.public_line, 0}, "this public key does not belong to the secret key in line " +
                                                             std::to_string(keys.secret_line) +
                                                             ", one of which was changed" + kRemedy);
  }
  return pair;
}

std::string ReadPublicKey(const std::string& path) {
  mode_t others = 0;
  const Keys keys = Read(path, kCopyRemedy, &others);
  if (others & S_IWOTH) {
    throw UserError(Location{path}, "decides who may join, but everybody may write it; run: chmod o-w " + path);
  }
  if (keys.secret_key) {
    throw UserError(Location{path, keys.secret_line, 0},
                    "holds a secret key, which belongs on the machine of its owner only; give the .public file");
  }
  if (!keys.public_key) throw UserError(Location{path}, "holds no key" + std::string(kCopyRemedy));
  return *keys.public_key;
}

}  // namespace crema
