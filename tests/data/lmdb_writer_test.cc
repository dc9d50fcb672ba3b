#include "data/databases/lmdb_writer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>

#include "base/atomic_file.h"
#include "data/data_testing.h"
#include "data/databases/record_source.h"
#include "data/lmdb_testing.h"

namespace crema {
namespace {

using testing::ExpectThrows;
using testing::KeyOf;
using testing::Text;
using testing::ValueOf;

TEST(LmdbWriter, KeysLieInTheOrderOfTheirNumbers) {
  EXPECT_EQ(RecordKey(42, KeyDigits(1)), "00000042");
  EXPECT_EQ(KeyDigits(100'000'000), 8);
  EXPECT_EQ(KeyDigits(100'000'001), 9);
  EXPECT_EQ(KeyDigits(10'000'000'000), 10);
  EXPECT_EQ(KeyDigits(100'000, 5), 5);
  EXPECT_EQ(KeyDigits(100'001, 5), 6);
  // Of enwik9 in 8 streams, say.
  const int digits = KeyDigits(125'000'000);
  EXPECT_LT(RecordKey(10'000'001, digits), RecordKey(100'000'000, digits));
  EXPECT_EQ(RecordKey(124'999'999, digits), "124999999");
}

TEST(LmdbWriter, RefusesWhatExistsUnlessToldToReplaceIt) {
  TemporaryFolder folder;
  testing::WriteRecords(folder / "db", {"old", "older"});
  ExpectThrows<UserError>([&] { testing::WriteRecords(folder / "db", {"new"}); }, {"exists already", "--force"});
  EXPECT_EQ(OpenRecordSource(folder / "db")->count(), 2u);
  {
    LmdbWriter writer(folder / "db/", LmdbWriter::Existing::kReplace);
    writer.Put("k", "new");
    EXPECT_EQ(OpenRecordSource(folder / "db")->count(), 2u);  // until it is complete
    writer.Commit();
  }
  EXPECT_EQ(Text(OpenRecordSource(folder / "db")->Read(0)), "new");
  EXPECT_EQ(testing::Listing(folder.path()), "db");
}

TEST(LmdbWriter, NeverRemovesWhatIsNoDatabase) {
  TemporaryFolder folder;
  testing::WriteRecords(folder / "db", {"old"});
  testing::WriteFile(folder / "db/notes.txt", "precious");
  const auto replace = [&](const std::string& name) {
    return [path = folder / name] { LmdbWriter writer(path, LmdbWriter::Existing::kReplace); };
  };
  ExpectThrows<UserError>(replace("db"), {"not just an LMDB"});
  testing::WriteFile(folder / "file", "precious");
  ExpectThrows<UserError>(replace("file"), {"not just an LMDB"});
  EXPECT_EQ(testing::Listing(folder.path()), "db file");
  EXPECT_EQ(testing::Listing(folder / "db"), "data.mdb notes.txt");
}

TEST(LmdbWriter, ReplacesWhatALinkLeadsTo) {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder / "disk");
  testing::WriteRecords(folder / "disk/db", {"old"});
  std::filesystem::create_symlink("disk/db", folder / "link");
  for (const char* name : {"link", "link/"}) {
    LmdbWriter writer(folder / name, LmdbWriter::Existing::kReplace);
    writer.Put("k", name);
    writer.Commit();
    EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
    EXPECT_EQ(Text(OpenRecordSource(folder / "disk/db")->Read(0)), name);
    EXPECT_EQ(testing::Listing(folder.path()), "disk link");
    EXPECT_EQ(testing::Listing(folder / "disk"), "db");
  }
}

TEST(LmdbWriter, NeverRemovesWhatWasPutThereMeanwhile) {
  TemporaryFolder folder;
  testing::WriteRecords(folder / "db", {"old"});
  {
    LmdbWriter writer(folder / "db", LmdbWriter::Existing::kReplace);
    writer.Put("k", "new");
    testing::WriteFile(folder / "db/notes.txt", "precious");
    ExpectThrows<UserError>([&] { writer.Commit(); }, {"not just an LMDB"});
  }
  EXPECT_EQ(testing::Listing(folder.path()), "db");
  EXPECT_EQ(testing::ReadFile(folder / "db/notes.txt"), "precious");
  EXPECT_EQ(Text(OpenRecordSource(folder / "db")->Read(0)), "old");
}

TEST(LmdbWriter, WithoutCommitNothingRemains) {
  TemporaryFolder folder;
  {
    LmdbWriter writer(folder / "db", LmdbWriter::Existing::kRefuse);
    writer.Put("k", "v");
  }
  EXPECT_EQ(testing::Listing(folder.path()), "");
}

TEST(LmdbWriter, AKilledConversionLeavesNothingUnderTheName) {
  TemporaryFolder folder;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    LmdbWriter writer(folder / "db", LmdbWriter::Existing::kRefuse);
    for (int i = 0;; ++i) {
      writer.Put(KeyOf(i), ValueOf(i));
      if (i == 15000 && write(ready[1], "x", 1) != 1) _exit(1);
    }
  }
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  kill(child, SIGKILL);
  int status;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  close(ready[0]);
  close(ready[1]);
  EXPECT_FALSE(RecordSourceExists(folder / "db"));
  const std::string left = testing::Listing(folder.path());
  EXPECT_TRUE(left.starts_with("db.tmp.") && IsTemporaryName(left)) << left;
  ::testing::internal::CaptureStderr();
  testing::WriteRecords(folder / "db", {"v"});  // works beside the leftover, and mentions it
  EXPECT_NE(::testing::internal::GetCapturedStderr().find(left), std::string::npos);
  EXPECT_EQ(OpenRecordSource(folder / "db")->count(), 1u);
}

// As two processes of one number do, in two containers.
TEST(LmdbWriter, TwoOfOneNameDoNotMeet) {
  TemporaryFolder folder;
  testing::WriteRecords(folder / "db", {"old"});
  LmdbWriter one(folder / "db", LmdbWriter::Existing::kReplace), two(folder / "db", LmdbWriter::Existing::kReplace);
  for (int i = 0; i < 3; ++i) one.Put(KeyOf(i), ValueOf(i));
  for (int i = 0; i < 5; ++i) two.Put(KeyOf(i), ValueOf(i));
  one.Commit();
  EXPECT_EQ(OpenRecordSource(folder / "db")->count(), 3u);
  two.Commit();
  EXPECT_EQ(OpenRecordSource(folder / "db")->count(), 5u);
  EXPECT_EQ(testing::Listing(folder.path()), "db");
}

TEST(LmdbWriter, AWriteThatFailsIsAnEnvironmentErrorAndLeavesNothing) {
  TemporaryFolder folder;
  chmod(folder.path().c_str(), 0777);
  const int status = testing::InUnprivilegedChild([&] {
    // Stands for a full disk: no file may pass 8 MiB.
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{8 << 20, 8 << 20};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 10;
    try {
      LmdbWriter writer(folder / "db", LmdbWriter::Existing::kRefuse);
      for (int i = 0; i < 30000; ++i) writer.Put(KeyOf(i), ValueOf(i));
      writer.Commit();
      return 1;
    } catch (const EnvironmentError&) {
      return 0;
    }
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(testing::Listing(folder.path()), "");
}

TEST(LmdbWriter, AFolderThatMayNotBeWrittenIsAnEnvironmentError) {
  TemporaryFolder folder;
  chmod(folder.path().c_str(), 0555);
  const int status = testing::InUnprivilegedChild([&] {
    try {
      LmdbWriter writer(folder / "db", LmdbWriter::Existing::kRefuse);
      return 1;
    } catch (const EnvironmentError& error) {
      return std::strstr(error.what(), "may write to") ? 0 : 2;
    }
  });
  EXPECT_EQ(status, 0);
  chmod(folder.path().c_str(), 0755);
  ExpectThrows<EnvironmentError>([&] { LmdbWriter(folder / "no/such/db", LmdbWriter::Existing::kRefuse); },
                                 {"does its folder exist"});
}

}  // namespace
}  // namespace crema
