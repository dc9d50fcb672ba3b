// How each kind of section becomes layers.
#ifndef CREMA_DARKNET_SECTION_TABLE_H_
#define CREMA_DARKNET_SECTION_TABLE_H_

#include <string>
#include <vector>

#include "darknet/net_reader.h"

namespace crema::darknet {

// Reads all settings, then what the section reads; then appends layers and sets the result.
using SectionFunction = void (*)(SectionReader& section);

struct SectionKind {
  std::vector<std::string> names;  // as files have it
  std::string layer;               // what layers' names begin with
  SectionFunction read;
};

// One list for each file.
std::vector<SectionKind> DenseSections();
std::vector<SectionKind> StructureSections();
std::vector<SectionKind> DetectionSections();

// Null for a kind that has no form here.
const SectionKind* FindSectionKind(const std::string& name);
// All names.
std::vector<std::string> SectionNames();

}  // namespace crema::darknet

#endif  // CREMA_DARKNET_SECTION_TABLE_H_
