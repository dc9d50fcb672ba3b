#include "data/convert/convert_annotated.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <utility>

#include "base/input_file.h"
#include "base/number_text.h"
#include "crema/annotation.pb.h"
#include "crema/error.h"
#include "data/files/annotation_file.h"
#include "image/codec.h"
#include "schema/wire_bytes.h"

namespace crema {

namespace {

std::string SizeText(const ImageExtent& size) {
  return std::to_string(size.width) + " x " + std::to_string(size.height) + " pixels";
}

// What corners are counted in.
struct Frame {
  float width, height;
  bool in_shares = false;
  std::string size = {};  // as a part of a sentence; empty for shares
};

class AnnotatedForm : public RecordForm {
 public:
  AnnotatedForm(const AnnotatedImageList& list, const AnnotatedConversion& how) : list_(list), how_(how) {}

  void Write(size_t i, const ImageExtent& file, const ImageSize& stored, Datum* datum, std::string* value,
             std::vector<std::string>* notes) const override {
    // SSD asks for the extents of compressed images, too.
    datum->set_channels(stored.channels);
    datum->set_height(stored.height);
    datum->set_width(stored.width);
    datum->set_label(-1);
    AnnotatedDatum record;
    record.set_type(AnnotatedDatum::BBOX);
    Annotate(i, file, &record, notes);
    record.mutable_datum()->Swap(datum);
    *value = WireBytes(record);
    record.mutable_datum()->Swap(datum);
  }

  void Count(AnnotationsConverted* done) const {
    done->objects = objects_;
    done->clipped = clipped_;
    done->empty = empty_;
    done->other_sizes = other_sizes_;
    done->turned = turned_;
    done->missing = missing_;
    done->bare = bare_;
    done->tiny = tiny_;
  }

 private:
  void Annotate(size_t i, const ImageExtent& image, AnnotatedDatum* record, std::vector<std::string>* notes) const {
    const std::string& path = list_.annotations[i];
    std::error_code error;
    const std::filesystem::file_status status = std::filesystem::status(path, error);
    if (!std::filesystem::exists(status)) {
      if (!std::filesystem::status_known(status)) {
        throw EnvironmentError("cannot look for \"" + path + "\": " + error.message());
      }
      ++missing_;
      notes->push_back("\"" + path + "\" does not exist: its image is written without objects");
      return;
    }
    AnnotationFile file = Read(path);
    if (file.objects.empty()) ++bare_;
    ImageExtent size = image;
    TurnBoxes(i, image, &file, notes);
    if (file.image.height > 0 && file.image.width > 0) size = file.image;
    if (size.height != image.height || size.width != image.width) {
      ++other_sizes_;
      notes->push_back(path + ": says that the image is " + SizeText(size) + ", but it is " + SizeText(image) +
                       "; boxes are taken as parts of the former");
    }
    const Frame frame = file.in_shares ? Frame{1, 1, true}
                                       : Frame{static_cast<float>(size.width), static_cast<float>(size.height), false,
                                               ", which is " + SizeText(size)};
    for (const AnnotatedObject& object : file.objects) Add(path, object, frame, record, notes);
  }

  // Programs that do not read Exif's orientation count corners in the image as it is stored, and say its extents.
  void TurnBoxes(size_t i, const ImageExtent& image, AnnotationFile* file, std::vector<std::string>* notes) const {
    if (image.height == image.width || file->image.height != image.width || file->image.width != image.height) return;
    ImageInfo info;
    if (!ReadImageInfo(ReadFileBytes(list_.images.PathOf(i)), &info).empty() || info.orientation <= 4) return;
    ++turned_;
    notes->push_back(file->path + ": says that the image is " + SizeText(file->image) + ", as it is stored; Exif's " +
                     "orientation, " + std::to_string(info.orientation) + ", turns it to " + SizeText(image) +
                     ", and the boxes with it");
    file->image = image;
    for (AnnotatedObject& object : file->objects) {
      for (const auto& [x, y] : {std::pair(&object.xmin, &object.ymin), std::pair(&object.xmax, &object.ymax)}) {
        TurnPointUpright(info.orientation, static_cast<float>(image.height), static_cast<float>(image.width), x, y);
      }
      // A box that ends before it begins stays one.
      if (info.orientation == 6 || info.orientation == 7) std::swap(object.xmin, object.xmax);
      if (info.orientation == 7 || info.orientation == 8) std::swap(object.ymin, object.ymax);
    }
  }

