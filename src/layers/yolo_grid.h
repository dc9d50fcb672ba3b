// What YOLO's layers share: the fields that say the anchors of a grid, and the shape of its predictions.
#ifndef CREMA_LAYERS_YOLO_GRID_H_
#define CREMA_LAYERS_YOLO_GRID_H_

#include <cstdint>
#include <string>
#include <vector>

#include "crema/layer.h"
#include "ops/detection/yolo.h"

namespace crema {

struct YoloFields {
  std::string block;    // name of the message that holds them
  std::string classes;  // name of the field with their number
  int64_t class_count;
  std::vector<float> biases;  // sides of all anchors
  std::vector<uint32_t> own;  // those of the grid's cells
  // What sides are counted in, by the cells of a side of the grid: pixels of the net's input, or 1 for cells.
  double units_per_cell = 1;
  float scale_x_y = 1;
  bool new_coords = false;
};

// The numbers of all anchors, of so many sides, from 0 on.
std::vector<uint32_t> AllAnchors(int sides);

// Of bottom i. Fails where they do not fit.
YoloGrid YoloGridOf(const LayerSetup& setup, int i, const YoloFields& fields);

// Of the bottoms of a layer that makes objects. Fails where they do not fit.
std::vector<YoloGrid> YoloGridsOf(const LayerSetup& setup, const Yolov3DetectionOutputParameter& param);
std::vector<YoloGrid> YoloGridsOf(const LayerSetup& setup, const YoloDetectionOutputParameter& param);

}  // namespace crema

#endif  // CREMA_LAYERS_YOLO_GRID_H_
