#include "data/convert/convert_images.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "base/input_file.h"
#include "base/random.h"
#include "crema/error.h"
#include "data/databases/image_size.h"
#include "data/files/class_names.h"
#include "data/loaders/ordered_work.h"
#include "schema/wire_bytes.h"

namespace crema {

namespace {

// The working memory of one thread.
struct Workshop {
  Image decoded, padded, resized;
  ResizeBuffers buffers;
  Datum datum;
};

struct Record {
  std::string problem;  // empty where the image is whole
  std::string value;
  ImageSize size;
  std::vector<std::string> notes;
};

constexpr int64_t kMostNotes = 20;

struct Place {
  size_t entry = 0, part = 0;
  int64_t number = 0;  // within the part
};

std::vector<Place> PlacesOf(const ImageList& list, const ImageConversion& how, const DatasetTarget& target) {
  const size_t count = list.entries.size();
  std::vector<int> labels;
  for (const ImageList::Entry& entry : list.entries) labels.push_back(entry.label);
  const std::vector<int> part_of = SplitByClass(labels, target.parts, target.seed);
  std::vector<int64_t> numbers(target.parts.size(), 0);
  std::vector<Place> places;
  for (size_t i = 0; i < count; ++i) {
    const size_t entry = how.shuffle ? static_cast<size_t>(Permute(target.seed, 0, i, count)) : i;
    const auto part = static_cast<size_t>(part_of[entry]);
    places.push_back({entry, part, numbers[part]++});
  }
  return places;
}

bool Resizes(const ImageConversion& how) {
  return how.pad_height > 0 || how.resize_height > 0 || how.shorter_side > 0 || how.min_dim > 0 || how.max_dim > 0;
}

// As SSD's convert_annoset rounds it.
ImageExtent WithinBounds(const ImageExtent& from, const ImageConversion& how) {
  const auto shorter = static_cast<float>(std::min(from.height, from.width));
  const auto longer = static_cast<float>(std::max(from.height, from.width));
  float factor = 1;
  if (how.min_dim > 0) factor = std::max(1.0f, static_cast<float>(how.min_dim) / shorter);
  if (how.max_dim > 0 && static_cast<int>(factor * longer) > how.max_dim) {
    factor = static_cast<float>(how.max_dim) / longer;
  }
  const auto scaled = [factor](int side) {
    constexpr double kMost = std::numeric_limits<int>::max();
    return static_cast<int>(std::clamp(std::nearbyint(double{factor} * side), 1.0, kMost));
  };
  return {scaled(from.height), scaled(from.width)};
}

ImageExtent ExtentFor(const ImageExtent& from, const ImageConversion& how) {
  if (how.resize_height > 0) return {how.resize_height, how.resize_width};
  if (how.shorter_side > 0) return WithShorterSide(from.height, from.width, how.shorter_side);
  return WithinBounds(from, how);
}

// The image with black around it.
const Image& Padded(const ImageConversion& how, Workshop* shop) {
  const Image& from = shop->decoded;
  if (how.pad_height == 0) return from;
  Image& to = shop->padded;
  to.Resize(how.pad_height, how.pad_width, from.channels);
  std::fill_n(to.pixels.begin(), to.size(), uint8_t{0});
  for (int y = 0; y < from.height; ++y) std::copy_n(from.row(y), from.row_bytes(), to.row(y));
  return to;
}

// The image as it is to be stored; null, with a reason, where it cannot be.
const Image* Resized(const ImageConversion& how, Workshop* shop, std::string* problem) {
  const Image& from = Padded(how, shop);
  const ImageExtent extent = ExtentFor({from.height, from.width}, how);
  if (extent.height == from.height && extent.width == from.width) return &from;
  *problem = ResizeProblem({from.height, from.width}, extent);
  if (!problem->empty()) return nullptr;
  ResizeBilinear(from, extent.height, extent.width, &shop->buffers, &shop->resized);
  return &shop->resized;
}

// A size that is given too small is no matter of one image.
void CheckPadding(const ImageConversion& how, const Image& image, const std::string& named) {
  if (how.pad_height == 0 || (image.height <= how.pad_height && image.width <= how.pad_width)) return;
  throw UserError(named + " is " + std::to_string(image.width) + " x " + std::to_string(image.height) +
                  " pixels, larger than --pad_width=" + std::to_string(how.pad_width) +
                  " and --pad_height=" + std::to_string(how.pad_height) + "; raise them");
}

void Fill(const std::vector<uint8_t>& file, const std::string& named, const ImageConversion& how, Workshop* shop,
          Record* record) {
  const DecodeOptions options{how.gray ? DecodeOptions::Colors::kGray : DecodeOptions::Colors::kColor};
  record->problem = DecodeImage(file, options, &shop->decoded);
  if (!record->problem.empty()) return;
  CheckPadding(how, shop->decoded, named);
  const Image* const stored = Resized(how, shop, &record->problem);
  if (!stored) return;
  const Image& image = *stored;
  record->size = {image.channels, image.height, image.width};
  Datum& datum = shop->datum;
  datum.set_encoded(how.encoded);
  if (!how.encoded) {
    datum.set_channels(image.channels);
    datum.set_height(image.height);
    datum.set_width(image.width);
    datum.mutable_data()->resize(image.size());
    ToPlanes(image, reinterpret_cast<uint8_t*>(datum.mutable_data()->data()));
    return;
  }
  const ImageFormat format = how.format == ImageFormat::kUnknown ? FormatOf(file) : how.format;
  ImageInfo info;
  bool as_it_is = !Resizes(how) && format == FormatOf(file);
  if (as_it_is && how.gray) as_it_is = ReadImageInfo(file, &info).empty() && info.channels == 1;
  if (as_it_is) {
    datum.set_data(file.data(), file.size());
  } else {
    const std::vector<uint8_t> bytes = format == ImageFormat::kJpeg ? EncodeJpeg(image, how.quality) : EncodePng(image);
    datum.set_data(bytes.data(), bytes.size());
  }
}

void MakeRecord(const ImageList& list, size_t entry, const ImageConversion& how, const RecordForm* form, Workshop* shop,
                Record* record) {
  const std::string path = list.PathOf(entry);
  record->problem.clear();
  record->notes.clear();
  try {
    Fill(ReadFileBytes(path), list.Named(entry), how, shop, record);
    if (!record->problem.empty()) record->problem = list.Named(entry) + " " + record->problem;
  } catch (const EnvironmentError& error) {
    record->problem = error.what() + list.PlaceOf(entry);
  }
  if (!record->problem.empty()) return;
  if (list.label_count > 0) {
    const std::span<const float> numbers = list.NumbersOf(entry);
    shop->datum.mutable_labels()->Assign(numbers.begin(), numbers.end());
  } else {
    shop->datum.set_label(list.entries[entry].label);
  }
  if (form) {
    form->Write(entry, {shop->decoded.height, shop->decoded.width}, record->size, &shop->datum, &record->value,
                &record->notes);
  } else {
    record->value = WireBytes(shop->datum);
  }
}

void CheckOptions(const ImageConversion& how) {
  if ((how.pad_height > 0) != (how.pad_width > 0)) {
    throw UserError("--pad_height and --pad_width belong together; give both");
  }
  if ((how.resize_height > 0) != (how.resize_width > 0)) {
    throw UserError("--resize_height and --resize_width belong together; give both, or --shorter_side to keep the " +
                    std::string("proportions"));
  }
  if (how.resize_height > 0 && how.shorter_side > 0) {
    throw UserError("--shorter_side does not go together with --resize_height and --resize_width; leave out one");
  }
  if ((how.min_dim > 0 || how.max_dim > 0) && (how.resize_height > 0 || how.shorter_side > 0)) {
    throw UserError("--min_dim and --max_dim keep the proportions and do not go together with --resize_height and " +
                    std::string("--resize_width; leave out the ones or the others"));
  }
}

// Headings of the parts.
std::vector<std::string> PartNames(const DatasetTarget& target) {
  std::vector<std::string> names;
  for (const DatasetPart& part : target.parts) names.push_back(part.name.empty() ? "images" : part.name);
  return names;
}

void SayClasses(const ClassCounts& counts, ProgressLine* progress) {
  if (counts.names.empty()) return;
  progress->Say(CountsTable(counts));
  for (const auto& sentences : {LookAlikes(counts.names), MissingClasses(counts)}) {
    for (const std::string& sentence : sentences) progress->Say("warning: " + sentence);
  }
}

// Where nothing of it can be read.
std::string RemedyOf(const ImageList& list) {
  std::string remedy = LabelCountHint(list, 0);
  const std::string& first = list.entries[0].path;
  if (!remedy.empty() || access(list.PathOf(0).c_str(), F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR)) {
    return remedy;
  }
  if (first.find('\\') != std::string::npos) return "; write / instead of \\ in the paths, as in \"" + first + "\"";
  return "; there is no file \"" + list.PathOf(0) +
         "\": correct ROOTFOLDER, which stands before the paths, or the list";
}

}  // namespace

// Long ones are cut as Caffe's program does; the number tells records apart.
std::string ImageKey(int64_t place, size_t images, const std::string& path) {
  return (RecordKey(static_cast<uint64_t>(place), KeyDigits(images)) + "_" + path).substr(0, LmdbWriter::kMaxKeyBytes);
}

ImagesConverted ConvertImages(const ImageList& list, const ImageConversion& how, const DatasetTarget& target,
                              ProgressLine* progress, RecordForm* form) {
  CheckOptions(how);
  const std::vector<Place> places = PlacesOf(list, how, target);
  DatasetWriter writer(target, list.labels);
  const int threads = WorkThreads(how.threads);
  std::vector<Workshop> shops(static_cast<size_t>(threads));
  ImagesConverted done;
  ImageSize first_size;
  std::string first_path;
  int64_t notes = 0, unnamed = 0;
  ClassCounts counts(list.labels, PartNames(target));
  std::vector<int> written;  // their classes, in the order of the records
  progress->SetTotal(static_cast<int64_t>(places.size()));
  WorkInOrder<Record>(
      static_cast<int64_t>(places.size()), threads,
      [&](int64_t i, int thread, Record* record) {
        MakeRecord(list, places[static_cast<size_t>(i)].entry, how, form, &shops[static_cast<size_t>(thread)], record);
      },
      [&](int64_t i, const Record& record) {
        const Place& place = places[static_cast<size_t>(i)];
        if (!record.problem.empty()) {
          if (how.broken == ImageConversion::Broken::kFail) {
            throw UserError(record.problem + "; nothing was written (--broken=skip leaves such images out)");
          }
          // All are named, but not those of a list that is wrong as a whole.
          if (done.broken++ < kMostNotes || done.records > 0) {
            progress->Say("left out: " + record.problem);
          } else {
            ++unnamed;
          }
          progress->Add(1, 0);
          return;
        }
        for (const std::string& note : record.notes) {
          if (notes++ < kMostNotes) progress->Say(note);
        }
        const std::string& path = list.entries[place.entry].path;
        if (how.check_size && done.records > 0 && record.size != first_size) {
          throw UserError(list.Named(place.entry) + " has " + record.size.ToString() + " values, but \"" + first_path +
                          "\" has " + first_size.ToString() + how.size_remedy);
        }
        const int label = list.entries[place.entry].label;
        if (list.label_count == 0) written.push_back(label);
        if (!list.labels.empty()) ++counts.counts[static_cast<size_t>(label)][place.part];
        if (done.records++ == 0) {
          first_size = record.size;
          first_path = path;
        }
        writer.Put(place.part, ImageKey(place.number, places.size(), path), record.value);
        progress->Add(1, static_cast<int64_t>(record.value.size()));
      });
  if (done.records == 0) {
    throw UserError("none of the " + std::to_string(places.size()) + " images can be read" + RemedyOf(list));
  }
  writer.Commit(form ? form->Finish() : std::function<void()>());
  if (unnamed > 0) progress->Say("left out: " + std::to_string(unnamed) + " more before the first that can be read");
  if (notes > kMostNotes) progress->Say("... and " + std::to_string(notes - kMostNotes) + " more such notes");
  SayClasses(counts, progress);
  if (LieInOrder(written)) {
    progress->Say(
        "note: the records lie in the order of their classes, in which nets learn nothing; to train with "
        "them pass --shuffle, or set shuffle: true in the Data layer");
  }
  progress->Say(writer.Summary() + progress->Summary());
  return done;
}

}  // namespace crema
