#include "inference/detection_drawer.h"

#include <filesystem>
#include <map>

#include "base/atomic_file.h"
#include "base/input_file.h"
#include "base/number_text.h"
#include "base/paths.h"
#include "crema/error.h"
#include "image/codec.h"
#include "image/draw.h"
#include "inference/prediction_writer.h"

namespace crema {

DetectionDrawer::DetectionDrawer(std::string folder, const ImageItems& items, const std::vector<std::string>& labels)
    : folder_(std::move(folder)), items_(items), labels_(labels) {
  std::map<std::string, uint64_t> images;  // by file
  for (uint64_t i = 0; i < items.count(); ++i) {
    const std::string file = FileOf(i);
    const auto [other, is_new] = images.emplace(file, i);
    if (!is_new) {
      throw UserError(Location{items.Name(i)}, "would be drawn as " + file + ", and so would " +
                                                   items.Name(other->second) +
                                                   "; give images of one name one after the other, to folders of their "
                                                   "own");
    }
    if (IsTaken(file)) {
      throw UserError(Location{file}, "is there already; remove it, or draw to another folder");
    }
  }
  MakeFolder(folder_);
}

std::string DetectionDrawer::FileOf(uint64_t index) const {
  return (std::filesystem::path(folder_) / std::filesystem::path(items_.Name(index)).stem()).string() + ".jpg";
}

void DetectionDrawer::Draw(const DetectedImage& detected) const {
  if (!detected.problem.empty()) return;
  Image image;
  const std::string problem = DecodeImage(ReadFileBytes(items_.Name(detected.index)), {}, &image);
  if (!problem.empty())
    throw EnvironmentError(items_.Name(detected.index) + ": has changed since it was read: " + problem);
  std::vector<DrawnBox> boxes;
  for (auto object = detected.objects.rbegin(); object != detected.objects.rend(); ++object) {  // the best on top
    boxes.push_back({object->xmin, object->ymin, object->xmax, object->ymax, object->label,
                     ClassName(labels_, object->label) + " " + FormatNumber(object->score, "%.2f")});
  }
  DrawBoxes(boxes, &image);
  const std::vector<uint8_t> bytes = EncodeJpeg(image);
  WriteWholeFile(FileOf(detected.index), {reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                 {.replace = false, .flush = false});
}

}  // namespace crema
