#include "distributed/journal/journal_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>

#include "crema/error.h"
#include "errors.h"
#include "files.h"
#include "solver/writable_folder.h"

namespace crema {
namespace {

JournalRecord Commit(uint64_t version) {
  JournalRecord record;
  record.mutable_commit()->set_version(version);
  record.mutable_commit()->set_digest(version * 0x9E3779B97F4A7C15u);
  return record;
}

// As on a disk that is full beyond it.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

class JournalFiles : public testing::Test {
 protected:
  void WriteCommits(uint64_t first, uint64_t last) {
    JournalFile journal(path_);
    for (uint64_t v = first; v <= last; ++v) journal.Write(Commit(v));
  }
  std::vector<uint64_t> Versions() {
    std::vector<uint64_t> versions;
    JournalFile(path_, [&](const JournalRecord& record) { versions.push_back(record.commit().version()); });
    return versions;
  }

  WritableFolder folder_;
  const std::string path_ = folder_ / "run_cluster.journal";
};

TEST_F(JournalFiles, KeepsRecordsFromOneRunToTheNext) {
  WriteCommits(1, 3);
  WriteCommits(4, 5);
  EXPECT_EQ(Versions(), (std::vector<uint64_t>{1, 2, 3, 4, 5}));
  JournalFile(path_).Empty();
  EXPECT_TRUE(Versions().empty());
}

TEST_F(JournalFiles, ForgetsWhatSnapshotsHave) {
  JournalRecord start;
  start.mutable_start()->set_epoch(3);
  {
    JournalFile journal(path_);
    journal.Write(start);
    for (uint64_t v = 1; v <= 5; ++v) journal.Write(Commit(v));
    // Went back to 3.
    start.mutable_start()->set_epoch(4);
    start.mutable_start()->set_version(3);
    journal.Write(start);
    journal.Write(Commit(4));
    const auto before = std::filesystem::file_size(path_);
    journal.Shorten(9);  // which it does not know
    EXPECT_EQ(std::filesystem::file_size(path_), before);
    journal.Shorten(2);
    EXPECT_LT(std::filesystem::file_size(path_), before);
    journal.Write(Commit(5));
    EXPECT_NE(ThrownBy<EnvironmentError>([&] { JournalFile second(path_); }).find("another coordinator"),
              std::string::npos);
  }
  std::vector<std::pair<uint64_t, uint64_t>> starts;  // epoch, version
  std::vector<uint64_t> commits;
  JournalFile(path_, [&](const JournalRecord& record) {
    if (record.has_start()) starts.emplace_back(record.start().epoch(), record.start().version());
    if (record.has_commit()) commits.push_back(record.commit().version());
  });
  EXPECT_EQ(starts, (std::vector<std::pair<uint64_t, uint64_t>>{{4, 2}}));
  EXPECT_EQ(commits, (std::vector<uint64_t>{3, 4, 5}));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1);
}

TEST_F(JournalFiles, IsAsLongAsBeforeWhereItCannotBeWrittenAnew) {
  WriteCommits(1, 3);
  JournalFile journal(path_);
  {
    const FileSizeLimit limit(30);
    EXPECT_THROW(journal.Shorten(2), EnvironmentError);
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1);
  journal.Write(Commit(4));
  std::filesystem::copy_file(path_, folder_ / "copy");
  std::vector<uint64_t> versions;
  JournalFile(folder_ / "copy", [&](const JournalRecord& record) { versions.push_back(record.commit().version()); });
  EXPECT_EQ(versions, (std::vector<uint64_t>{1, 2, 3, 4}));
}

TEST_F(JournalFiles, CutsOffARecordThatWasNotWrittenWhole) {
  WriteCommits(1, 1);
  const auto one = std::filesystem::file_size(path_);
  WriteCommits(2, 2);
  const auto two = std::filesystem::file_size(path_);
  const std::string whole = ReadFile(path_);
  for (auto size = one; size < two; ++size) {
    folder_.Write("run_cluster.journal", whole.substr(0, size));
    EXPECT_EQ(Versions(), std::vector<uint64_t>{1}) << size;
    WriteCommits(7, 7);
    EXPECT_EQ(Versions(), (std::vector<uint64_t>{1, 7})) << size;
  }
  // The length was written, the rest not.
  folder_.Write("run_cluster.journal", whole.substr(0, two - 4) + std::string(4, '\0'));
  EXPECT_EQ(Versions(), std::vector<uint64_t>{1});
}

TEST_F(JournalFiles, RefusesDamageInTheMiddleAndOtherFiles) {
  WriteCommits(1, 3);
  std::string bytes = ReadFile(path_);
  bytes[40] ^= 1;
  folder_.Write("run_cluster.journal", bytes);
  EXPECT_NE(ThrownBy<UserError>([&] { Versions(); }).find("damaged at byte"), std::string::npos);
  // A length that reaches beyond the end, with whole records behind it.
  bytes[40] ^= 1;
  for (const int byte : {0, 1, 2, 3}) {
    std::string longer = bytes;
    longer[24 + byte] = static_cast<char>(longer[24 + byte] | 0x80);
    folder_.Write("run_cluster.journal", longer);
    EXPECT_NE(ThrownBy<UserError>([&] { Versions(); }).find("damaged at byte 24"), std::string::npos) << byte;
    EXPECT_EQ(ReadFile(path_), longer);
  }
  folder_.Write("run_cluster.journal", "net: \"lenet.prototxt\"\n");
  EXPECT_NE(ThrownBy<UserError>([&] { Versions(); }).find("is no journal"), std::string::npos);
}

TEST_F(JournalFiles, IsOpenOnce) {
  JournalFile journal(path_);
  EXPECT_NE(ThrownBy<EnvironmentError>([&] { JournalFile second(path_); }).find("another coordinator"),
            std::string::npos);
  journal.Write(Commit(1));
}

TEST_F(JournalFiles, IsAsBeforeWhereTheDiskIsFull) {
  {
    JournalFile journal(path_);
    journal.Write(Commit(1));
    {
      const FileSizeLimit limit(std::filesystem::file_size(path_) + 5);
      const std::string error = ThrownBy<EnvironmentError>([&] { journal.Write(Commit(2)); });
      EXPECT_NE(error.find(path_), std::string::npos) << error;
    }
    journal.Write(Commit(3));
  }
  EXPECT_EQ(Versions(), (std::vector<uint64_t>{1, 3}));
}

}  // namespace
}  // namespace crema
