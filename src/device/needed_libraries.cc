#include "device/needed_libraries.h"

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <optional>

namespace crema {

namespace {

class ElfFile {
 public:
  explicit ElfFile(const std::string& path) : file_(path, std::ios::binary) {}

  template <typename T>
  std::optional<T> Read(uint64_t offset) {
    T value;
    file_.clear();
    file_.seekg(static_cast<std::streamoff>(offset));
    if (!file_.read(reinterpret_cast<char*>(&value), sizeof value)) return std::nullopt;
    return value;
  }

  std::string Text(uint64_t offset) {
    std::string text;
    file_.clear();
    file_.seekg(static_cast<std::streamoff>(offset));
    std::getline(file_, text, '\0');
    return text;
  }

 private:
  std::ifstream file_;
};

}  // namespace

std::vector<std::string> NeededLibraries(const std::string& path) {
  ElfFile file(path);
  const auto header = file.Read<Elf64_Ehdr>(0);
  constexpr uint8_t kOwnOrder = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
      header->e_ident[EI_DATA] != kOwnOrder) {
    return {};
  }
  std::vector<Elf64_Phdr> loaded;
  Elf64_Phdr dynamic = {};
  for (unsigned i = 0; i < header->e_phnum; ++i) {
    const auto segment = file.Read<Elf64_Phdr>(header->e_phoff + uint64_t{i} * header->e_phentsize);
    if (!segment) return {};
    if (segment->p_type == PT_LOAD) loaded.push_back(*segment);
    if (segment->p_type == PT_DYNAMIC) dynamic = *segment;
  }
  std::vector<uint64_t> names;  // in the table of names
  uint64_t table = 0;           // where that is in memory
  for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= dynamic.p_filesz; at += sizeof(Elf64_Dyn)) {
    const auto entry = file.Read<Elf64_Dyn>(dynamic.p_offset + at);
    if (!entry || entry->d_tag == DT_NULL) break;
    if (entry->d_tag == DT_NEEDED) names.push_back(entry->d_un.d_val);
    if (entry->d_tag == DT_STRTAB) table = entry->d_un.d_ptr;
  }
  std::vector<std::string> needed;
  for (const Elf64_Phdr& segment : loaded) {
    if (table < segment.p_vaddr || table - segment.p_vaddr >= segment.p_filesz) continue;
    for (const uint64_t name : names) needed.push_back(file.Text(segment.p_offset + (table - segment.p_vaddr) + name));
  }
  return needed;
}

}  // namespace crema
