#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "base/atomic_file.h"
#include "base/byte_size.h"
#include "base/printable.h"
#include "base/random.h"
#include "base/suggest.h"
#include "base/write_all.h"
#include "crema/error.h"
#include "files.h"
#include "temporary_folder.h"

namespace crema {
namespace {

TEST(Printable, WhatOthersSayIsOneHarmlessLine) {
  EXPECT_EQ(OneLine("caf\u00e9\tfull"), "caf\u00e9\tfull");
  EXPECT_EQ(OneLine("\x1b[2Jgone\nI1124 forged\r"), "?[2Jgone | I1124 forged?");
  const std::string line = OneLine(std::string(1 << 20, 'x'));
  EXPECT_EQ(line, std::string(1000, 'x') + " ...");
}

TEST(Printable, WordsOfCommandsAreQuotedWhereAShellWouldTakeThemApart) {
  EXPECT_EQ(ShellWord("out/net-1_iter.caffemodel"), "out/net-1_iter.caffemodel");
  EXPECT_EQ(ShellWord(""), "''");
  EXPECT_EQ(ShellWord("my photos/it's $HOME"), "'my photos/it'\\''s $HOME'");
  EXPECT_EQ(ShellWord("~/caf\u00e9"), "'~/caf\u00e9'");
}

TEST(Suggest, NamesTheClosestCandidateOnly) {
  EXPECT_EQ(DidYouMean("kernal_size", {"pad", "kernel_size", "stride"}), "; did you mean \"kernel_size\"?");
  EXPECT_EQ(DidYouMean("RELU", {"ReLU", "PReLU"}), "; did you mean \"ReLU\"?");
  EXPECT_EQ(DidYouMean("zebra", {"pad", "kernel_size"}), "");
  EXPECT_EQ(EditDistance("ab", "ba"), 1);
}

TEST(Random, PhiloxMatchesItsPublishedVectors) {
  // Known answers of philox4x32-10 (Random123's kat_vectors).
  const auto zero = RandomStream(0, 0).Bits(0);
  EXPECT_EQ(zero, (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const auto ones = RandomStream(~0ull, ~0ull).Bits(~0ull);
  EXPECT_EQ(ones, (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Random, PermuteDrawsAllOrdersAlike) {
  constexpr int kDraws = 12000;
  for (const uint64_t n : {2, 3, 4, 5}) {
    std::map<std::vector<uint64_t>, int> counts;
    for (uint64_t seed = 0; seed < kDraws; ++seed) {
      std::vector<uint64_t> order(n);
      for (uint64_t i = 0; i < n; ++i) order[i] = Permute(seed, 5, i, n);
      ++counts[order];
    }
    const size_t orders = n == 2 ? 2 : n == 3 ? 6 : n == 4 ? 24 : 120;
    ASSERT_EQ(counts.size(), orders);
    const double each = static_cast<double>(kDraws) / static_cast<double>(orders);
    double chi_square = 0;
    for (const auto& [order, count] : counts) chi_square += (count - each) * (count - each) / each;
    // Above this once in 10,000 draws of a fair one.
    const double limit = n == 2 ? 15.1 : n == 3 ? 25.7 : n == 4 ? 59 : 187;
    EXPECT_LT(chi_square, limit) << n;
  }
}

TEST(Random, PermuteIsAPermutationForEverySize) {
  for (uint64_t n : {1, 2, 3, 16, 17, 100, 1000}) {
    std::set<uint64_t> seen;
    for (uint64_t i = 0; i < n; ++i) seen.insert(Permute(7, 3, i, n));
    EXPECT_EQ(seen.size(), n);
    EXPECT_LT(*seen.rbegin(), n);
  }
  int fixed = 0;
  for (uint64_t i = 0; i < 1000; ++i) fixed += Permute(7, 3, i, 1000) == i;
  EXPECT_LT(fixed, 20);
}

TEST(Random, GaussianHasTheRightMoments) {
  const RandomStream random(1, 2);
  double sum = 0, squares = 0;
  const int n = 100000;
  for (int i = 0; i < n; ++i) {
    const double x = random.Gaussian(i);
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / n, 0, 0.02);
  EXPECT_NEAR(squares / n, 1, 0.02);
}

class AtomicFileTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
};

TEST_F(AtomicFileTest, ReplacesOnlyOnCommit) {
  const std::string path = folder_ / "x";
  std::ofstream(path) << "old";
  {
    AtomicFile file(path);
    file.Write("new");
  }
  EXPECT_EQ(ReadFile(path), "old");
  {
    AtomicFile file(path);
    file.Write("new");
    EXPECT_EQ(file.crc32(), 0x6be34445u);
    file.Commit();
  }
  EXPECT_EQ(ReadFile(path), "new");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1);
}

// As two processes of one number do, in two containers.
TEST_F(AtomicFileTest, TwoWritersOfOneFileDoNotMeet) {
  const std::string path = folder_ / "x";
  {
    AtomicFile one(path), two(path), three(path);
    for (const AtomicFile* file : {&one, &two, &three}) EXPECT_TRUE(IsTemporaryName(file->temporary()));
    one.Write("one");
    two.Write("two");
    three.Write("thr");
    one.Commit();
    EXPECT_EQ(ReadFile(path), "one");
    two.Commit();
  }
  EXPECT_EQ(ReadFile(path), "two");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1);
}

TEST(TemporaryNames, EndInANumber) {
  EXPECT_NE(TemporaryNameOf("a/x"), TemporaryNameOf("a/x"));
  EXPECT_TRUE(TemporaryNameOf("a/x").starts_with("a/x.tmp."));
  EXPECT_TRUE(IsTemporaryName(TemporaryNameOf("a/x")));
  for (const char* name : {"", "x", "x.tmp", "x.tmp.", "x.tmp.old", "x.tmp.1.txt", "x.tmp.-1"}) {
    EXPECT_FALSE(IsTemporaryName(name)) << name;
  }
}

TEST_F(AtomicFileTest, NamesTheFileAndTheCause) {
  try {
    AtomicFile file(folder_ / "absent/x");
    FAIL();
  } catch (const EnvironmentError& error) {
    EXPECT_NE(std::string(error.what()).find("/absent/x"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("folder exist"), std::string::npos);
  }
}

TEST(Error, DiagnosticsReadLikeACompilers) {
  Diagnostics diagnostics;
  diagnostics.Warning({"a.prototxt", 3, 1}, "w");
  EXPECT_NO_THROW(diagnostics.ThrowIfErrors());
  diagnostics.Error({"a.prototxt", 4, 2}, "e");
  try {
    diagnostics.ThrowIfErrors();
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "a.prototxt:3:1: warning: w\na.prototxt:4:2: error: e");
  }
}

TEST(Error, NamesDoNotMoveTheCursor) {
  const Diagnostic odd{Diagnostic::Severity::kError, {"a\x1b[2J.prototxt"}, "\xc2\x9b[2J b\x7f \xc3\xa9\n\tnext"};
  EXPECT_EQ(odd.ToString(), "a?[2J.prototxt: error: ?[2J b? \xc3\xa9\n\tnext");
}

TEST_F(AtomicFileTest, ReplacesOnlyFiles) {
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_THROW(AtomicFile(folder_ / "pipe"), EnvironmentError);
  EXPECT_THROW(AtomicFile(folder_.path()), EnvironmentError);
  EXPECT_THROW(AtomicFile("/dev/null"), EnvironmentError);
  std::filesystem::create_symlink("/dev/null", folder_ / "link");
  EXPECT_THROW(AtomicFile(folder_ / "link"), EnvironmentError);
}

TEST_F(AtomicFileTest, WritesWholeToAPlace) {
  const std::string path = folder_ / "x";
  WriteWholeFile(path, "abcdef");
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC), full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  EXPECT_TRUE(WriteAll(fd, "12", 2, 3));
  EXPECT_TRUE(WriteAll(fd, "A", 1));
  EXPECT_EQ(ReadFile(path), "Abc12f");
  for (const bool placed : {false, true}) {
    errno = 0;
    EXPECT_FALSE(placed ? WriteAll(full, "1", 1, 4) : WriteAll(full, "1", 1));
    EXPECT_EQ(errno, ENOSPC) << placed;
  }
  close(fd);
  close(full);
}

TEST(ByteSize, IsReadAsPeopleWriteIt) {
  EXPECT_EQ(ParseBytes("4096"), 4096u);
  EXPECT_EQ(ParseBytes("600MB"), 600000000u);
  EXPECT_EQ(ParseBytes("1.5 GiB"), 3u << 29);
  EXPECT_EQ(ParseBytes("2kib"), 2048u);
  EXPECT_EQ(ParseBytes("7 b"), 7u);
  for (const char* wrong : {"", "MB", "-1MB", "1XB", "1 MBit", "1e30GB", "nan", "5 5", "99999999999999999999"}) {
    EXPECT_EQ(ParseBytes(wrong), std::nullopt) << wrong;
  }
}

}  // namespace
}  // namespace crema
