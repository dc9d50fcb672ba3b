#include "data/databases/lmdb_pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "crema/error.h"

namespace crema {

namespace {

// Numbers are in the byte order of the machine. All pages begin with
//   0 u64 number, 8 u16 unused, 10 u16 flags, 12 u16 end of the node pointers, 14 u16 begin of the nodes
constexpr uint64_t kPageHeader = 16, kFlagsAt = 10, kLowerAt = 12, kUpperAt = 14;
constexpr unsigned kBranch = 0x01, kLeaf = 0x02, kOverflow = 0x04, kMeta = 0x08, kLeaf2 = 0x20, kSubPage = 0x40;
constexpr unsigned kKinds = kBranch | kLeaf | kOverflow | kMeta | kLeaf2 | kSubPage;  // others are of writers' memory

// Meta pages: 16 u32 magic, 20 u32 version, 24 u64 address, 32 u64 size of the map, 40 the tree of the free pages,
// whose first field is the size of pages, 88 that of the unnamed database, 136 u64 last page, 144 u64 transaction.
constexpr uint64_t kMagicAt = 16, kVersionAt = 20, kMapBytesAt = 32, kPageBytesAt = 40, kTreeAt = 88;
constexpr uint64_t kLastPageAt = 136, kTransactionAt = 144, kMetaBytes = 152;
constexpr uint32_t kMagic = 0xBEEFC0DE, kVersion = 1;
constexpr uint64_t kFewestPageBytes = 512, kMostPageBytes = 32768;
constexpr uint64_t kMostPages = uint64_t{1} << 48, kMostMapBytes = uint64_t{1} << 47;
constexpr uint64_t kFirstPage = 2;  // after the meta pages

// Trees: 0 u32 unused, 4 u16 flags, 6 u16 depth, then u64: 8 branch, 16 leaf, 24 overflow pages, 32 entries, 40 root.
constexpr uint64_t kNoRoot = ~uint64_t{0};
constexpr unsigned kSeveralValues = 0x04 | 0x10;  // MDB_DUPSORT, MDB_DUPFIXED
constexpr unsigned kMostLevels = 32;              // of liblmdb's cursors

// Nodes: 0 u16 and 2 u16 size of the value, 4 u16 flags, 6 u16 size of the key, 8 key, value. In branches the first
// three are the number of a page, and there is no value. A long value has a u64 in its place, the first of its pages.
constexpr uint64_t kNodeHeader = 8, kNodeFlagsAt = 4, kKeyBytesAt = 6, kPointer = 2, kPageNumber = 8;
constexpr unsigned kLongValue = 0x01, kValuesOfOneKey = 0x04;

template <typename T>
T Load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

std::string Text(uint64_t number) { return std::to_string(number); }

LmdbTree ParseTree(const std::byte* meta, uint64_t number) {
  const std::byte* const tree = meta + kTreeAt;
  return {.meta_page = number,
          .flags = Load<uint16_t>(tree + 4),
          .depth = Load<uint16_t>(tree + 6),
          .branch_pages = Load<uint64_t>(tree + 8),
          .leaf_pages = Load<uint64_t>(tree + 16),
          .overflow_pages = Load<uint64_t>(tree + 24),
          .entries = Load<uint64_t>(tree + 32),
          .root = Load<uint64_t>(tree + 40),
          .last_page = Load<uint64_t>(meta + kLastPageAt)};
}

// False for what liblmdb does not take for a meta page.
bool ReadMetaPage(int fd, uint64_t at, std::byte (&meta)[kMetaBytes]) {
  return pread(fd, meta, kMetaBytes, static_cast<off_t>(at)) == static_cast<ssize_t>(kMetaBytes) &&
         (Load<uint16_t>(meta + kFlagsAt) & kMeta) != 0 && Load<uint32_t>(meta + kMagicAt) == kMagic &&
         Load<uint32_t>(meta + kVersionAt) == kVersion;
}

class TreeCheck {
 public:
  TreeCheck(const std::string& folder, const std::byte* map, uint64_t page_bytes, const LmdbTree& tree)
      : folder_(folder), map_(map), page_bytes_(page_bytes), tree_(tree) {}

