// Sections that tell of objects: [yolo] (YOLOv3 and v4) and [region] (YOLOv2).
#include <numeric>

#include "darknet/section_table.h"

namespace crema::darknet {

namespace {

constexpr int64_t kMostAnchors = 32, kMostClasses = 1 << 20;

// classes, num and anchors, of which Darknet takes the first `num`.
Grid ReadGrid(SectionReader& section) {
  Settings& settings = section.settings();
  Grid grid;
  grid.where = settings.where();
  grid.classes = settings.Int("classes", 20, 1, kMostClasses);
  const int64_t count = settings.Int("num", 1, 1, kMostAnchors);
  grid.anchors = settings.Numbers("anchors");
  const auto sides = static_cast<size_t>(2 * count);
  if (grid.anchors.size() < sides) {
    settings.Refuse("anchors", "anchors must be width and height of each of num=" + std::to_string(count) +
                                   " anchors, but are " + std::to_string(grid.anchors.size()) + " numbers");
  }
  grid.anchors.resize(sides, 1);
  grid.mask.resize(static_cast<size_t>(count));
  std::iota(grid.mask.begin(), grid.mask.end(), 0);
  return grid;
}

// The predictions, of which there must be 5 + classes for each anchor.
void ReadPredictions(SectionReader& section, Grid* grid) {
  const Value input = section.AsImage(grid->new_coords ? section.InputBeforeLogistic() : section.Input());
  const int64_t numbers = static_cast<int64_t>(grid->mask.size()) * (5 + grid->classes);
  if (input.shape[1] != numbers) {
    section.Refuse("reads " + std::to_string(input.shape[1]) + " channels, but " + std::to_string(grid->mask.size()) +
                   " anchors and " + std::to_string(grid->classes) + " classes want " + std::to_string(numbers) +
                   ": correct filters of the section before");
  }
  grid->blob = input.blob;
  const Shape &cells = input.shape, &net = section.net_input().shape;
  grid->pixels = net[3] / cells[3];
  if (grid->pixels * cells[3] != net[3] || grid->pixels * cells[2] != net[2]) {
    section.Refuse("its " + std::to_string(cells[2]) + " x " + std::to_string(cells[3]) +
                   " cells do not divide the net's input, " + std::to_string(net[2]) + " x " + std::to_string(net[3]) +
                   ", into squares; make height and width in [net] multiples of 32, say");
  }
}

void Yolo(SectionReader& section) {
  Settings& settings = section.settings();
  Grid grid = ReadGrid(section);
  const auto all = static_cast<int64_t>(grid.mask.size());
  if (settings.has("mask")) grid.mask = settings.Ints("mask");
  for (const int64_t anchor : grid.mask) {
    if (anchor >= 0 && anchor < all) continue;
    settings.Refuse("mask", "mask names anchor " + std::to_string(anchor) + "; those of num=" + std::to_string(all) +
                                " are 0 to " + std::to_string(all - 1));
  }
  grid.scale_x_y = settings.Number("scale_x_y", 1);
  if (!(grid.scale_x_y >= 1)) settings.Refuse("scale_x_y", "scale_x_y must be 1 or more");
  grid.new_coords = settings.Int("new_coords", 0, 0, 1) != 0;
  const std::string suppression = settings.Word("nms_kind", "default");
  if (suppression == "diounms" || suppression == "cornersnms") {
    section.Note("nms_kind", "nms_kind=" + suppression +
                                 ": Yolov3DetectionOutput leaves out objects by their overlap alone (greedynms)");
  }
  grid.name = section.name();
  section.ReadYoloLearning(&grid);
  ReadPredictions(section, &grid);
  section.AddYolo(std::move(grid));
  section.End();
}

void Region(SectionReader& section) {
  Settings& settings = section.settings();
  Grid grid = ReadGrid(section);
  settings.Only("coords", 4, "boxes of more numbers");
  settings.Only("background", 0, "a background among the classes");
  settings.Never("tree", "a hierarchy of classes");
  if (settings.Int("classfix", 0, -1, 2) < 0) {
    settings.Refuse("classfix",
                    "classfix=-1 (objects below 0.5 do not count) is not possible; crema detect has "
                    "--threshold");
  }
  if (settings.Int("softmax", 0, 0, 1) == 0) {
    settings.Refuse("softmax", "only softmax=1 is possible: classes that exclude each other");
  }
  grid.name = section.name();
  section.ReadRegionLearning(&grid);
  ReadPredictions(section, &grid);
  section.AddRegion(std::move(grid));
  section.End();
}

}  // namespace

std::vector<SectionKind> DetectionSections() { return {{{"yolo"}, "yolo", Yolo}, {{"region"}, "region", Region}}; }

}  // namespace crema::darknet
