#include "data/files/class_names.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>
#include <stdexcept>
#include <utility>

#include "base/listed.h"
#include "base/lower_case.h"
#include "base/suggest.h"
#include "data/databases/dataset_writer.h"
#include "data/files/label_map.h"

namespace crema {

namespace {

constexpr size_t kMostClasses = 20;

std::string WithoutCaseAndBlanks(const std::string& name) {
  std::string plain = LowerCase(name);
  std::erase_if(plain, [](char c) { return c == ' ' || c == '\t'; });
  return plain;
}

std::map<std::string, size_t> NumbersOf(const std::vector<std::string>& names) {
  std::map<std::string, size_t> numbers;
  for (size_t i = 0; i < names.size(); ++i) numbers.emplace(names[i], i);
  return numbers;
}

}  // namespace

ClassList ReadClassList(const std::string& file) {
  ClassList list{file, ReadLabels(file)};
  std::set<std::string> seen;
  for (const std::string& name : list.names) {
    if (seen.insert(name).second) continue;
    throw UserError(Location{file}, "the name \"" + name + "\" stands twice; write each class once");
  }
  return list;
}

void NumberClassesAs(const ClassList& classes, ImageList* list) {
  const std::map<std::string, size_t> numbers = NumbersOf(classes.names);
  std::vector<int> number_of;
  Diagnostics unknown;
  for (const std::string& name : list->labels) {
    const auto found = numbers.find(name);
    if (found != numbers.end()) {
      number_of.push_back(static_cast<int>(found->second));
    } else if (!unknown.enough()) {
      unknown.Error(Location{list->root + name},
                    "is none of the " + std::to_string(classes.names.size()) + " classes of \"" + classes.file +
                        "\"; add its name at the end there, or rename the folder" + DidYouMean(name, classes.names));
    }
  }
  unknown.ThrowIfErrors();
  for (ImageList::Entry& entry : list->entries) entry.label = number_of[static_cast<size_t>(entry.label)];
  list->labels = classes.names;
}

void CheckClassesOf(const std::string& database, const ClassList& classes, Diagnostics* warnings) {
  const std::string file = LabelsBeside(database);
  std::error_code ignored;
  if (file.empty() || std::filesystem::equivalent(file, classes.file, ignored)) return;
  std::vector<std::string> own;
  try {
    own = ReadClassNames(file);
  } catch (const std::runtime_error& error) {
    warnings->Warning({database, 0, 0}, "\"" + file + "\" has the name of a list of its classes, but " + error.what());
    return;
  }
  const std::map<std::string, size_t> numbers = NumbersOf(classes.names);
  for (size_t i = 0; i < own.size(); ++i) {
    const auto found = numbers.find(own[i]);
    if (found == numbers.end() || found->second == i) continue;
    if (i < classes.names.size() && classes.names[i] == own[i]) continue;  // it stands twice
    throw UserError(Location{database}, "has \"" + own[i] + "\" as class " + std::to_string(i) + ", says \"" + file +
                                            "\", but \"" + classes.file + "\" has it as class " +
                                            std::to_string(found->second) +
                                            ": records would be taken for those of other classes; make the database "
                                            "anew with --labels=" +
                                            classes.file + ", or correct the file that is wrong");
  }
  for (size_t i = 0; i < std::min(own.size(), classes.names.size()); ++i) {
    if (own[i] == classes.names[i]) continue;
    warnings->Warning({database, 0, 0}, "calls class " + std::to_string(i) + " \"" + own[i] + "\" in \"" + file +
                                            "\", but \"" + classes.file + "\" calls it \"" + classes.names[i] +
                                            "\"; if these are not two names of one class, make the database anew "
                                            "with --labels=" +
                                            classes.file);
    return;
  }
}

ClassCounts::ClassCounts(std::vector<std::string> classes, std::vector<std::string> headings)
    : names(std::move(classes)),
      parts(std::move(headings)),
      counts(names.size(), std::vector<int64_t>(parts.size(), 0)) {}

std::string CountsTable(const ClassCounts& counts) {
  const auto total = [&](size_t i) {
    return std::accumulate(counts.counts[i].begin(), counts.counts[i].end(), int64_t{0});
  };
  std::vector<size_t> shown(counts.names.size());
  std::iota(shown.begin(), shown.end(), size_t{0});
  const bool all = shown.size() <= kMostClasses;
  if (!all) {
    std::stable_sort(shown.begin(), shown.end(), [&](size_t a, size_t b) { return total(a) < total(b); });
    shown.resize(kMostClasses);
  }
  const std::string heading = all ? "class" : "the " + std::to_string(kMostClasses) + " smallest classes";
  size_t widest = heading.size();
  for (const size_t i : shown) widest = std::max(widest, counts.names[i].size());
  constexpr size_t kColumn = 10;
  const auto right = [](const std::string& text) {
    return std::string(text.size() < kColumn ? kColumn - text.size() : 1, ' ') + text;
  };
  std::string table = heading + std::string(widest - heading.size(), ' ');
  for (const std::string& part : counts.parts) table += right(part);
  for (const size_t i : shown) {
    table += "\n" + counts.names[i] + std::string(widest - counts.names[i].size(), ' ');
    for (const int64_t count : counts.counts[i]) table += right(std::to_string(count));
  }
  return table;
}

std::vector<std::string> LookAlikes(const std::vector<std::string>& names) {
  std::map<std::string, std::string> first;
  std::vector<std::string> sentences;
  for (const std::string& name : names) {
    const auto [at, is_new] = first.try_emplace(WithoutCaseAndBlanks(name), name);
    if (is_new || sentences.size() == kMostClasses) continue;
    sentences.push_back("the classes \"" + at->second + "\" and \"" + name +
                        "\" differ in case or blanks alone; if they are one class, give both one name");
  }
  return sentences;
}

std::vector<std::string> MissingClasses(const ClassCounts& counts) {
  std::vector<std::string> sentences;
  for (size_t part = 0; part < counts.parts.size(); ++part) {
    std::vector<std::string> missing;
    for (size_t i = 0; i < counts.names.size(); ++i) {
      if (counts.counts[i][part] == 0) missing.push_back(counts.names[i]);
    }
    if (missing.empty()) continue;
    sentences.push_back("there is no record of " + Listed(missing, {.most = 5, .quoted = true}) +
                        (counts.parts.size() > 1 ? " in " + counts.parts[part] : ""));
  }
  return sentences;
}

bool LieInOrder(const std::vector<int>& classes) {
  size_t runs = classes.empty() ? 0 : 1;
  for (size_t i = 1; i < classes.size(); ++i) runs += classes[i] != classes[i - 1] ? 1 : 0;
  const size_t kinds = std::set<int>(classes.begin(), classes.end()).size();
  return kinds > 1 && runs == kinds && classes.size() >= 2 * kinds;
}

}  // namespace crema
