// The objects that DetectNet's grid of cells tells of, and how many of them are right, as the layers in Python of
// NVIDIA's fork of Caffe find them. f32.
#ifndef CREMA_OPS_DETECTION_DETECTNET_BOXES_H_
#define CREMA_OPS_DETECTION_DETECTNET_BOXES_H_

#include <cstddef>
#include <cstdint>

#include "base/multiversion.h"

namespace crema {

// One class of a grid. `coverage` has all classes, images x classes x height x width; `boxes` are the left, upper,
// right and lower side from each cell's corner, images x 4 x height x width. Rows of objects are left, upper, right,
// lower side and confidence.
struct DetectNetGrid {
  static constexpr int64_t kNumbers = 5;

  int64_t images = 0, classes = 1, height = 1, width = 1;
  int64_t which = 0;              // class
  int64_t rows = 1, columns = 1;  // of the grid that are looked at, from the upper left cell on
  float stride = 1;               // pixels
  int64_t objects = 1;            // rows of an image that are written

  CREMA_HOST_DEVICE int64_t cells() const { return rows * columns; }
};

// How boxes become objects: OpenCV's groupRectangles. Boxes are rounded to whole pixels; those of which each side
// differs by no more than `similarity` times the mean of the smaller width and the smaller height belong together, and
// so do boxes that a third one belongs to. Of each group with more than `least` boxes the mean is an object, unless it
// lies within that of a group of more boxes. least 0: every box is an object.
struct DetectNetGrouping {
  float coverage = 0;  // cells below it do not count
  int64_t least = 0;
  float similarity = 0;
  int64_t height = 0;  // objects that are lower are left out
};

size_t DetectNetGroupWorkspace(const DetectNetGrid& grid);
// The objects of each image, by the first cell of each; their confidence is the logarithm of the number of boxes. Where
// there are more than grid.objects those of most boxes. Rows of 0 behind them. Threaded.
void GroupDetectNetBoxes(const DetectNetGrid& grid, const DetectNetGrouping& grouping, const float* coverage,
                         const float* boxes, float* objects, std::byte* workspace);
// The boxes of cells with coverage above 0, each once: those that differ from an earlier one by less than 1/64 pixel in
// each side are the same. grid.objects must be grid.cells(). Threaded.
void ListDetectNetBoxes(const DetectNetGrid& grid, const float* coverage, const float* boxes, float* objects,
                        std::byte* workspace);

struct DetectNetScoring {
  static constexpr float kLeastOverlap = 0.7f;  // intersection by union of a found object and a true one

  int64_t images = 0;
  int64_t truths = 1, found = 1;  // rows of an image, of DetectNetGrid::kNumbers; rows with a box of 0 are none

  CREMA_HOST_DEVICE int64_t rows() const { return truths + found; }
};

size_t DetectNetScoreWorkspace(const DetectNetScoring& scoring);
// images x (truths + found) x 5: boxes and what they are: 1 found and right, 2 found and wrong, 3 a true object that
// was not found; in this order, and rows of 0 behind them. Each true object takes the first found one that overlaps it
// and is not taken. Threaded.
void ScoreDetectNetBoxes(const DetectNetScoring& scoring, const float* truths, const float* found, float* scored,
                         std::byte* workspace);

// In percent, of all rows: precision (right by found), recall (right by true objects), and what the fork calls mAP,
// their product; 0 where there is nothing to divide by.
struct DetectNetMeasures {
  float *product, *precision, *recall;
};
void MeasureDetectNetBoxes(int64_t rows, const float* scored, const DetectNetMeasures& measures);

}  // namespace crema

#endif  // CREMA_OPS_DETECTION_DETECTNET_BOXES_H_
