#include "data/files/image_list.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/number_text.h"
#include "base/paths.h"
#include "crema/error.h"
#include "data/files/text_file.h"

namespace crema {

namespace {

constexpr const char* kBlanks = " \t";

void TrimEnd(std::string* line) {
  while (!line->empty() && std::isspace(static_cast<unsigned char>(line->back()))) line->pop_back();
}

// Cuts the line at its last blank; false where there is none.
bool CutAtLastBlank(const std::string& line, std::string* front, std::string* back) {
  const size_t blank = line.find_last_of(kBlanks);
  if (blank == std::string::npos || blank == 0) return false;
  *front = line.substr(0, blank);
  *back = line.substr(blank + 1);
  TrimEnd(front);
  return true;
}

// Empty, or what is wrong with the line.
std::string ParseLine(const std::string& line, ImageList::Entry* entry) {
  std::string label;
  if (!CutAtLastBlank(line, &entry->path, &label)) {
    return "expected \"path label\", got \"" + line + "\"; write the class, counted from 0, behind the path";
  }
  if (ParseWhole(label, &entry->label)) return {};
  float number;
  const size_t digits = label.starts_with("-") ? 1 : 0;
  if (label.size() > digits && label.find_first_not_of("0123456789", digits) == std::string::npos) {
    return "the label " + label + " is too large for a class";
  }
  return "the label \"" + label + "\" is no whole number; number the classes from 0 on" +
         (ParseFinite(label, &number)
              ? ", or say how many numbers follow each path where they are none (label_count of ImageData and "
                "convert_imageset)"
              : "");
}

// The same of a line with list->label_count numbers, which are put behind those of the list.
std::string ParseNumbers(const std::string& line, ImageList* list, ImageList::Entry* entry) {
  const size_t count = list->label_count, begin = list->numbers.size();
  const std::string expected =
      "expected a path and " + std::to_string(count) + (count == 1 ? " number" : " numbers") + " (label_count), but ";
  list->numbers.resize(begin + count);
  std::string_view rest = line;
  for (size_t i = count; i-- > 0;) {
    const size_t blank = rest.find_last_of(kBlanks);
    if (blank == std::string_view::npos) {
      return expected + std::to_string(count - 1 - i) + " follow \"" + std::string(rest) + "\"";
    }
    const std::string_view word = rest.substr(blank + 1);
    if (!ParseFinite(word, &list->numbers[begin + i]))
      return expected + "\"" + std::string(word) + "\" is no finite one";
    rest = rest.substr(0, rest.find_last_not_of(kBlanks, blank) + 1);
  }
  entry->path = rest;
  return rest.empty() ? expected + "there is no path" : "";
}

// The classes of a video, whose numbers are put behind those of the list; empty, or what is wrong with them.
std::string ParseClasses(const std::string& label, ImageList* list, ImageList::Entry* entry) {
  const size_t count = list->label_count, begin = list->numbers.size();
  list->numbers.resize(begin + count);
  std::string_view rest = label;
  for (bool first = true;; first = false) {
    const std::string_view word = rest.substr(0, rest.find(','));
    int value = -1;
    if (!ParseWhole(word, &value) || value < 0 || static_cast<size_t>(value) >= count) {
      return "\"" + std::string(word) + "\" of the label \"" + label + "\" is no class from 0 to " +
             std::to_string(count - 1) + " (num_of_labels); write them with commas and without blanks, as in 3,17";
    }
    if (first) entry->label = value;
    list->numbers[begin + static_cast<size_t>(value)] = 1;
    if (word.size() == rest.size()) return {};
    rest.remove_prefix(word.size() + 1);
  }
}

std::string ParseVideo(const std::string& line, const VideoListForm& form, ImageList* list, ImageList::Entry* entry) {
  std::string front, label, number;
  const bool cut = CutAtLastBlank(line, &front, &label) && CutAtLastBlank(front, &entry->path, &number);
  if (!cut || !ParseWhole(number, &entry->number) || entry->number < 0) {
    return "expected \"folder " + form.number + " label\", got \"" + line + "\"; write a whole number and the class, " +
           "counted from 0, behind the folder of the frames";
  }
  std::string problem = form.problem(entry->number);
  if (!problem.empty()) return problem;
  if (list->label_count > 0) return ParseClasses(label, list, entry);
  if (ParseWhole(label, &entry->label)) return {};
  return "the label \"" + label + "\" is no whole number; number the classes from 0 on" +
         (label.find(',') == std::string::npos ? "" : ", or set use_multiple_label and num_of_labels");
}

// COCO's files of annotations, whose lines would pass for paths. `begin`: what the lines before began with.
void RefuseJson(const std::string& file, const std::string& line, std::string* begin) {
  if (begin->size() >= 2) return;
  for (const char c : line) {
    if (std::string_view(kBlanks).find(c) == std::string_view::npos && begin->size() < 2) *begin += c;
  }
  if (begin->size() < 2 || ((*begin)[0] != '{' && (*begin)[0] != '[')) return;
  if (std::string_view("\"{[]}").find((*begin)[1]) == std::string_view::npos) return;
  throw UserError({file, 0, 0},
                  "is JSON, as COCO's annotations are, and not a list; convert them to PASCAL VOC's XML or to YOLO's "
                  "text, a file for each image (--label_type=yolo), and list the images");
}

enum class Lines { kOfAnyList, kOfAnnotatedImages };

// Calls parse(line, number), which returns what is wrong with the line, for each that is not empty when blanks at its
// end are cut off.
template <typename Parse>
void ReadLines(const std::string& file, const std::string& what, const Parse& parse, Lines lines = Lines::kOfAnyList) {
  Diagnostics diagnostics;
  std::string begin;
  TextFile text(file, what);
  for (std::string line; !diagnostics.enough() && text.ReadLine(&line);) {
    TrimEnd(&line);
    if (lines == Lines::kOfAnnotatedImages) RefuseJson(file, line, &begin);
    const std::string problem = line.empty() ? std::string() : parse(line, text.line());
    if (!problem.empty()) diagnostics.Error({file, text.line(), 0}, problem);
  }
  diagnostics.ThrowIfErrors();
}

// Calls add(image, other, number) for each line of a list of such pairs.
template <typename Add>
void ReadPairs(const std::string& file, const std::string& pair, const std::string& other, const Add& add,
               Lines lines = Lines::kOfAnyList) {
  bool empty = true;
  const std::string form = "one \"" + pair + "\" per line";
  const auto parse = [&](const std::string& line, int number) -> std::string {
    std::string front, back;
    if (!CutAtLastBlank(line, &front, &back)) {
      return "expected \"" + pair + "\", got \"" + line + "\"; write the path of " + other +
             " behind that of the image";
    }
    add(std::move(front), std::move(back), number);
    empty = false;
    return {};
  };
  ReadLines(file, "a list with " + form, parse, lines);
  if (empty) throw UserError({file, 0, 0}, "names no image; write " + form);
}

// One path per line, of images whose label is `label`.
ImageList ReadPaths(const std::string& file, const std::string& root, int label, Lines lines = Lines::kOfAnyList) {
  ImageList list;
  list.file = file;
  list.root = AsRoot(root);
  const std::string form = "one path of an image per line";
  const auto parse = [&](const std::string& line, int number) -> std::string {
    list.entries.push_back({line, label, number});
    return {};
  };
  ReadLines(file, "a list with " + form, parse, lines);
  if (list.entries.empty()) throw UserError({file, 0, 0}, "names no image; write " + form);
  return list;
}

std::string YoloLabelsOf(const std::filesystem::path& image) {
  std::filesystem::path beside = image, behind;
  beside.replace_extension(".txt");
  std::error_code error;
  for (std::filesystem::path at = beside; at.has_relative_path(); at = at.parent_path()) {
    if (at.filename() == "images" || at.filename() == "JPEGImages") {
      const std::filesystem::path apart = at.parent_path() / "labels" / behind;
      return std::filesystem::exists(apart, error) || !std::filesystem::exists(beside, error) ? apart : beside;
    }
    behind = behind.empty() ? at.filename() : at.filename() / behind;
  }
  return beside;
}

}  // namespace

std::string ImageList::Named(size_t i) const { return "\"" + PathOf(i) + "\"" + PlaceOf(i); }

std::string ImageList::PlaceOf(size_t i) const {
  return file.empty() ? "" : " (" + Location{file, entries[i].line, 0}.ToString() + ")";
}

ImageList ReadImageList(const std::string& file, const std::string& root, size_t label_count) {
  ImageList list;
  list.file = file;
  list.root = AsRoot(root);
  list.label_count = label_count;
  list.may_have_numbers = true;
  const std::string form = label_count > 0 ? "one path and its numbers per line" : "one \"path label\" per line";
  ReadLines(file, "a list with " + form, [&list](const std::string& line, int number) {
    ImageList::Entry entry;
    entry.line = number;
    std::string problem = list.label_count > 0 ? ParseNumbers(line, &list, &entry) : ParseLine(line, &entry);
    if (problem.empty()) list.entries.push_back(std::move(entry));
    return problem;
  });
  if (list.entries.empty()) throw UserError({file, 0, 0}, "names no image; write " + form);
  return list;
}

ImageList ReadVideoList(const std::string& file, const std::string& root, const VideoListForm& form) {
  ImageList list;
  list.file = file;
  list.root = AsRoot(root);
  list.label_count = form.label_count;
  const std::string line_form = "one \"folder " + form.number + " label\" per line";
  ReadLines(file, "a list with " + line_form, [&](const std::string& line, int number) {
    ImageList::Entry entry;
    entry.line = number;
    std::string problem = ParseVideo(line, form, &list, &entry);
    if (problem.empty()) list.entries.push_back(std::move(entry));
    return problem;
  });
  if (list.entries.empty()) throw UserError({file, 0, 0}, "names no video; write " + line_form);
  return list;
}

std::string LabelCountHint(const ImageList& list, size_t entry) {
  const std::string& path = list.entries[entry].path;
  float number;
  const bool found =
      list.may_have_numbers && ParseFinite(std::string_view(path).substr(path.find_last_of(kBlanks) + 1), &number);
  return found ? "; label_count says how many numbers follow the path" : "";
}

AnnotatedImageList ReadAnnotatedImageList(const std::string& file, const std::string& root) {
  AnnotatedImageList list;
  list.images.file = file;
  list.images.root = AsRoot(root);
  const auto add = [&list](std::string image, std::string annotation, int number) {
    list.images.entries.push_back({std::move(image), 0, number});
    list.annotations.push_back(list.images.root + annotation);
  };
  ReadPairs(file, "image annotation", "the file with its objects", add, Lines::kOfAnnotatedImages);
  return list;
}

AnnotatedImageList ReadYoloImageList(const std::string& file, const std::string& root) {
  AnnotatedImageList list;
  list.images = ReadPaths(file, root, 0, Lines::kOfAnnotatedImages);
  for (size_t i = 0; i < list.images.entries.size(); ++i) {
    list.annotations.push_back(YoloLabelsOf(list.images.PathOf(i)));
  }
  return list;
}

DenseImageList ReadDenseImageList(const std::string& file, const std::string& root) {
  DenseImageList list;
  list.images.file = list.labels.file = file;
  list.images.root = list.labels.root = AsRoot(root);
  ReadPairs(file, "image label_image", "its label image", [&list](std::string image, std::string label, int number) {
    list.images.entries.push_back({std::move(image), 0, number});
    list.labels.entries.push_back({std::move(label), 0, number});
  });
  return list;
}

DenseImageList ReadImageSegList(const std::string& file, const std::string& root, ImageDataParameter::LabelType type,
                                int label_of_none) {
  if (type == ImageDataParameter::PIXEL) return ReadDenseImageList(file, root);
  DenseImageList list;
  if (type == ImageDataParameter::NONE) {
    list.images = ReadPaths(file, root, label_of_none);
    return list;
  }
  const std::string form = "one \"path label\" per line";
  list.images.file = file;
  list.images.root = AsRoot(root);
  ReadLines(file, "a list with " + form, [&](const std::string& line, int number) -> std::string {
    ImageList::Entry entry{"", 0, number};
    std::string problem = ParseLine(line, &entry);
    if (problem.empty() && (entry.label < 0 || entry.label > 255)) {
      problem = "the label " + std::to_string(entry.label) + " is not from 0 to 255, as those of pixels are";
    }
    if (!problem.empty()) return problem + "; where label images follow the paths set label_type: PIXEL";
    list.images.entries.push_back(std::move(entry));
    return {};
  });
  if (list.images.entries.empty()) throw UserError({file, 0, 0}, "names no image; write " + form);
  return list;
}

std::vector<std::string> LabelsOf(std::vector<std::string> lines, const std::string& file) {
  std::vector<std::string> labels;
  int empty = 0;  // the first line that is
  for (size_t i = 0; i < lines.size(); ++i) {
    std::string& line = lines[i];
    if (line != " ") TrimEnd(&line);
    if (line.empty()) {
      if (empty == 0) empty = static_cast<int>(i) + 1;
      continue;
    }
    if (empty > 0) {
      throw UserError({file, empty, 0},
                      "the line is empty, and names stand behind it; write one name per line, for each class");
    }
    labels.push_back(std::move(line));
  }
  if (labels.empty()) throw UserError({file, 0, 0}, "names no class; write one name per line");
  return labels;
}

std::vector<std::string> ReadLabels(const std::string& file) {
  TextFile text(file, "a list with the name of one class per line");
  std::vector<std::string> lines;
  for (std::string line; text.ReadLine(&line);) lines.push_back(line);
  return LabelsOf(std::move(lines), file);
}

}  // namespace crema
