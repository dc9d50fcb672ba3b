// Key files: what is written, with which permissions, and what is not read.
#include "distributed/security/keys.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <new>

#include "base/atomic_file.h"
#include "crema/error.h"
#include "distributed/key_folder.h"
#include "distributed/sockets/library.h"
#include "errors.h"

namespace crema::testing_distributed {
namespace {

constexpr char kTestPublic[] = "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID";
constexpr char kTestSecret[] = "JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6";

mode_t ModeOf(const std::string& path) {
  struct stat status;
  EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777;
}

class Keys : public testing::Test {
 protected:
  // Permissions must not depend on the one who runs this.
  void SetUp() override { before_ = umask(0); }
  void TearDown() override { umask(before_); }

  // What the UserError says that `body` throws; it must name `path`.
  std::string ErrorOf(const std::string& path, const std::function<void()>& body) {
    std::string error = ThrownBy<UserError>(body);
    EXPECT_NE(error.find(path), std::string::npos) << path << " in: " << error;
    return error;
  }
  std::string SecretError(const std::string& path) {
    return ErrorOf(path, [&] { ReadKeyPair(path); });
  }
  std::string PublicError(const std::string& path) {
    return ErrorOf(path, [&] { ReadPublicKey(path); });
  }
  static bool Has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

