#include "data/databases/inspect_database.h"

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <vector>

#include "base/byte_size.h"
#include "base/number_text.h"
#include "crema/error.h"
#include "data/databases/record_image.h"
#include "data/loaders/ordered_work.h"
#include "image/codec.h"

namespace crema {

namespace {

constexpr int64_t kReadAtOnce = 256;  // records
constexpr size_t kMostShown = 20;
constexpr size_t kMostRows = 1000;

std::string FormatName(const DatumView& datum) {
  if (!datum.encoded) return datum.bytes() ? "bytes" : "floats";
  const ImageFormat format = FormatOf(datum.data);
  return format == ImageFormat::kUnknown ? "unreadable" : NameOf(format);
}

std::string ShapeOf(const DatumView& datum) {
  if (!datum.encoded) return datum.size.ToString();
  ImageInfo info;
  if (!ReadImageInfo(datum.data, &info).empty()) return "unreadable";
  return ImageSize{info.channels, info.height, info.width}.ToString();
}

// The most frequent first.
template <typename Name>
std::vector<std::pair<Name, int64_t>> ByCount(const std::map<Name, int64_t>& counts) {
  std::vector<std::pair<Name, int64_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return sorted;
}

std::string CountsText(const std::map<std::string, int64_t>& counts) {
  std::string text;
  size_t shown = 0;
  for (const auto& [name, count] : ByCount(counts)) {
    if (shown++ == kMostShown) return text + ", and " + std::to_string(counts.size() - kMostShown) + " others";
    text += (text.empty() ? "" : ", ") + name + (counts.size() == 1 ? "" : " (" + std::to_string(count) + ")");
  }
  return text;
}

// Of records from 0 on; of objects from 1 on, as 0 is the background.
void DescribeLabels(const std::map<int, int64_t>& labels, bool of_objects, const std::vector<std::string>& names,
                    std::ostream& out) {
  const int lowest = labels.begin()->first, highest = labels.rbegin()->first;
  out << "labels: " << lowest << " to " << highest << ", " << labels.size() << " different\n";
  std::string missing;
  int64_t missing_count = 0;
  for (int64_t label = std::min(of_objects ? 1 : 0, lowest), shown = 0; label <= highest && missing_count <= 1000;
       ++label) {
    if (labels.contains(static_cast<int>(label))) continue;
    ++missing_count;
    if (shown++ < static_cast<int64_t>(kMostShown)) missing += (missing.empty() ? "" : ", ") + std::to_string(label);
  }
  if (missing_count > 0) {
    out << "labels without " << (of_objects ? "an object: " : "a record: ") << missing
        << (missing_count > static_cast<int64_t>(kMostShown) ? ", ..." : "") << "\n";
  }
  size_t shown = 0;
  for (const auto& [label, count] : labels) {
    if (shown++ == kMostRows) {
      out << "  ... and " << labels.size() - kMostRows << " others\n";
      return;
    }
    char line[48];
    std::snprintf(line, sizeof line, "  %5d  %9lld", label, static_cast<long long>(count));
    out << line;
    if (label >= 0 && static_cast<size_t>(label) < names.size()) out << "  " << names[static_cast<size_t>(label)];
    out << "\n";
  }
}

// Each on a line, with the name of what it says of an image.
void DescribeRanges(const DatabaseInfo& info, const std::vector<std::string>& names, std::ostream& out) {
  out << "labels of a record: " << CountsText(info.label_counts) << "\n";
  for (size_t i = 0; i < info.label_ranges.size(); ++i) {
    if (i == kMostRows) {
      out << "  ... and " << info.label_ranges.size() - i << " others\n";
      return;
    }
    const LabelRange& range = info.label_ranges[i];
    char number[24];
    std::snprintf(number, sizeof number, "  %5zu  ", i);
    out << number << FormatNumber(range.lowest) << " to " << FormatNumber(range.highest) << ", mean "
        << FormatNumber(range.sum / static_cast<double>(range.count));
    if (i < names.size()) out << "  " << names[i];
    out << "\n";
  }
}

void CountLabels(const DatumView& datum, RecordImage* record, DatabaseInfo* info) {
  const size_t count = datum.label_count;
  ++info->label_counts[std::to_string(count)];
  record->labels.resize(count);
  datum.CopyLabels(record->labels.data());
  if (info->label_ranges.size() < count) info->label_ranges.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const float label = record->labels[i];
    info->label_ranges[i].Add({label, label, label, 1});
  }
}

// Of the first object that has one; empty where none has.
std::string MistakeIn(const std::vector<BoxedObject>& objects) {
  for (const BoxedObject& object : objects) {
    if (const std::optional<std::string> mistake = MistakeOf(object)) return "has " + *mistake;
  }
  return {};
}

}  // namespace