  void Meta() const;
  void FirstRecord() { Visit(tree_.meta_page, tree_.root, tree_.depth); }
  void All();

 private:
  struct Node {
    const std::byte* at = nullptr;
    bool leaf = false;

    uint64_t key_bytes() const { return Load<uint16_t>(at + kKeyBytesAt); }
    unsigned flags() const { return Load<uint16_t>(at + kNodeFlagsAt); }
    uint64_t value_bytes() const { return Load<uint16_t>(at) | uint64_t{Load<uint16_t>(at + 2)} << 16; }
    uint64_t child() const { return value_bytes() | uint64_t{Load<uint16_t>(at + kNodeFlagsAt)} << 32; }
    bool long_value() const { return leaf && (flags() & kLongValue) != 0; }
    uint64_t bytes() const {
      return kNodeHeader + key_bytes() + (long_value() ? kPageNumber : leaf ? value_bytes() : 0);
    }
  };

  [[noreturn]] void Wrong(uint64_t page, const std::string& what) const {
    ThrowDamaged(folder_, "page " + Text(page) + " of data.mdb " + what);
  }
  const std::byte* At(uint64_t page) const { return map_ + page * page_bytes_; }
  Node NodeOf(const std::byte* page, unsigned i, bool leaf) const {
    return {page + Load<uint16_t>(page + kPageHeader + kPointer * i), leaf};
  }
  void Visit(uint64_t parent, uint64_t page, unsigned level);
  unsigned CheckNodes(uint64_t page, bool leaf) const;
  void Claim(uint64_t owner, uint64_t first, uint64_t count);

