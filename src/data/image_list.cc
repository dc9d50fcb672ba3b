#include "data/image_list.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/atomic_file.h"
#include "crema/error.h"

namespace crema {

namespace {

namespace fs = std::filesystem;

constexpr int kMostErrors = 20;

std::ifstream Open(const std::string& path, const char* what) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    throw UserError("\"" + path + "\" is a folder; expected " + what);
  }
  std::ifstream file(path);
  if (!file) throw EnvironmentError("cannot open \"" + path + "\", " + what + ": " + std::strerror(errno));
  return file;
}

void TrimEnd(std::string* line) {
  while (!line->empty() && std::isspace(static_cast<unsigned char>(line->back()))) line->pop_back();
}

// Empty, or what is wrong with the line.
std::string ParseLine(const std::string& line, ImageList::Entry* entry) {
  const size_t blank = line.find_last_of(" \t");
  if (blank == std::string::npos || blank == 0) {
    return "expected \"path label\", got \"" + line + "\"; write the class, counted from 0, behind the path";
  }
  const char *begin = line.data() + blank + 1, *end = line.data() + line.size();
  const auto [rest, error] = std::from_chars(begin, end, entry->label);
  if (error != std::errc() || rest != end || entry->label < 0) {
    return "the label \"" + std::string(begin, end) + "\" is no whole number from 0 on; number the classes";
  }
  entry->path = line.substr(0, blank);
  TrimEnd(&entry->path);
  return {};
}

bool Hidden(const fs::path& path) { return path.filename().string().starts_with("."); }

// Paths below `root`, sorted, of all images in root/below and the folders in it.
void AddImages(const fs::path& root, const std::string& below, std::vector<std::string>* paths, size_t* skipped) {
  for (const fs::directory_entry& entry : fs::directory_iterator(root / below)) {
    const std::string path = below + "/" + entry.path().filename().string();
    if (Hidden(entry.path())) continue;
    if (entry.is_directory()) {
      AddImages(root, path, paths, skipped);
    } else if (HasImageName(entry.path().string())) {
      paths->push_back(path);
    } else {
      ++*skipped;
    }
  }
}

}  // namespace

bool HasImageName(const std::string& path) {
  std::string extension = fs::path(path).extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

ImageList ReadImageList(const std::string& file, const std::string& root) {
  std::ifstream stream = Open(file, "a list with one \"path label\" per line");
  ImageList list;
  list.root = root.empty() || root.ends_with("/") ? root : root + "/";
  Diagnostics diagnostics;
  std::string line;
  for (int number = 1; std::getline(stream, line) && diagnostics.errors() < kMostErrors; ++number) {
    TrimEnd(&line);
    if (line.empty()) continue;
    ImageList::Entry entry;
    const std::string problem = ParseLine(line, &entry);
    if (!problem.empty()) {
      diagnostics.Error({file, number, 0}, problem);
    } else {
      list.entries.push_back(std::move(entry));
    }
  }
  if (stream.bad()) throw EnvironmentError("cannot read \"" + file + "\": " + std::strerror(errno));
  diagnostics.ThrowIfErrors();
  if (list.entries.empty()) throw UserError({file, 0, 0}, "names no image; write one \"path label\" per line");
  return list;
}

ImageList ListImageFolder(const std::string& folder, size_t* skipped) {
  ImageList list;
  list.root = folder.ends_with("/") ? folder : folder + "/";
  *skipped = 0;
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      if (entry.is_directory() && !Hidden(entry.path())) list.labels.push_back(entry.path().filename().string());
    }
    std::sort(list.labels.begin(), list.labels.end());
    for (size_t label = 0; label < list.labels.size(); ++label) {
      std::vector<std::string> paths;
      AddImages(folder, list.labels[label], &paths, skipped);
      std::sort(paths.begin(), paths.end());
      if (paths.empty()) {
        throw UserError("\"" + list.root + list.labels[label] +
                        "\" holds no image (.jpg, .jpeg, .png): every folder is " +
                        "a class; remove it or put images into it");
      }
      for (std::string& path : paths) list.entries.push_back({std::move(path), static_cast<int>(label)});
    }
  } catch (const fs::filesystem_error& error) {
    throw EnvironmentError("cannot read the folder \"" + error.path1().string() + "\": " + error.code().message());
  }
  if (list.labels.empty()) {
    throw UserError("\"" + folder + "\" holds no folders; expected one folder of images for each class");
  }
  return list;
}

std::vector<std::string> ReadLabels(const std::string& file) {
  std::ifstream stream = Open(file, "a list with the name of one class per line");
  std::vector<std::string> labels;
  std::string line;
  while (std::getline(stream, line)) {
    TrimEnd(&line);
    if (!line.empty()) labels.push_back(line);
  }
  if (stream.bad()) throw EnvironmentError("cannot read \"" + file + "\": " + std::strerror(errno));
  if (labels.empty()) throw UserError({file, 0, 0}, "names no class; write one name per line");
  return labels;
}

void WriteLabels(const std::vector<std::string>& labels, const std::string& file) {
  AtomicFile out(file);
  for (const std::string& label : labels) out.Write(label + "\n");
  out.Commit();
}

}  // namespace crema