void LabelRange::Add(const LabelRange& other) {
  lowest = std::min(lowest, other.lowest);
  highest = std::max(highest, other.highest);
  sum += other.sum;
  count += other.count;
}

void CountRecord(std::span<const std::byte> bytes, RecordImage* record, DatabaseInfo* info) {
  ++info->records;
  info->bytes += static_cast<int64_t>(bytes.size());
  if (!ReadRecordFields(bytes, record).empty()) {
    ++info->foreign;
    ++info->formats["unreadable"];
    ++info->shapes["unreadable"];
    return;
  }
  ++info->formats[FormatName(record->datum)];
  ++info->shapes[ShapeOf(record->datum)];
  if (record->annotated.datum.empty()) {
    if (record->datum.label_count > 0) {
      CountLabels(record->datum, record, info);
    } else {
      ++info->labels[record->datum.label];
    }
    return;
  }
  const std::vector<BoxedObject>& objects = record->annotated.objects;
  ++info->annotated;
  info->objects += static_cast<int64_t>(objects.size());
  info->most_objects = std::max(info->most_objects, static_cast<int64_t>(objects.size()));
  for (const BoxedObject& object : objects) {
    ++info->labels[object.label];
    info->difficult += object.difficult;
    info->not_learnt += MistakeOf(object).has_value();
  }
}

DatabaseInfo InspectDatabase(const RecordSource& source, int threads, ProgressLine* progress) {
  const auto count = static_cast<int64_t>(source.count());
  progress->SetTotal(count);
  DatabaseInfo info;
  WorkInOrder<DatabaseInfo>((count + kReadAtOnce - 1) / kReadAtOnce, WorkThreads(threads),
                            [&](int64_t chunk, int, DatabaseInfo* part) {
                              *part = {};
                              RecordImage record;
                              for (int64_t i = chunk * kReadAtOnce; i < std::min(count, (chunk + 1) * kReadAtOnce);
                                   ++i) {
                                CountRecord(source.Peek(static_cast<uint64_t>(i)), &record, part);
                              }
                            },
                            [&](int64_t, const DatabaseInfo& part) {
                              info.records += part.records;
                              info.bytes += part.bytes;
                              for (const auto& [name, n] : part.shapes) info.shapes[name] += n;
                              for (const auto& [name, n] : part.formats) info.formats[name] += n;
                              for (const auto& [label, n] : part.labels) info.labels[label] += n;
                              for (const auto& [count, n] : part.label_counts) info.label_counts[count] += n;
                              if (info.label_ranges.size() < part.label_ranges.size()) {
                                info.label_ranges.resize(part.label_ranges.size());
                              }
                              for (size_t k = 0; k < part.label_ranges.size(); ++k) {
                                info.label_ranges[k].Add(part.label_ranges[k]);
                              }
                              info.foreign += part.foreign;
                              info.annotated += part.annotated;
                              info.objects += part.objects;
                              info.most_objects = std::max(info.most_objects, part.most_objects);
                              info.difficult += part.difficult;
                              info.not_learnt += part.not_learnt;
                              progress->Add(part.records, part.bytes);
                            });
  info.first_key = source.Key(0);
  info.last_key = source.Key(source.count() - 1);
  return info;
}

std::string DescribeDatabase(const std::string& path, const DatabaseInfo& info, const std::vector<std::string>& names) {
  std::ostringstream out;
  out << "database: " << path << "\nrecords: " << info.records
      << "\nbytes: " << FormatBytes(static_cast<size_t>(info.bytes)) << " ("
      << FormatBytes(static_cast<size_t>(info.bytes / std::max<int64_t>(1, info.records)))
      << " a record)\nstored as: " << CountsText(info.formats) << "\nshapes: " << CountsText(info.shapes)
      << "\nfirst key: " << info.first_key << "\nlast key: " << info.last_key << "\n";
  if (info.annotated > 0) {
    out << "objects: " << info.objects << ", at most " << info.most_objects << " of a record, " << info.difficult
        << " difficult\n";
    if (info.not_learnt > 0) {
      out << "objects that cannot be learnt: " << info.not_learnt
          << ", whose boxes have no area, lie beside the image or are not finite; db_tool verify names them\n";
    }
  }
  if (!info.label_counts.empty()) DescribeRanges(info, names, out);
  if (!info.labels.empty()) DescribeLabels(info.labels, info.annotated > 0, names, out);
  return out.str();
}

std::string SummarizeDatabase(const std::string& path, const DatabaseInfo& info) {
  std::string text = path + ": " + std::to_string(info.records) + " records, stored as " + CountsText(info.formats) +
                     ", of " + CountsText(info.shapes);
  if (!info.label_counts.empty()) text += ", labels of a record: " + CountsText(info.label_counts);
  if (!info.labels.empty()) {
    text +=
        ", labels " + std::to_string(info.labels.begin()->first) + " to " + std::to_string(info.labels.rbegin()->first);
  }
  return text;
}