  AnnotationFile Read(const std::string& path) const {
    if (how_.format == AnnotatedConversion::Format::kVoc) return ReadVocAnnotation(path, *how_.labels);
    const bool is_yolo = how_.format == AnnotatedConversion::Format::kYolo;
    AnnotationFile file = is_yolo ? ReadYoloAnnotation(path) : ReadTextAnnotation(path);
    if (!how_.labels) return file;
    for (const AnnotatedObject& object : file.objects) {
      const auto& known = how_.labels->label_of;
      if (std::any_of(known.begin(), known.end(), [&](const auto& entry) { return entry.second == object.label; })) {
        continue;
      }
      const std::string what = is_yolo ? "class " + std::to_string(object.label - 1) + " has label " : "label ";
      throw UserError({path, object.line, 0}, what + std::to_string(object.label) + (is_yolo ? ", which" : "") +
                                                  " is not in \"" + how_.labels->path +
                                                  "\"; add it there, or correct it here");
    }
    return file;
  }

  void Add(const std::string& path, const AnnotatedObject& object, const Frame& frame, AnnotatedDatum* record,
           std::vector<std::string>* notes) const {
    const float width = frame.width, height = frame.height;
    const float xmin = std::clamp(object.xmin, 0.0f, width), xmax = std::clamp(object.xmax, 0.0f, width);
    const float ymin = std::clamp(object.ymin, 0.0f, height), ymax = std::clamp(object.ymax, 0.0f, height);
    const auto note = [&](const std::string& what) {
      std::string corners;
      for (const float corner : {object.xmin, object.ymin, object.xmax, object.ymax}) {
        corners += (corners.empty() ? "" : " ") + FormatNumber(corner);
      }
      const std::string name = object.name.empty() ? std::to_string(object.label) : "\"" + object.name + "\"";
      notes->push_back(Location{path, object.line, 0}.ToString() + ": the box " + corners + " of class " + name + what);
    };
    if (!(xmin < xmax && ymin < ymax)) {
      ++empty_;
      return note(object.xmin < object.xmax && object.ymin < object.ymax
                      ? " lies outside of the image" + frame.size + "; it is left out"
                      : " is empty; it is left out");
    }
    // Middles and extents are written with some six digits.
    const float rounding = frame.in_shares ? 1e-5f : 0;
    if (std::max({xmin - object.xmin, object.xmax - xmax, ymin - object.ymin, object.ymax - ymax}) > rounding) {
      ++clipped_;
      note(" reaches over the border of the image" + frame.size + "; it is cut off there");
    }
    if (!frame.in_shares && xmax <= 1 && ymax <= 1 && (width > 1 || height > 1)) {
      ++tiny_;
      note(" is no larger than a pixel; corners are pixels, not shares of the image");
    }
    ++objects_;
    Annotation* annotation = AnnotationFor(object.label, record);
    NormalizedBBox* box = annotation->mutable_bbox();
    box->set_xmin(xmin / width);
    box->set_ymin(ymin / height);
    box->set_xmax(xmax / width);
    box->set_ymax(ymax / height);
    box->set_difficult(object.difficult);
  }

  static Annotation* AnnotationFor(int label, AnnotatedDatum* record) {
    AnnotationGroup* group = nullptr;
    for (AnnotationGroup& other : *record->mutable_annotation_group()) {
      if (other.group_label() == label) group = &other;
    }
    if (!group) {
      group = record->add_annotation_group();
      group->set_group_label(label);
    }
    Annotation* annotation = group->add_annotation();
    annotation->set_instance_id(group->annotation_size() - 1);
    return annotation;
  }

  const AnnotatedImageList& list_;
  const AnnotatedConversion& how_;
  mutable std::atomic<int64_t> objects_ = 0, clipped_ = 0, empty_ = 0, other_sizes_ = 0, missing_ = 0, bare_ = 0,
                               tiny_ = 0, turned_ = 0;
};

// Where none is there, all of them are looked for at a wrong place.
void RequireAnnotations(const AnnotatedImageList& list, AnnotatedConversion::Format format) {
  const size_t count = list.annotations.size();
  for (size_t i = 0; i < count; ++i) {
    std::error_code error;
    if (std::filesystem::exists(list.annotations[i], error) || error) return;
  }
  throw UserError("none of the files of annotations exists (" + std::to_string(count) +
                  " in the list, the first is \"" + list.annotations[0] + "\"); correct ROOTFOLDER, or " +
                  (format == AnnotatedConversion::Format::kYolo
                       ? "put them beside the images, or into a folder \"labels\" beside that called \"images\""
                       : "the folder and extension of the second path in each line of the list"));
}

}  // namespace

AnnotationsConverted ConvertAnnotated(const AnnotatedImageList& list, const AnnotatedConversion& how,
                                      const DatasetTarget& target, ProgressLine* progress) {
  if (how.format == AnnotatedConversion::Format::kVoc && !how.labels) {
    throw UserError("XML names classes, so their numbers must be given: add --label_map_file=FILE");
  }
  RequireAnnotations(list, how.format);
  AnnotatedForm form(list, how);
  AnnotationsConverted done;
  done.images = ConvertImages(list.images, how.images, target, progress, &form);
  form.Count(&done);
  return done;
}

}  // namespace crema
