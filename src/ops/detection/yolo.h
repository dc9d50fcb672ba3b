// YOLO's predictions: what cells of a grid say of boxes that begin from anchors, what objects want them to say, and the
// boxes that they are (Redmon and Farhadi, "YOLO9000: Better, Faster, Stronger", 2017, and "YOLOv3: An Incremental
// Improvement", 2018). Plain f32 in CPU memory.
#ifndef CREMA_OPS_DETECTION_YOLO_H_
#define CREMA_OPS_DETECTION_YOLO_H_

#include <cstddef>
#include <cstdint>

#include "ops/detection/object_rows.h"

namespace crema {

// A grid of predictions: images x (anchors x (kOfBox + classes)) x height x width. The numbers of a prediction are x,
// y, width, height, how surely there is an object, and one for each class; all before a sigmoid but width and height,
// which are logarithms of shares of the anchor where they are not squared.
struct YoloGrid {
  static constexpr int kMostAnchors = 32;
  static constexpr int64_t kOfBox = 5;

  int64_t images = 1, classes = 1, height = 1, width = 1;
  int32_t anchors = 1;      // of each cell
  int32_t all_anchors = 1;  // of all grids of the net
  // Sides of all anchors, in shares of the image, and which ones the cells have.
  float anchor_width[kMostAnchors] = {}, anchor_height[kMostAnchors] = {};
  int32_t own[kMostAnchors] = {};
  // The sigmoid's range 0 to 1 is stretched to this length about the middle of the cell (YOLOv4's scale_x_y).
  float centre_range = 1;
  // Sides are (2 sigmoid)^2 of the anchor's (Scaled-YOLOv4).
  bool squared_sides = false;

  int64_t cells() const { return height * width; }
  int64_t numbers() const { return kOfBox + classes; }
  int64_t of_image() const { return anchors * cells(); }  // predictions
};

// How a box is wrong: by the squares of its four numbers' differences, or by 1 - its overlap with the object's (Yu et
// al., "UnitBox", 2016), generalized (Rezatofighi et al., 2019), with the distance of the centres, and with the
// proportions of the sides, too (Zheng et al., "Distance-IoU Loss", 2020).
enum class YoloBoxLoss { kSquares, kOverlap, kGeneralized, kDistance, kComplete };

struct YoloLoss {
  YoloGrid grid;
  int64_t objects = 0;  // rows
  // A prediction that overlaps an object by more than this may say that there is one.
  float ignore_above = 0.5f;
  // Besides the anchor that overlaps an object most, of equals the first, those that do so by more than this learn it,
  // where it is below 1.
  float match_above = 0.5f;
  float object_scale = 1, nothing_scale = 1, class_scale = 1;
  float box_scale = 1;  // kSquares: times 2 - the object's share of the image
  YoloBoxLoss box_loss = YoloBoxLoss::kSquares;
  float overlap_scale = 1, most_delta = 1;  // the other box losses: their factor, and the bound of their gradients
  // Classes are wanted to be 1 - smoothing / 2 and smoothing / 2.
  float smoothing = 0;
  // Classes exclude each other: a Softmax over them, instead of a sigmoid of each.
  bool softmax = false;
  // Of several objects at one prediction: the mean of their boxes, or the last one's.
  bool averages = true;
  // Of these all classes, or the last one's alone.
  bool joins_classes = true;
  // Gradients of centres and objectness, and those of classes, go through the sigmoids, as those of squares do;
  // otherwise they are those of cross entropies.
  bool through_sigmoid = false, classes_through_sigmoid = false;
  // The anchor that overlaps an object most is told by the sides that the object's cell predicts for each, instead of
  // its own. All anchors are then of this grid, in their order.
  bool matches_predicted = false;
  // Where there is an object, objectness is wanted to be the overlap of the predicted box with it, instead of 1.
  bool rescores = false;
  // In so many passes predictions that learn no object are drawn to the middles of their cells and to their anchors, by
  // this factor.
  uint64_t anchor_passes = 0;
  float anchor_scale = 0.01f;

  // Rows of classes from 1 on.
  ObjectRows rows() const { return {objects, grid.images, grid.classes + 1, 0}; }
};

// pass: counted from 0. gradient: as the predictions, of all of it divided by the number of images. losses: what each
// prediction adds to the loss, images x anchors x cells: the squares of what it is wrong by, and of boxes that kSquares
// does not count overlap_scale * (1 - overlap). Threaded; allocates nothing.
void LearnYolo(const YoloLoss& loss, uint64_t pass, const float* predictions, const float* objects, float* gradient,
               float* losses);

// Boxes of all grids of a net, `all` of an image, of which one's predictions begin at number `first`.
struct YoloBoxes {
  int64_t first = 0, all = 1;
  bool softmax = false;     // over classes, instead of a sigmoid of each
  bool each_class = false;  // scores of all classes
  float* corners;           // images x all x 4, in shares of the image
  // images x all: of the likeliest class, times how surely there is an object; each_class: images x all x (1 +
  // classes), of which those of the background are not written.
  float* scores;
  float* labels;  // images x all: that class, counted from 1; not each_class
};

// Threaded; allocates nothing.
void DecodeYolo(const YoloGrid& grid, const float* predictions, const YoloBoxes& boxes);

}  // namespace crema

#endif  // CREMA_OPS_DETECTION_YOLO_H_