  KeyFolder folder_;
  mode_t before_ = 0;
};

TEST_F(Keys, AreReadAsTheyWereWritten) {
  const KeyPair pair = MakeKeyPair();
  EXPECT_TRUE(IsKey(pair.public_key));
  EXPECT_TRUE(IsKey(pair.secret_key.text()));
  EXPECT_EQ(PublicKeyOf(pair.secret_key), pair.public_key);
  const KeyFiles files = WriteKeyPair(pair, folder_ / "a");
  EXPECT_EQ(files.secret_path, folder_ / "a.secret");
  EXPECT_EQ(files.public_path, folder_ / "a.public");
  const KeyPair read = ReadKeyPair(files.secret_path);
  EXPECT_EQ(read.public_key, pair.public_key);
  EXPECT_STREQ(read.secret_key.text(), pair.secret_key.text());
  EXPECT_EQ(ReadPublicKey(files.public_path), pair.public_key);
  EXPECT_FALSE(Has(folder_.Read("a.public"), pair.secret_key.text()));
  EXPECT_NE(MakeKeyPair().public_key, pair.public_key);
}

TEST_F(Keys, SecretsAreForTheirOwnerOnly) {
  folder_.Make("a");
  EXPECT_EQ(ModeOf(folder_ / "a.secret"), 0600u);
  EXPECT_EQ(ModeOf(folder_ / "a.public"), 0644u);
}

TEST_F(Keys, SecretsAreNeverReadableNotEvenWhileTheyAreWritten) {
  AtomicFile file(folder_ / "x", {.mode = 0600});
  EXPECT_EQ(ModeOf(file.temporary()), 0600u);
  file.Write("new");
  EXPECT_EQ(ModeOf(file.temporary()), 0600u);
  file.Commit();
  EXPECT_EQ(ModeOf(folder_ / "x"), 0600u);
  EXPECT_EQ(folder_.Read("x"), "new");
}

TEST_F(Keys, AreNeverOverwritten) {
  folder_.Make("a");
  const std::string secret_text = folder_.Read("a.secret"), public_text = folder_.Read("a.public");
  EXPECT_TRUE(Has(ErrorOf("a.secret", [&] { folder_.Make("a"); }), "another name"));
  std::filesystem::remove(folder_ / "a.secret");
  ErrorOf("a.public", [&] { folder_.Make("a"); });
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a.secret"));
  EXPECT_EQ(folder_.Read("a.public"), public_text);

  // Where the file comes into being in the meantime.
  AtomicFile file(folder_ / "b", {.mode = 0600, .replace = false});
  file.Write("new");
  folder_.Write("b", "of another");
  ErrorOf("b", [&] { file.Commit(); });
  EXPECT_EQ(folder_.Read("b"), "of another");
  EXPECT_FALSE(std::filesystem::exists(file.temporary()));
}

TEST_F(Keys, WithoutAFolderNothingIsLeft) {
  EXPECT_THROW(WriteKeyPair(MakeKeyPair(), folder_ / "absent/a"), EnvironmentError);
}

TEST_F(Keys, SecretsThatOthersCanReadAreRefused) {
  folder_.Make("a");
  const std::string path = folder_ / "a.secret";
  for (const mode_t mode : {0640, 0604, 0644, 0660, 0622, 0677}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    EXPECT_TRUE(Has(SecretError(path), "chmod 600 " + path)) << std::oct << mode;
  }
  for (const mode_t mode : {0600, 0400, 0700}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    EXPECT_NO_THROW(ReadKeyPair(path)) << std::oct << mode;
  }
}

TEST_F(Keys, PublicKeysThatAllCanChangeAreRefused) {
  folder_.Make("a");
  const std::string path = folder_ / "a.public";
  ASSERT_EQ(chmod(path.c_str(), 0666), 0);
  EXPECT_TRUE(Has(PublicError(path), "chmod o-w " + path));
}

TEST_F(Keys, KnownTestKeysAreRefused) {
  EXPECT_TRUE(IsKey(kTestPublic));
  EXPECT_TRUE(IsKey(kTestSecret));
  const std::string error = SecretError(folder_.Write("t.secret", std::string("secret = \"") + kTestSecret + "\"\n"));
  EXPECT_TRUE(Has(error, "zmq_curve(7)") && Has(error, "crema keygen")) << error;
  EXPECT_TRUE(
      Has(PublicError(folder_.Write("t.public", std::string("public = \"") + kTestPublic + "\"\n")), "zmq_curve(7)"));
}

TEST_F(Keys, CommentsAndSpacesMayStandAnywhere) {
  const KeyPair pair = MakeKeyPair();
  const std::string path =
      folder_.Write("a.secret", "# one\r\n\r\n  secret=\"" + std::string(pair.secret_key.text()) + "\"  \r\n\t# two");
  EXPECT_EQ(ReadKeyPair(path).public_key, pair.public_key);
}

TEST_F(Keys, MalformedFilesAreErrorsWithTheirLine) {
  const KeyPair pair = MakeKeyPair(), other = MakeKeyPair();
  const std::string key = pair.secret_key.text();
  const auto error = [&](const std::string& text) { return SecretError(folder_.Write("bad.secret", text)); };
  EXPECT_TRUE(Has(error(""), "holds no key"));
  EXPECT_TRUE(Has(error("# only\n"), "holds no key"));
  EXPECT_TRUE(Has(error("#\nsecret = \"abc\"\n"), "bad.secret:2: error: not a key: expected 40 characters"));
  EXPECT_TRUE(Has(error("secret = \"" + key.substr(1) + "\"\n"), "got 39"));
  EXPECT_TRUE(Has(error("secret = \"" + key.substr(1) + "~\"\n"), "none of Z85's"));
  EXPECT_TRUE(Has(error("secret = " + key + "\n"), "between quotes"));
  EXPECT_TRUE(Has(error("secret = \"" + key + "\n"), "between quotes"));
  EXPECT_TRUE(Has(error("secret: \"" + key + "\"\n"), "expected secret = \"KEY\""));
  EXPECT_TRUE(Has(error(key + "\n"), "expected secret = "));
  EXPECT_TRUE(Has(error("secret = \"" + key + "\"\nsecret = \"" + key + "\"\n"), ":2: error: a second secret key"));
  EXPECT_TRUE(Has(error("secret = \"" + key + "\"\npublic = \"" + other.public_key + "\"\n"), "does not belong"));
  EXPECT_TRUE(Has(error(std::string(5000, '#')), "too long"));
  EXPECT_TRUE(Has(error(std::string("\0\0\0", 3)), "expected secret"));
  EXPECT_TRUE(Has(SecretError(folder_ / "absent.secret"), "no such file"));
  EXPECT_TRUE(Has(SecretError(folder_.authorized()), "is a directory"));
  EXPECT_THROW(ReadKeyPair(""), UserError);
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_TRUE(Has(SecretError(folder_ / "pipe"), "not a regular file"));
}

// A public key is nothing to make where it is missing.
TEST_F(Keys, PublicOnesAreToBeCopied) {
  const auto error = [&](const std::string& text) { return PublicError(folder_.Write("bad.public", text)); };
  for (const std::string text : {"", "public = \"abc\"", "key", "public: abc"}) {
    EXPECT_TRUE(Has(error(text), "copy the .public file")) << error(text);
    EXPECT_FALSE(Has(error(text), "makes files like that")) << error(text);
  }
  EXPECT_TRUE(Has(PublicError(folder_ / "absent.public"), "copy the .public file"));
  std::filesystem::create_symlink("nowhere", folder_ / "link.public");
  EXPECT_TRUE(Has(PublicError(folder_ / "link.public"), "is a link to a file that is not there"));
}

TEST_F(Keys, MayBeginWithAByteOrderMark) {
  const KeyPair pair = folder_.Make("a");
  EXPECT_EQ(ReadPublicKey(folder_.Write("marked.public", "\xEF\xBB\xBF" + folder_.Read("a.public"))), pair.public_key);
  EXPECT_TRUE(Has(PublicError(folder_.Write("wide.public", "\xFF\xFEp")), "UTF-16"));
}

TEST_F(Keys, OneIsNotTakenForTheOther) {
  folder_.Make("a");
  EXPECT_TRUE(Has(PublicError(folder_ / "a.secret"), "give the .public file"));
  ASSERT_EQ(chmod((folder_ / "a.public").c_str(), 0600), 0);
  EXPECT_TRUE(Has(SecretError(folder_ / "a.public"), "give the .secret file"));
}

TEST_F(Keys, ErrorsTellNoSecret) {
  const KeyPair pair = MakeKeyPair(), other = MakeKeyPair();
  const std::string key = pair.secret_key.text();
  for (const std::string& text :
       {"secret = \"" + key + "x\"", "secret = " + key, key, "secret" + key, "scret = \"" + key + "\"",
        "secret = \"" + key + "\"\npublic = \"" + other.public_key + "\"", "public = \"" + key + "~\"",
        "secret = \"" + key + "\"\nsecret = \"" + key + "\"", "secret = \"" + key + "\"" + std::string(5000, ' ')}) {
    const std::string path = folder_.Write("bad.secret", text);
    for (const std::string& error : {SecretError(path), PublicError(path)}) {
      for (size_t at = 0; at + 8 <= key.size(); ++at) EXPECT_FALSE(Has(error, key.substr(at, 8))) << error;
    }
  }
}

TEST_F(Keys, MemoryIsWiped) {
  const KeyPair pair = MakeKeyPair();
  alignas(SecretKey) char memory[sizeof(SecretKey)];
  SecretKey* key = new (memory) SecretKey(pair.secret_key);
  ASSERT_STREQ(key->text(), pair.secret_key.text());
  key->~SecretKey();
  EXPECT_TRUE(std::all_of(std::begin(memory), std::end(memory), [](char c) { return c == 0; }));
}

TEST(IsKey, KnowsZ85) {
  // RFC 32's example, "HelloWorld", stands for eight bytes.
  EXPECT_TRUE(IsKey("HelloWorldHelloWorldHelloWorldHelloWorld"));
  EXPECT_FALSE(IsKey("HelloWorldHelloWorldHelloWorldHelloWorl"));
  EXPECT_FALSE(IsKey("HelloWorldHelloWorldHelloWorldHelloWorld "));
  EXPECT_FALSE(IsKey("HelloWorldHelloWorldHelloWorldHelloWor\"d"));
  // "%nSc0" is 2^32 - 1, the largest of five digits that four bytes can hold.
  EXPECT_TRUE(IsKey("%nSc0%nSc0%nSc0%nSc0%nSc0%nSc0%nSc0%nSc0"));
  EXPECT_FALSE(IsKey("%nSc0%nSc0%nSc0%nSc0%nSc0%nSc0%nSc0%nSc1"));
}

TEST(Library, OldOnesAndThoseWithoutCurveAreRefused) {
  EXPECT_NO_THROW(CheckLibrary());
  EXPECT_NO_THROW(CheckLibrary({4, 3, 3, true}));
  EXPECT_NO_THROW(CheckLibrary({5, 0, 0, true}));
  const auto error = [](const LibraryFacts& facts) -> std::string {
    return ThrownBy<EnvironmentError>([&] { CheckLibrary(facts); });
  };
  EXPECT_NE(error({4, 3, 2, true}).find("install libzmq 4.3.3 or later"), std::string::npos);
  EXPECT_NE(error({3, 9, 9, true}).find("libzmq 3.9.9"), std::string::npos);
  EXPECT_NE(error({4, 3, 4, false}).find("CURVE"), std::string::npos);
}

}  // namespace
}  // namespace crema::testing_distributed
