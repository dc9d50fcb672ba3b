#include "data/databases/export_database.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>

#include "base/atomic_file.h"
#include "base/output_path.h"
#include "base/paths.h"
#include "crema/error.h"
#include "data/databases/record_image.h"
#include "data/loaders/ordered_work.h"
#include "image/codec.h"
#include "image/draw.h"

namespace crema {

namespace {

namespace fs = std::filesystem;

struct ImageFile {
  std::string problem;
  std::vector<uint8_t> bytes;
  const char* extension = "png";
  int label = 0;
  bool annotated = false;
  std::string labels;  // for the list
};

std::string NameOf(int label, const std::vector<std::string>& names) {
  return label >= 0 && static_cast<size_t>(label) < names.size() ? names[static_cast<size_t>(label)]
                                                                 : std::to_string(label);
}

void DrawObjects(const std::vector<BoxedObject>& objects, const std::vector<std::string>& names, Image* image) {
  const auto width = static_cast<float>(image->width), height = static_cast<float>(image->height);
  std::vector<DrawnBox> boxes;
  for (const BoxedObject& object : objects) {
    const ObjectBox& box = object.box;
    boxes.push_back({box.xmin * width, box.ymin * height, box.xmax * width, box.ymax * height, object.label,
                     NameOf(object.label, names) + (object.difficult ? " (difficult)" : "")});
  }
  DrawBoxes(boxes, image);
}

void MakeFile(std::span<const std::byte> record, size_t labels, const DatabaseExport& how, RecordImage* image,
              ImageFile* file) {
  file->problem = ReadRecordImage(record, image);
  if (file->problem.empty()) file->problem = ReadRecordLabels(labels, image);
  if (!file->problem.empty()) return;
  file->label = image->datum.label;
  file->annotated = !image->annotated.datum.empty();
  const bool drawn = how.draw && file->annotated;
  if (labels > 0) file->labels = LabelsText(image->labels);
  if (image->datum.encoded && !drawn) {
    file->bytes.assign(image->datum.data.begin(), image->datum.data.end());
    file->extension = EndingOf(FormatOf(file->bytes));
    return;
  }
  if (image->bytes.empty()) {
    file->problem = "holds floats, not the bytes of an image";
    return;
  }
  if (image->size.channels != 1 && image->size.channels != 3) {
    file->problem = "has " + std::to_string(image->size.channels) + " channels; images have 1 or 3";
    return;
  }
  FromPlanes(image->bytes.data(), image->size.channels, image->size.height, image->size.width, &image->decoded);
  if (drawn) DrawObjects(image->annotated.objects, how.labels, &image->decoded);
  file->bytes = drawn ? EncodeJpeg(image->decoded) : EncodePng(image->decoded);
  file->extension = drawn ? "jpg" : "png";
}

std::string FolderOf(int label, const std::vector<std::string>& names) {
  std::string name = NameOf(label, names);
  std::replace(name.begin(), name.end(), '/', '_');
  return name.starts_with(".") ? "_" + name : name;
}

// The classes by their folders; each needs one of its own.
std::map<std::string, size_t> NamedFolders(const std::vector<std::string>& names) {
  std::map<std::string, size_t> classes;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string folder = FolderOf(static_cast<int>(i), names);
    const auto [other, is_new] = classes.emplace(folder, i);
    if (is_new) continue;
    throw UserError("--labels: classes " + std::to_string(other->second) + " and " + std::to_string(i) +
                    " would both lie in the folder \"" + folder + "\"; give each a name of its own");
  }
  return classes;
}

// Of the first record; 0 where it has a class, or objects.
size_t LabelsOf(const RecordSource& source, const DatabaseExport& how) {
  RecordImage first;
  if (!ReadRecordFields(source.Read(0), &first).empty() || !first.annotated.datum.empty()) return 0;
  const size_t labels = first.datum.label_count;
  if (labels > 0 && !how.labels.empty()) {
    throw UserError("--labels names classes, but the records of \"" + source.path() + "\" have none, they have " +
                    std::to_string(labels) + " labels; leave it out");
  }
  return labels;
}

}  // namespace

int64_t ExportDatabase(const RecordSource& source, const DatabaseExport& how, ProgressLine* progress) {
  RefuseOutputInInputs(how.folder, {source.path()});
  auto count = static_cast<int64_t>(source.count());
  if (how.limit > 0) count = std::min(count, how.limit);
  progress->SetTotal(count);
  const int threads = WorkThreads(how.threads);
  std::vector<RecordImage> images(static_cast<size_t>(threads));
  std::set<std::string> folders;
  if (how.draw && !HoldsAnnotated(source)) {
    throw UserError("\"" + source.path() +
                    "\" holds no objects to draw, its records have labels only; leave out --draw");
  }
  const size_t labels = LabelsOf(source, how);
  const std::map<std::string, size_t> named =
      HoldsAnnotated(source) ? std::map<std::string, size_t>() : NamedFolders(how.labels);
  std::string list;
  WorkInOrder<ImageFile>(
      count, threads,
      [&](int64_t i, int thread, ImageFile* file) {
        MakeFile(source.Read(static_cast<uint64_t>(i)), labels, how, &images[static_cast<size_t>(thread)], file);
      },
      [&](int64_t i, const ImageFile& file) {
        if (!file.problem.empty()) RejectRecord(source, static_cast<uint64_t>(i), file.problem);
        const bool in_classes = !file.annotated && labels == 0;
        const std::string of_class = in_classes ? FolderOf(file.label, how.labels) : "";
        if (const auto other = named.find(of_class);
            other != named.end() && static_cast<int64_t>(other->second) != file.label) {
          RejectRecord(source, static_cast<uint64_t>(i),
                       "has the label " + of_class + ", which --labels does not name, and would lie in the folder of " +
                           "class " + std::to_string(other->second) + ", whose name is that number; name all classes");
        }
        const std::string folder = in_classes ? how.folder + "/" + of_class : how.folder;
        if (folders.insert(folder).second) MakeFolder(folder);
        char name[32];
        std::snprintf(name, sizeof name, "/%08lld.%s", static_cast<long long>(i), file.extension);
        const std::string_view bytes(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
        WriteWholeFile(folder + name, bytes, {.replace = false, .flush = false});
        if (labels > 0) list += std::string(name + 1) + " " + file.labels + "\n";
        progress->Add(1, static_cast<int64_t>(file.bytes.size()));
      });
  if (labels > 0) WriteWholeFile(how.folder + "/list.txt", list, {.replace = false});
  SyncFiles(how.folder);
  return count;
}

}  // namespace crema
