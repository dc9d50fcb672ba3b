// Damaged LMDBs: every one is reported, none ends the process.
#include "data/databases/lmdb_pages.h"

#include <gtest/gtest.h>
#include <lmdb.h>

#include <cstring>
#include <functional>
#include <random>

#include "data/data_testing.h"
#include "data/databases/record_source.h"
#include "data/lmdb_testing.h"

namespace crema {
namespace {

using testing::ExpectThrows;
using testing::Text;

constexpr uint64_t kMain = 88, kFlags = 4, kDepth = 6, kEntries = 32, kRoot = 40;  // of the tree of a meta page
constexpr uint64_t kNumber = 0, kKind = 10, kLower = 12, kUpper = 14;              // of a page

// A data.mdb to look into and to write over.
class Pages {
 public:
  explicit Pages(const std::string& folder)
      : path_(folder + "/data.mdb"), whole_(testing::ReadFile(path_)), bytes_(whole_) {}

  template <typename T = uint64_t>
  T Get(uint64_t at) const {
    T value;
    std::memcpy(&value, bytes_.data() + at, sizeof value);
    return value;
  }
  template <typename T>
  void Set(uint64_t at, T value) {
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }
  void Write() const {
    std::fstream(path_, std::ios::binary | std::ios::in | std::ios::out).write(bytes_.data(), Size());
  }
  void Restore() { bytes_ = whole_; }
  std::streamsize Size() const { return static_cast<std::streamsize>(bytes_.size()); }

  uint64_t page_bytes() const { return Get<uint32_t>(40); }
  uint64_t At(uint64_t page) const { return page * page_bytes(); }
  uint64_t meta() const { return Get(144) < Get(At(1) + 144) ? 1 : 0; }
  uint64_t tree() const { return At(meta()) + kMain; }
  uint64_t root() const { return Get(tree() + kRoot); }
  uint64_t last() const { return Get(At(meta()) + 136); }
  unsigned Nodes(uint64_t page) const { return (Get<uint16_t>(At(page) + kLower) - 16u) / 2; }
  uint64_t Pointer(uint64_t page, unsigned i) const { return At(page) + 16 + 2 * i; }
  uint64_t Node(uint64_t page, unsigned i) const { return At(page) + Get<uint16_t>(Pointer(page, i)); }
  uint64_t Child(uint64_t page, unsigned i) const { return Get(Node(page, i)) & ((uint64_t{1} << 48) - 1); }
  void SetChild(uint64_t page, unsigned i, uint64_t child) {
    Set(Node(page, i), (Get(Node(page, i)) & (~uint64_t{0} << 48)) | child);
  }
  // Where a leaf's node has the first page of a long value.
  uint64_t Run(uint64_t page, unsigned i) const { return Node(page, i) + 8 + Get<uint16_t>(Node(page, i) + 6); }
  uint64_t Leaf(bool first) const {
    uint64_t page = root();
    for (int level = Get<uint16_t>(tree() + kDepth); level > 1; --level) {
      page = Child(page, first ? 0 : Nodes(page) - 1);
    }
    return page;
  }