BrokenRecords VerifyDatabase(const RecordSource& source, int threads, ProgressLine* progress) {
  struct Part {
    int64_t records = 0, bytes = 0, broken = 0;
    std::vector<std::pair<uint64_t, std::string>> first;
  };
  constexpr int64_t kDecodedChunk = 16;
  const auto count = static_cast<int64_t>(source.count());
  progress->SetTotal(count);
  threads = WorkThreads(threads);
  std::vector<RecordImage> images(static_cast<size_t>(threads));
  RecordImage first;
  const bool labels_known = ReadRecordFields(source.Read(0), &first).empty();
  const size_t labels = first.datum.label_count;
  BrokenRecords broken;
  WorkInOrder<Part>((count + kDecodedChunk - 1) / kDecodedChunk, threads,
                    [&](int64_t chunk, int thread, Part* part) {
                      *part = {};
                      for (int64_t i = chunk * kDecodedChunk; i < std::min(count, (chunk + 1) * kDecodedChunk); ++i) {
                        const std::span<const std::byte> record = source.Read(static_cast<uint64_t>(i));
                        ++part->records;
                        part->bytes += static_cast<int64_t>(record.size());
                        RecordImage& image = images[static_cast<size_t>(thread)];
                        std::string problem = ReadRecordImage(record, &image);
                        if (problem.empty() && labels_known) problem = ReadRecordLabels(labels, &image);
                        if (problem.empty()) problem = MistakeIn(image.annotated.objects);
                        if (problem.empty()) continue;
                        ++part->broken;
                        part->first.emplace_back(i, std::move(problem));
                      }
                    },
                    [&](int64_t, const Part& part) {
                      for (const auto& [i, problem] : part.first) {
                        if (broken.first.size() == kMostShown) break;
                        broken.first.push_back(DescribeRecord(source, i) + " " + problem);
                      }
                      broken.count += part.broken;
                      progress->Add(part.records, part.bytes);
                    });
  return broken;
}

std::string DescribeFields(const RecordSource& source, uint64_t i) {
  constexpr int64_t kValues = 12;
  std::ostringstream out;
  out << "record " << i << "\n  key: " << source.Key(i) << "\n";
  RecordImage image;
  const std::string problem = ReadRecordImage(source.Read(i), &image);
  const DatumView& datum = image.datum;
  if (datum.size.channels != 0 || datum.size.height != 0 || datum.size.width != 0) {
    out << "  channels: " << datum.size.channels << "\n  height: " << datum.size.height
        << "\n  width: " << datum.size.width << "\n";
  }
  if (image.annotated.datum.empty() && datum.label_count == 0) out << "  label: " << datum.label << "\n";
  if (image.annotated.datum.empty() && datum.label_count > 0) {
    image.labels.resize(datum.label_count);
    datum.CopyLabels(image.labels.data());
    out << "  labels: " << LabelsText(image.labels) << "\n";
  }
  for (const BoxedObject& object : image.annotated.objects) {
    out << "  object: label " << object.label << " instance " << object.instance << " box " << object.box.xmin << " "
        << object.box.ymin << " " << object.box.xmax << " " << object.box.ymax
        << (object.difficult ? " difficult\n" : "\n");
  }
  if (!datum.data.empty()) out << "  data: " << datum.data.size() << " bytes\n";
  if (datum.float_count > 0) out << "  float_data: " << datum.float_count << " values\n";
  if (datum.encoded) out << "  encoded: true, " << FormatName(datum) << "\n";
  if (!problem.empty()) {
    out << "  broken: " << problem << "\n";
    return out.str();
  }
  if (datum.encoded) out << "  decoded: " << image.size.ToString() << "\n";
  out << "  values:";
  const int64_t count = image.size.count();
  for (int64_t k = 0; k < std::min(count, kValues); ++k) {
    out << " ";
    if (image.bytes.empty()) {
      out << image.floats[static_cast<size_t>(k)];
    } else {
      out << static_cast<int>(image.bytes[static_cast<size_t>(k)]);
    }
  }
  out << (count > kValues ? " ...\n" : "\n");
  return out.str();
}

uint64_t FindKey(const RecordSource& source, const std::string& key) {
  uint64_t found = 0;
  bool exists = false;
  source.VisitKeys([&](uint64_t i, const std::string& other) {
    exists = other == key;
    found = i;
    return !exists;
  });
  if (!exists) {
    throw UserError("\"" + source.path() + "\" holds no record \"" + key + "\"; its keys go from \"" + source.Key(0) +
                    "\" to \"" + source.Key(source.count() - 1) + "\"");
  }
  return found;
}

}  // namespace crema
