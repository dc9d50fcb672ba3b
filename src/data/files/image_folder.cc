#include "data/files/image_folder.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <string_view>

#include "base/input_file.h"
#include "base/lower_case.h"
#include "base/paths.h"
#include "crema/error.h"
#include "image/codec.h"

namespace crema {

namespace {

namespace fs = std::filesystem;

bool Hidden(const fs::path& path) { return path.filename().string().starts_with("."); }

// `around`: the folders that lead to this one, and this one last.
void AddImages(const std::string& prefix, std::vector<fs::path>* around, std::vector<std::string>* paths,
               size_t* skipped) {
  for (const fs::directory_entry& entry : fs::directory_iterator(around->back())) {
    if (Hidden(entry.path())) continue;
    const std::string path = prefix + entry.path().filename().string();
    if (entry.is_directory()) {
      const bool leads_here = std::any_of(around->begin(), around->end(),
                                          [&](const auto& folder) { return fs::equivalent(folder, entry.path()); });
      if (leads_here) continue;
      around->push_back(entry.path());
      AddImages(path + "/", around, paths, skipped);
      around->pop_back();
    } else if (HasImageName(path)) {
      paths->push_back(path);
    } else if (skipped) {
      ++*skipped;
    }
  }
}

// Numbers by their values, as those who number folders mean it; other names by their bytes.
void SortClasses(std::vector<std::string>* names) {
  const bool numbered = std::all_of(names->begin(), names->end(), [](const std::string& name) {
    return name.find_first_not_of("0123456789") == std::string::npos;
  });
  const auto digits = [](const std::string& name) {
    return std::string_view(name).substr(std::min(name.find_first_not_of('0'), name.size()));
  };
  std::sort(names->begin(), names->end(), [&](const std::string& a, const std::string& b) {
    if (!numbered || digits(a) == digits(b)) return a < b;
    return digits(a).size() != digits(b).size() ? digits(a).size() < digits(b).size() : digits(a) < digits(b);
  });
}

constexpr std::string_view kTraining[] = {"train", "training"},
                           kValidation[] = {"val", "valid", "validate", "validation", "dev", "test", "testing"};

bool IsPart(const std::string& name) {
  const auto is_among = [lower = LowerCase(name)](const auto& names) {
    return std::find(std::begin(names), std::end(names), lower) != std::end(names);
  };
  return is_among(kTraining) || is_among(kValidation);
}

// Of a data set that somebody has divided, the parts would pass for classes.
void RefuseParts(const ImageList& list) {
  const auto& labels = list.labels;
  if (labels.size() < 2 || !std::all_of(labels.begin(), labels.end(), IsPart)) return;
  const auto lies_in_class = [](const ImageList::Entry& entry) {
    return std::count(entry.path.begin(), entry.path.end(), '/') == 1;
  };
  if (std::any_of(list.entries.begin(), list.entries.end(), lies_in_class)) return;
  throw UserError("\"" + list.root + "\" holds " + labels[0] + " and " + labels[1] +
                  " with folders in them: parts of a data set, not classes; give one of them, as \"" + list.root +
                  labels[0] + "\"");
}

}  // namespace

DividedFolder FindParts(const std::string& folder) {
  std::map<std::string, std::string, std::less<>> paths;  // by their names
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (fs::is_directory(entry.path(), error))
      paths[LowerCase(entry.path().filename().string())] = entry.path().string();
  }
  const auto first_of = [&paths](const auto& names) {
    const auto there = std::find_if(std::begin(names), std::end(names),
                                    [&paths](std::string_view name) { return paths.find(name) != paths.end(); });
    return there == std::end(names) ? std::string() : paths.find(*there)->second;
  };
  DividedFolder parts{first_of(kTraining), first_of(kValidation)};
  if (parts.training.empty() || parts.validation.empty()) return {};
  return parts;
}

std::vector<std::string> ImagesBelow(const std::string& folder, size_t* skipped) {
  std::vector<fs::path> around = {folder};
  std::vector<std::string> paths;
  try {
    AddImages("", &around, &paths, skipped);
  } catch (const fs::filesystem_error& error) {
    FailToRead(error.path1().string(), error.code().message());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

ImageList ListImageFolder(const std::string& folder, LeftOut* left_out) {
  ImageList list;
  list.root = AsRoot(folder);
  *left_out = {};
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      if (Hidden(entry.path())) continue;
      if (entry.is_directory()) {
        list.labels.push_back(entry.path().filename().string());
      } else if (HasImageName(entry.path().string())) {
        left_out->loose.push_back(entry.path().string());
      } else {
        ++left_out->others;
      }
    }
  } catch (const fs::filesystem_error& error) {
    FailToRead(error.path1().string(), error.code().message());
  }
  SortClasses(&list.labels);
  std::sort(left_out->loose.begin(), left_out->loose.end());
  for (size_t label = 0; label < list.labels.size(); ++label) {
    const std::vector<std::string> paths = ImagesBelow(list.root + list.labels[label], &left_out->others);
    if (paths.empty()) {
      throw UserError("\"" + list.root + list.labels[label] + "\" holds no image (" + kReadFormats +
                      "): every folder is a class; remove it or put images into it");
    }
    for (const std::string& path : paths) {
      list.entries.push_back({list.labels[label] + "/" + path, static_cast<int>(label)});
    }
  }
  if (list.labels.empty()) {
    throw UserError(Location{folder}, "holds no folders; expected one folder of images for each class");
  }
  RefuseParts(list);
  return list;
}

}  // namespace crema