 private:
  std::string path_, whole_, bytes_;
};

// Long keys make a tree of several levels with few records.
std::string KeyOf(int i) { return testing::KeyOf(i) + std::string(300, 'k'); }

void WriteTree(const std::string& path, int count, const std::function<std::string(int)>& value) {
  LmdbWriter writer(path, LmdbWriter::Existing::kRefuse);
  for (int i = 0; i < count; ++i) writer.Put(KeyOf(i), value(i));
  writer.Commit();
}

std::string Small(int i) { return std::string(static_cast<size_t>(20 + i % 50), static_cast<char>('a' + i % 26)); }
std::string Long(int i) { return std::string(static_cast<size_t>(5000 + i), static_cast<char>('a' + i % 26)); }

// Reads every byte and every key; returns the records.
uint64_t ReadAll(const std::string& folder) {
  const auto source = OpenRecordSource(folder);
  const uint64_t count = source->count();
  size_t bytes = 0;
  for (uint64_t i = 0; i < count; ++i) bytes += Text(source->Read(i)).size();
  EXPECT_LT(bytes, size_t{1} << 30);
  source->VisitKeys([](uint64_t, const std::string&) { return true; });
  EXPECT_FALSE(source->Key(count - 1).empty());
  return count;
}

using Damage = std::function<void(Pages&)>;

struct DamageCase {
  const char* name;
  Damage damage;
  std::vector<std::string> parts;  // of the message
};

void ExpectAllReported(const std::string& folder, const std::vector<DamageCase>& cases,
                       const std::function<void(const std::string&)>& read) {
  Pages pages(folder);
  for (const DamageCase& entry : cases) {
    SCOPED_TRACE(entry.name);
    pages.Restore();
    entry.damage(pages);
    pages.Write();
    std::vector<std::string> parts = entry.parts;
    parts.push_back("\"" + folder + "\"");
    ExpectThrows<UserError>([&] { read(folder); }, parts);
  }
  pages.Restore();
  pages.Write();
  EXPECT_GT(ReadAll(folder), 0u);
}

TEST(LmdbPages, DamageToTheMetaPagesIsReportedOnOpening) {
  TemporaryFolder folder;
  WriteTree(folder / "db", 200, Small);
  const auto tree = [](uint64_t field, auto value) {
    return [=](Pages& pages) { pages.Set(pages.tree() + field, value); };
  };
  const auto meta = [](uint64_t field, auto value) {
    return [=](Pages& pages) { pages.Set(pages.At(pages.meta()) + field, value); };
  };
  ExpectAllReported(
      folder / "db",
      {{"pages of no bytes", [](Pages& pages) { pages.Set(40, uint32_t{0}); }, {"damaged", "pages have 0 and"}},
       {"pages of 4097 bytes", [](Pages& pages) { pages.Set(40, uint32_t{4097}); }, {"4097"}},
       {"differing sizes of pages",
        [](Pages& pages) { pages.Set(pages.page_bytes() + 40, uint32_t{8192}); },
        {"damaged", "and 8192 bytes"}},
       {"transaction", meta(144, uint64_t{8}), {"damaged", "page 1", "transaction 8"}},
       {"map", meta(32, uint64_t{1} << 60), {"damaged", "page 1", "a map of"}},
       {"no last page", meta(136, uint64_t{0}), {"damaged", "page 1", "has 0 for the last page"}},
       {"last page -1", meta(136, ~uint64_t{0}), {"damaged", "page 1", "last page"}},
       {"last page 2^47", meta(136, uint64_t{1} << 47), {"cut short"}},
       {"several values of a key", tree(kFlags, uint16_t{4}), {"MDB_DUPSORT", "anew"}},
       {"no levels", tree(kDepth, uint16_t{0}), {"damaged", "page 1", "0 levels, expected 1 to 32"}},
       {"65535 levels", tree(kDepth, uint16_t{65535}), {"damaged", "page 1", "65535 levels"}},
       {"one level", tree(kDepth, uint16_t{1}), {"damaged", "is no leaf"}},
       {"no records", tree(kEntries, uint64_t{0}), {"damaged", "page 1", "promises 0 records"}},
       {"one record", tree(kEntries, uint64_t{1}), {"damaged", "page 1", "promises 1 records"}},
       {"-2 records", tree(kEntries, ~uint64_t{1}), {"damaged", "promises 18446744073709551614 records"}},
       {"2^60 records", tree(kEntries, uint64_t{1} << 60), {"damaged", "promises 1152921504606846976 records"}},
       {"the root is a meta page", tree(kRoot, uint64_t{1}), {"damaged", "page 1", "refers to page 1, expected 2 to"}},
       {"the root is nowhere", tree(kRoot, uint64_t{1} << 63), {"damaged", "page 1", "refers to page"}},
       {"no root", tree(kRoot, ~uint64_t{0}), {"damaged", "page 1", "refers to page"}},
       {"the root is a leaf",
        [](Pages& pages) { pages.Set(pages.tree() + kRoot, pages.Leaf(true)); },
        {"damaged", "is no branch"}}},
      [](const std::string& path) { OpenRecordSource(path); });
}

TEST(LmdbPages, ACountThatIsWrongIsReported) {
  TemporaryFolder folder;
  WriteTree(folder / "many", 200, Small);
  WriteTree(folder / "few", 3, Long);
  for (const uint64_t wrong : {100, 199, 201}) {
    ExpectAllReported(folder / "many",
                      {{"", [=](Pages& pages) { pages.Set(pages.tree() + kEntries, wrong); }, {"but there are 200"}}},
                      ReadAll);
  }
  for (const uint64_t wrong : {1, 2, 4}) {
    ExpectAllReported(folder / "few",
                      {{"", [=](Pages& pages) { pages.Set(pages.tree() + kEntries, wrong); }, {"but there are 3"}}},
                      [](const std::string& path) { OpenRecordSource(path); });
  }
}

// Damage to the page that `page` chooses, by what `set` does to it.
std::vector<DamageCase> PageCases(const std::function<uint64_t(const Pages&)>& page) {
  const auto field = [page](uint64_t at, auto value) {
    return [=](Pages& pages) { pages.Set(pages.At(page(pages)) + at, value); };
  };
  const auto node = [page](unsigned i, uint64_t at, auto value) {
    return [=](Pages& pages) { pages.Set(pages.Node(page(pages), i) + at, value); };
  };
  return {{"number", field(kNumber, uint64_t{77}), {"damaged", "has the number 77 in it"}},
          {"an overflow page", field(kKind, uint16_t{4}), {"damaged", "of the tree (flags 4)"}},
          {"a leaf of values of one size", field(kKind, uint16_t{0x22}), {"damaged", "(flags 34)"}},
          {"an odd end of the pointers", field(kLower, uint16_t{21}), {"damaged", "free space from 21"}},
          {"pointers end in the header", field(kLower, uint16_t{14}), {"damaged", "free space from 14"}},
          {"no pointers", field(kLower, uint16_t{16}), {"damaged", "has 0 nodes"}},
          {"nodes before the pointers", field(kUpper, uint16_t{16}), {"damaged", "to 16"}},
          {"nodes behind the page", field(kUpper, uint16_t{65535}), {"damaged", "to 65535"}},
          {"a pointer into the header", field(16 + 2, uint16_t{8}), {"damaged", "node 1 at 8"}},
          {"a pointer behind the page", field(16 + 2, uint16_t{65000}), {"damaged", "node 1 at 65000"}},
          {"a pointer to the page's end", field(16 + 2, uint16_t{4092}), {"damaged", "node 1 at 4092"}},
          {"a long key", node(1, 6, uint16_t{65535}), {"damaged", "node 1", "does not lie within the page"}}};
}

TEST(LmdbPages, DamageToLeavesAndBranchesIsReported) {
  TemporaryFolder folder;
  WriteTree(folder / "db", 500, Small);
  ASSERT_EQ(Pages(folder / "db").Get<uint16_t>(Pages(folder / "db").tree() + kDepth), 3);
  const auto last_leaf = [](const Pages& pages) { return pages.Leaf(false); };
  const auto branch = [](const Pages& pages) { return pages.Child(pages.root(), 1); };
  ExpectAllReported(folder / "db", PageCases(last_leaf), ReadAll);
  ExpectAllReported(folder / "db", PageCases(branch), ReadAll);
  ExpectAllReported(
      folder / "db",
      {{"a value longer than its page",
        [](Pages& pages) { pages.Set(pages.Node(pages.Leaf(false), 0), uint16_t{5000}); },
        {"damaged", "node 0", "does not lie"}},
       {"a value of 4 GB",
        [](Pages& pages) { pages.Set(pages.Node(pages.Leaf(false), 0), ~uint32_t{0}); },
        {"damaged", "node 0"}},
       {"a small value as a long one",
        [](Pages& pages) { pages.Set(pages.Node(pages.Leaf(false), 0) + 4, uint16_t{1}); },
        {"damaged", "refers to page"}},
       {"several values of a key",
        [](Pages& pages) { pages.Set(pages.Node(pages.Leaf(false), 0) + 4, uint16_t{4}); },
        {"damaged", "several values in node 0"}},
       {"nodes that overlap",
        [](Pages& pages) {
          const uint64_t leaf = pages.Leaf(false);  // values grow, so do nodes
          for (unsigned i = 0; i + 1 < pages.Nodes(leaf); ++i) {
            pages.Set(pages.Pointer(leaf, i), pages.Get<uint16_t>(pages.Pointer(leaf, pages.Nodes(leaf) - 1)));
          }
        },
        {"damaged", "overlap"}},
       {"a child that is a meta page", [](Pages& pages) { pages.SetChild(pages.root(), 1, 0); }, {"refers to page 0"}},
       {"a child nowhere", [](Pages& pages) { pages.SetChild(pages.root(), 1, 9999); }, {"refers to page 9999"}},
       {"a child far away",
        [](Pages& pages) { pages.SetChild(pages.root(), 1, (uint64_t{1} << 48) - 1); },
        {"refers to page 281474976710655"}},
       {"a loop",
        [](Pages& pages) { pages.SetChild(pages.Child(pages.root(), 1), 1, pages.root()); },
        {"which belongs elsewhere"}},
       {"a child twice",
        [](Pages& pages) { pages.SetChild(pages.root(), 1, pages.Child(pages.root(), 0)); },
        {"which belongs elsewhere"}},
       {"a branch of one child",
        [](Pages& pages) { pages.Set(pages.At(pages.root()) + kLower, uint16_t{18}); },
        {"has 1 nodes"}}},
      ReadAll);
}

TEST(LmdbPages, DamageToLongValuesIsReported) {
  TemporaryFolder folder;
  WriteTree(folder / "db", 100, Long);
  const auto run = [](uint64_t first) {
    return [=](Pages& pages) { pages.Set(pages.Run(pages.Leaf(false), 0), first); };
  };
  ExpectAllReported(
      folder / "db",
      {{"on a meta page", run(1), {"damaged", "refers to page 1 and 1 more"}},
       {"nowhere", run(99999), {"damaged", "refers to page 99999"}},
       {"-1", run(~uint64_t{0}), {"damaged", "refers to page 18446744073709551615"}},
       {"beyond the end", [&](Pages& pages) { run(pages.last())(pages); }, {"damaged", "and 1 more, expected 2 to"}},
       {"of 4 GB", [](Pages& pages) { pages.Set(pages.Node(pages.Leaf(false), 0), ~uint32_t{0}); }, {"damaged"}},
       {"on a page of the tree", [&](Pages& pages) { run(pages.root())(pages); }, {"which belongs elsewhere"}},
       {"of another", [&](Pages& pages) { run(pages.Get(pages.Run(pages.Leaf(true), 0)))(pages); }, {"elsewhere"}}},
      ReadAll);
}

TEST(LmdbPages, OpeningChecksTheFirstRecordOnly) {
  TemporaryFolder folder;
  WriteTree(folder / "db", 300, Long);
  const auto open = [](const std::string& path) { OpenRecordSource(path); };
  ExpectAllReported(folder / "db", PageCases([](const Pages& pages) { return pages.Leaf(true); }), open);
  ExpectAllReported(folder / "db", PageCases([](const Pages& pages) { return pages.root(); }), open);
  Pages pages(folder / "db");
  pages.Set(pages.Run(pages.Leaf(true), 0), uint64_t{99999});
  pages.Write();
  ExpectThrows<UserError>([&] { open(folder / "db"); }, {"refers to page 99999"});

  pages.Restore();
  pages.Set(pages.Run(pages.Leaf(false), 0), uint64_t{99999});
  pages.Write();
  const auto source = OpenRecordSource(folder / "db");
  EXPECT_EQ(source->count(), 300u);
  EXPECT_EQ(Text(source->Read(0)), Long(0));
  EXPECT_EQ(source->Key(0), KeyOf(0));
  const std::vector<std::string> parts = {"damaged", "refers to page 99999"};
  ExpectThrows<UserError>([&] { source->Read(1); }, parts);
  ExpectThrows<UserError>([&] { source->Read(1); }, parts);  // again
  ExpectThrows<UserError>([&] { source->Key(1); }, parts);
  ExpectThrows<UserError>([&] { source->VisitKeys([](uint64_t, const std::string&) { return true; }); }, parts);
}

TEST(LmdbPages, AnyByteMayBeWrong) {
  TemporaryFolder folder;
  const auto value = [](int i) { return i % 20 == 0 ? Long(i) : Small(i); };
  WriteTree(folder / "db", 300, value);
  Pages pages(folder / "db");
  std::mt19937 random(1);
  const auto below = [&](uint64_t count) { return std::uniform_int_distribution<uint64_t>(0, count - 1)(random); };
  int reported = 0;
  for (int i = 0; i < 800; ++i) {
    pages.Restore();
    // Mostly where the format is rather than the values.
    const uint64_t page = i % 4 == 0 ? below(2) : below(pages.last() + 1);
    const uint64_t at = pages.At(page) + below(i % 4 == 3 ? pages.page_bytes() : page < 2 ? 152 : 48);
    const auto old = pages.Get<uint8_t>(at);
    const auto wrong = static_cast<uint8_t>(i % 2 == 0 ? old ^ (1u << below(8)) : below(256));
    pages.Set(at, wrong);
    pages.Write();
    SCOPED_TRACE("byte " + std::to_string(at) + " is " + std::to_string(wrong) + ", was " + std::to_string(old));
    try {
      EXPECT_EQ(ReadAll(folder / "db"), 300u);
    } catch (const UserError&) {
      ++reported;
    } catch (const EnvironmentError&) {
      ++reported;
    }
  }
  EXPECT_GT(reported, 100);
}

// Makes many small changes in the database at `path`, as another process: LMDB must not open a file twice in one.
void ChangeInAnotherProcess(const std::string& path, int seed, int transactions) {
  const pid_t child = fork();
  if (child == 0) {
    std::mt19937 random(static_cast<unsigned>(seed));
    MDB_env* environment = nullptr;
    int status = mdb_env_create(&environment);
    if (status == 0) status = mdb_env_set_mapsize(environment, size_t{1} << 28);
    if (status == 0) status = mdb_env_open(environment, path.c_str(), MDB_NOSYNC, 0644);
    for (int t = 0; status == 0 && t < transactions; ++t) {
      MDB_txn* transaction = nullptr;
      MDB_dbi database = 0;
      status = mdb_txn_begin(environment, nullptr, 0, &transaction);
      if (status == 0) status = mdb_dbi_open(transaction, nullptr, 0, &database);
      for (int i = 0; status == 0 && i < 40; ++i) {
        const int number = static_cast<int>(random() % 600);
        std::string key = KeyOf(number).substr(0, 9 + static_cast<size_t>(number) * 7 % 300), value;
        value.resize(random() % 3 == 0 ? random() % 20000 : random() % 500);
        MDB_val mdb_key{key.size(), key.data()}, mdb_value{value.size(), value.data()};
        status = random() % 5 < 2 ? mdb_del(transaction, database, &mdb_key, nullptr)
                                  : mdb_put(transaction, database, &mdb_key, &mdb_value, 0);
        if (status == MDB_NOTFOUND) status = 0;
      }
      if (status == 0) status = mdb_txn_commit(transaction);
    }
    _exit(status == 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(LmdbPages, WhatIsWrittenAndDeletedOftenIsRead) {
  TemporaryFolder folder;
  WriteTree(folder / "db", 300, [](int i) { return i % 3 == 0 ? Long(i) : Small(i); });
  for (int seed = 0; seed < 30; ++seed) {
    ChangeInAnotherProcess(folder / "db", seed, 7);
    EXPECT_GT(ReadAll(folder / "db"), 100u);
  }
}

TEST(LmdbPages, OthersMayWriteWhileItIsRead) {
  TemporaryFolder folder;
  WriteTree(folder / "db", 300, Small);
  const auto source = OpenRecordSource(folder / "db");
  ChangeInAnotherProcess(folder / "db", 1, 20);
  ASSERT_EQ(source->count(), 300u);
  for (int i = 0; i < 300; ++i) ASSERT_EQ(Text(source->Read(static_cast<uint64_t>(i))), Small(i));
}

TEST(LmdbPages, AnEmptiedDatabaseIsEmpty) {
  TemporaryFolder folder;
  WriteTree(folder / "db", 1, Long);
  EXPECT_EQ(ReadAll(folder / "db"), 1u);
  Pages pages(folder / "db");
  pages.Set(pages.tree() + kEntries, uint64_t{0});
  pages.Set(pages.tree() + kDepth, uint16_t{0});
  pages.Set(pages.tree() + kRoot, ~uint64_t{0});
  pages.Write();
  ExpectThrows<UserError>([&] { OpenRecordSource(folder / "db"); }, {"is empty"});
}

}  // namespace
}  // namespace crema
