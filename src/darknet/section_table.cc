#include "darknet/section_table.h"

#include <algorithm>

namespace crema::darknet {

namespace {

const std::vector<SectionKind>& AllKinds() {
  static const std::vector<SectionKind> kinds = [] {
    std::vector<SectionKind> all;
    for (const auto& list : {DenseSections(), StructureSections(), DetectionSections()}) {
      all.insert(all.end(), list.begin(), list.end());
    }
    return all;
  }();
  return kinds;
}

}  // namespace

const SectionKind* FindSectionKind(const std::string& name) {
  for (const SectionKind& kind : AllKinds()) {
    if (std::find(kind.names.begin(), kind.names.end(), name) != kind.names.end()) return &kind;
  }
  return nullptr;
}

std::vector<std::string> SectionNames() {
  std::vector<std::string> names;
  for (const SectionKind& kind : AllKinds()) names.insert(names.end(), kind.names.begin(), kind.names.end());
  return names;
}

}  // namespace crema::darknet
