#include "data/files/label_map.h"

#include <set>
#include <sstream>

#include "base/lower_case.h"
#include "crema/annotation.pb.h"
#include "crema/error.h"
#include "data/files/image_list.h"
#include "schema/text_file.h"
#include "schema/text_parse.h"

namespace crema {

namespace {

constexpr int32_t kMostLabels = 1 << 20;

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(line);
  }
  return lines;
}

}  // namespace

LabelMapFile ReadLabelMap(const std::string& path, bool check_duplicates, bool may_be_list) {
  const std::string text = CleanText(ReadTextFile(path), path, "label map"), form = "item { name: \"dog\" label: 1 }";
  const bool is_list = text.find('{') == std::string::npos;
  if (is_list && !may_be_list) {
    throw UserError({path}, "holds names without their labels; write one " + form + " for each class");
  }
  LabelMap map;
  if (is_list) {
    for (const std::string& name : LabelsOf(LinesOf(text), path)) {
      LabelMapItem* const item = map.add_item();
      item->set_name(name);
      item->set_label(map.item_size());
    }
  } else {
    ParseText(text, path, &map);
  }
  LabelMapFile file;
  file.path = path;
  std::set<int> labels;
  Diagnostics diagnostics;
  for (const LabelMapItem& item : map.item()) {
    const std::string number = std::to_string(item.label());
    if (item.name().empty()) diagnostics.Error({path}, "the item of label " + number + " has no name");
    const auto [entry, is_new] = file.label_of.emplace(item.name(), item.label());
    if (is_new) file.names.push_back(item.name());
    if (!is_new && (check_duplicates || entry->second != item.label())) {
      diagnostics.Error({path}, "the name \"" + item.name() + "\" stands twice, for label " +
                                    std::to_string(entry->second) + " and for " + number + "; keep one of them");
    }
    if (!labels.insert(item.label()).second && check_duplicates) {
      diagnostics.Error({path}, "label " + number + " stands twice, the second time for \"" + item.name() +
                                    "\"; give each class a number of its own, or leave out --check_label");
    }
  }
  diagnostics.ThrowIfErrors();
  if (file.names.empty()) {
    throw UserError({path}, "names no class; write one " + form + " for each");
  }
  return file;
}

bool IsBackground(const std::string& name) {
  const std::string plain = LowerCase(name);
  return plain == "background" || plain == "__background__" || plain == "none_of_the_above";
}

std::vector<std::string> ReadClassNames(const std::string& path, size_t with_background) {
  const std::string text = CleanText(ReadTextFile(path), path, "list of classes");
  if (text.find('{') == std::string::npos) {
    std::vector<std::string> names = LabelsOf(LinesOf(text), path);
    const bool lacks =
        with_background == kWithBackground ? !IsBackground(names[0]) : names.size() + 1 == with_background;
    if (lacks) names.insert(names.begin(), "background");
    return names;
  }
  LabelMap map;
  ParseText(text, path, &map);
  std::vector<std::string> names;
  std::set<int> labels;
  for (const LabelMapItem& item : map.item()) {
    if (item.label() < 0 || item.label() >= kMostLabels) {
      throw UserError({path}, "label " + std::to_string(item.label()) + " of \"" + item.name() +
                                  "\" is no number of a class; they count from 0, the background");
    }
    if (!labels.insert(item.label()).second) continue;
    while (static_cast<int32_t>(names.size()) <= item.label()) names.push_back(std::to_string(names.size()));
    names[item.label()] = item.has_display_name() ? item.display_name() : item.name();
  }
  return names;
}

}  // namespace crema
