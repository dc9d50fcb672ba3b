// Checks of an LMDB file's pages, in the format of LMDB 0.9, before liblmdb follows them: it believes every page
// number, offset and size that it meets, so that one wrong byte may end the process or send a cursor round in circles.
#ifndef CREMA_DATA_DATABASES_LMDB_PAGES_H_
#define CREMA_DATA_DATABASES_LMDB_PAGES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace crema {

// Throws the UserError for a database that does not hold what it must.
[[noreturn]] void ThrowDamaged(const std::string& folder, const std::string& what);

// The tree of the unnamed database, as one of the two meta pages describes it.
struct LmdbTree {
  uint64_t meta_page = 0;  // 0 or 1
  uint16_t flags = 0, depth = 0;
  uint64_t branch_pages = 0, leaf_pages = 0, overflow_pages = 0, entries = 0, root = 0;
  uint64_t last_page = 0;  // of the file

  // Values are long and lie apart from the keys.
  bool sparse_keys() const { return overflow_pages / 8 > leaf_pages; }
};

// What liblmdb takes from the meta pages of `folder`/data.mdb while it opens them: throws UserError where that could
// end the process, or where the file is cut short. What liblmdb itself reports, no file or one of another format, is
// left to it.
void CheckLmdbMetaPages(const std::string& folder);

// The pages of a file that liblmdb has open, in a map of its own: liblmdb says where its map is only by what it reads.
// Pages that a read transaction sees do not change as long as it lives, whoever writes. The methods throw UserError
// that names the database, the page and what is wrong.
class LmdbPages {
 public:
  // Throws EnvironmentError where `fd` cannot be mapped.
  LmdbPages(std::string folder, int fd, uint64_t page_bytes);
  ~LmdbPages();
  LmdbPages(const LmdbPages&) = delete;
  LmdbPages& operator=(const LmdbPages&) = delete;

  // From meta page 0 or 1. They change while others write.
  LmdbTree Tree(uint64_t meta_page) const;
  // The way to the first record, and what can be known of the number of records without reading more pages. Nothing is
  // wrong with a tree of no entries.
  void CheckFirstRecord(const LmdbTree& tree) const;
  // All branch and leaf pages, after CheckFirstRecord: a cursor then stays within the file and meets tree.entries
  // records. The pages of long values must lie in the file and belong to one value only, but are not read, which would
  // take a seek of the disk each: liblmdb only adds to their address, and does not look at their headers either.
  // Neither is the order of the keys looked at, nor what is in the values.
  void CheckAll(const LmdbTree& tree) const;

 private:
  std::string folder_;
  uint64_t page_bytes_;
  std::span<const std::byte> map_;
};

}  // namespace crema

#endif  // CREMA_DATA_DATABASES_LMDB_PAGES_H_