  const std::string& folder_;
  const std::byte* map_;
  uint64_t page_bytes_;
  const LmdbTree& tree_;
  uint64_t entries_ = 0;
  std::vector<bool> claimed_;  // by page; empty where only the first record is looked for
};

void TreeCheck::Meta() const {
  if (tree_.depth < 1 || tree_.depth > kMostLevels) {
    Wrong(tree_.meta_page, "has a tree of " + Text(tree_.depth) + " levels, expected 1 to " + Text(kMostLevels));
  }
  // Branches have two children at least, so that a single record is a leaf, whose nodes are counted.
  const uint64_t fewest = uint64_t{1} << (tree_.depth - 1);
  const uint64_t most = (tree_.last_page - 1) * ((page_bytes_ - kPageHeader) / (kPointer + kNodeHeader));
  if (tree_.entries < fewest || tree_.entries > most) {
    Wrong(tree_.meta_page, "promises " + Text(tree_.entries) + " records, expected " + Text(fewest) + " to " +
                               Text(most) + " of a tree of " + Text(tree_.depth) + " levels and " +
                               Text(tree_.last_page + 1) + " pages");
  }
}

void TreeCheck::All() {
  claimed_.resize(tree_.last_page + 1);
  Visit(tree_.meta_page, tree_.root, tree_.depth);
  if (entries_ != tree_.entries) {
    Wrong(tree_.meta_page, "promises " + Text(tree_.entries) + " records, but there are " + Text(entries_));
  }
}

// No page has two owners: so there are no loops, and no more work than pages.
void TreeCheck::Claim(uint64_t owner, uint64_t first, uint64_t count) {
  if (first < kFirstPage || first > tree_.last_page || count - 1 > tree_.last_page - first) {
    Wrong(owner, "refers to page " + Text(first) + (count > 1 ? " and " + Text(count - 1) + " more" : "") +
                     ", expected " + Text(kFirstPage) + " to " + Text(tree_.last_page));
  }
  if (claimed_.empty()) return;
  for (uint64_t page = first; page < first + count; ++page) {
    if (claimed_[page]) Wrong(owner, "refers to page " + Text(page) + ", which belongs elsewhere");
    claimed_[page] = true;
  }
}

// All within the page; returns how many there are.
unsigned TreeCheck::CheckNodes(uint64_t number, bool leaf) const {
  const std::byte* const page = At(number);
  const uint64_t lower = Load<uint16_t>(page + kLowerAt), upper = Load<uint16_t>(page + kUpperAt);
  if (lower < kPageHeader || lower % kPointer != 0 || lower > upper || upper > page_bytes_) {
    Wrong(number, "has free space from " + Text(lower) + " to " + Text(upper) + ", which cannot be");
  }
  const auto nodes = static_cast<unsigned>((lower - kPageHeader) / kPointer);
  if (nodes < (leaf ? 1 : 2)) Wrong(number, "has " + Text(nodes) + " nodes, which are too few");
  uint64_t bytes = 0;
  for (unsigned i = 0; i < nodes; ++i) {
    const Node node = NodeOf(page, i, leaf);
    const auto at = static_cast<uint64_t>(node.at - page);
    if (at < upper || at + kNodeHeader > page_bytes_ || at + node.bytes() > page_bytes_) {
      Wrong(number, "has node " + Text(i) + " at " + Text(at) + ", where it does not lie within the page");
    }
    if (leaf && (node.flags() & kValuesOfOneKey) != 0) Wrong(number, "has several values in node " + Text(i));
    bytes += node.bytes();
  }
  if (bytes > page_bytes_ - upper) Wrong(number, "has nodes that overlap");
  return nodes;
}

void TreeCheck::Visit(uint64_t parent, uint64_t number, unsigned level) {
  Claim(parent, number, 1);
  const std::byte* const page = At(number);
  if (const uint64_t stored = Load<uint64_t>(page); stored != number) {
    Wrong(number, "has the number " + Text(stored) + " in it");
  }
  const bool leaf = level == 1;
  if ((Load<uint16_t>(page + kFlagsAt) & kKinds) != (leaf ? kLeaf : kBranch)) {
    Wrong(number, "is no " + std::string(leaf ? "leaf" : "branch") + " of the tree (flags " +
                      Text(Load<uint16_t>(page + kFlagsAt)) + ")");
  }
  const unsigned nodes = CheckNodes(number, leaf);
  if (leaf) entries_ += nodes;
  for (unsigned i = 0; i < nodes; ++i) {
    const Node node = NodeOf(page, i, leaf);
    if (!leaf) {
      Visit(number, node.child(), level - 1);
    } else if (node.long_value()) {
      const uint64_t pages = (kPageHeader + node.value_bytes() - 1) / page_bytes_ + 1;
      Claim(number, Load<uint64_t>(node.at + kNodeHeader + node.key_bytes()), pages);
    }
    if (claimed_.empty()) break;
  }
}

}  // namespace

void ThrowDamaged(const std::string& folder, const std::string& what) {
  throw UserError("database \"" + folder + "\" is damaged: " + what + "; copy it again or make it anew");
}

void CheckLmdbMetaPages(const std::string& folder) {
  // A pipe would keep this waiting for somebody to write.
  const int fd = open((folder + "/data.mdb").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return;
  struct stat status;
  if (fstat(fd, &status) == 0 && !S_ISREG(status.st_mode)) {
    close(fd);
    throw UserError("database \"" + folder + "\": data.mdb is no regular file but a pipe or device");
  }
  std::byte meta[2][kMetaBytes] = {};
  bool known = ReadMetaPage(fd, 0, meta[0]);
  // As the machine that made the file had them, not this one.
  const uint64_t page_bytes = known ? Load<uint32_t>(meta[0] + kPageBytesAt) : 0;
  const bool size_known =
      std::has_single_bit(page_bytes) && page_bytes >= kFewestPageBytes && page_bytes <= kMostPageBytes;
  if (known && size_known) known = ReadMetaPage(fd, page_bytes, meta[1]);
  known = known && fstat(fd, &status) == 0;  // after the pages were read: the file may grow
  close(fd);
  if (!known) return;
  if (!size_known || Load<uint32_t>(meta[1] + kPageBytesAt) != page_bytes) {
    ThrowDamaged(folder, "pages 0 and 1 of data.mdb say that pages have " + Text(page_bytes) + " and " +
                             Text(Load<uint32_t>(meta[1] + kPageBytesAt)) + " bytes");
  }
  const uint64_t transactions[] = {Load<uint64_t>(meta[0] + kTransactionAt), Load<uint64_t>(meta[1] + kTransactionAt)};
  // Of the later transaction: transactions take turns, the odd ones on page 1.
  const uint64_t newer = transactions[1] > transactions[0] ? 1 : 0;
  if (transactions[newer] % 2 != newer) {
    ThrowDamaged(folder, "page " + Text(newer) + " of data.mdb has the transaction " + Text(transactions[newer]));
  }
  const uint64_t last_page = ParseTree(meta[newer], newer).last_page;
  if (last_page < kFirstPage - 1 || last_page >= kMostPages) {
    ThrowDamaged(folder, "page " + Text(newer) + " of data.mdb has " + Text(last_page) + " for the last page");
  }
  // Reading the map past the end of the file would kill the process with SIGBUS.
  const uint64_t wanted = (last_page + 1) * page_bytes;
  if (static_cast<uint64_t>(status.st_size) < wanted) {
    throw UserError("database \"" + folder + "\" is cut short: data.mdb has " + Text(status.st_size) +
                    " bytes, expected " + Text(wanted) +
                    "; copy it again (if it is whole, mdb_copy -c repairs the count)");
  }
  if (const uint64_t bytes = Load<uint64_t>(meta[newer] + kMapBytesAt); bytes > kMostMapBytes) {
    ThrowDamaged(folder, "page " + Text(newer) + " of data.mdb has a map of " + Text(bytes) + " bytes");
  }
}

LmdbPages::LmdbPages(std::string folder, int fd, uint64_t page_bytes)
    : folder_(std::move(folder)), page_bytes_(page_bytes) {
  struct stat status;
  void* map = MAP_FAILED;
  if (fstat(fd, &status) == 0) {
    map = mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_SHARED, fd, 0);
  }
  if (map == MAP_FAILED) {
    throw EnvironmentError("cannot map " + folder_ + "/data.mdb: " + std::strerror(errno));
  }
  map_ = {static_cast<const std::byte*>(map), static_cast<size_t>(status.st_size)};
}

LmdbPages::~LmdbPages() { munmap(const_cast<std::byte*>(map_.data()), map_.size()); }

LmdbTree LmdbPages::Tree(uint64_t meta_page) const {
  const LmdbTree tree = ParseTree(map_.data() + meta_page * page_bytes_, meta_page);
  if (tree.last_page < kFirstPage - 1 || tree.last_page >= map_.size() / page_bytes_) {
    ThrowDamaged(folder_, "page " + Text(meta_page) + " of data.mdb has " + Text(tree.last_page) +
                              " for the last page, expected 1 to " + Text(map_.size() / page_bytes_ - 1));
  }
  return tree;
}

void LmdbPages::CheckFirstRecord(const LmdbTree& tree) const {
  if ((tree.flags & kSeveralValues) != 0) {
    throw UserError("database \"" + folder_ +
                    "\" has several values for a key (MDB_DUPSORT), which Data layers do not " +
                    "read; make it anew without that flag");
  }
  if (tree.entries == 0 && tree.root == kNoRoot) return;
  TreeCheck check(folder_, map_.data(), page_bytes_, tree);
  check.Meta();
  // A single page is all there is.
  if (tree.depth == 1) {
    check.All();
  } else {
    check.FirstRecord();
  }
}

void LmdbPages::CheckAll(const LmdbTree& tree) const {
  // The pages of the keys lie scattered among those of the values, which need not be read.
  if (tree.sparse_keys()) madvise(const_cast<std::byte*>(map_.data()), map_.size(), MADV_RANDOM);
  TreeCheck(folder_, map_.data(), page_bytes_, tree).All();
}

}  // namespace crema
