// DetectNet's images and labels while it is trained: images that are changed at random (colours, flip, size, rotation,
// cut), and what a grid of cells over each should predict of the objects, which move along. As in NVIDIA's fork of
// Caffe, version 0.17. f32.
#ifndef CREMA_OPS_DETECTION_DETECTNET_TRANSFORM_H_
#define CREMA_OPS_DETECTION_DETECTNET_TRANSFORM_H_

#include <cstdint>

#include "base/multiversion.h"
#include "base/random.h"

namespace crema {

struct DetectNetTransform {
  static constexpr int64_t kChannels = 3;  // blue, green, red

  int64_t images = 0, height = 1, width = 1;  // what comes
  int64_t out_height = 1, out_width = 1;      // what the net takes
  // Whether images change at random; if not they are stretched to the net's size, and nothing below counts but the
  // mean.
  bool changes = false;
  float hue_probability = 0, most_hue = 0;  // degrees
  float desaturation_probability = 0, most_desaturation = 0;
  float flip_probability = 0;
  float scale_probability = 0, least_scale = 1, most_scale = 1;
  float rotation_probability = 0, most_rotation = 0;  // degrees
  float crop_probability = 0;
  int64_t shift_x = 0, shift_y = 0;
  // Subtracted from each channel where there is no mean image, while colours have changed and nothing has moved.
  float mean[kChannels] = {0, 0, 0};

  CREMA_HOST_DEVICE int64_t plane() const { return height * width; }
  CREMA_HOST_DEVICE int64_t out_plane() const { return out_height * out_width; }
};

// What was drawn for an image.
struct alignas(16) DetectNetChange {
  float hue, saturation;                   // degrees that are added, what saturation is multiplied by
  int32_t recolors, flips, scales, turns;  // 0 or 1
  int32_t height, width;                   // after scaling
  int32_t top, left;                       // of the part that the net gets, in what rotation leaves
  // Places before rotation (x, y) by those after it, and the reverse: a x + b y + c, two rows.
  float before[6], after[6];
};

// A pure function of the stream and the image's place.
void DrawDetectNetChanges(const DetectNetTransform& problem, const RandomStream& random, DetectNetChange* changes);
// New colours, less the mean. `mean`: null, or channels x height x width. y may be x. Threaded.
void ChangeDetectNetColors(const DetectNetTransform& problem, const DetectNetChange* changes, const float* mean,
                           const float* x, float* y);
// Images of the net's size; 0 beside what there is. Sizes change by bicubic interpolation (Keys, 1981, with a = -0.75,
// borders repeated), rotation is bilinear. Threaded.
void PlaceDetectNetImages(const DetectNetTransform& problem, const DetectNetChange* changes, const float* x, float* y);

// What the grid should predict.
struct DetectNetLabels {
  static constexpr int64_t kNumbers = 16;     // of a row of objects
  static constexpr int64_t kBoxChannels = 8;  // those before the classes

  int64_t rows = 1;               // of an image, the first of which counts the others that are objects
  int64_t height = 1, width = 1;  // of the grid
  int64_t classes = 1;
  int64_t known = 1;  // classes of the database below this may have a place
  float stride = 1;
  float scale = 1;            // sides of the covered region, in those of the object
  float least = 0, most = 0;  // bounds of them in pixels: `least` where `grows`, elsewise `most`
  bool grows = false;
  float least_norm = 0;
  bool clips = false;  // boxes, at the image's borders

  CREMA_HOST_DEVICE int64_t cells() const { return height * width; }
  CREMA_HOST_DEVICE int64_t channels() const { return kBoxChannels + classes; }
};

// images x channels x height x width: 1 where an object covers the cell, its left, upper, right and lower side from the
// cell's corner, 1 / width, 1 / height, the area of a cell divided by that of its covered region, and 1 at its class.
// Later objects lie over earlier ones. `place_of`: for each known class its place, or -1. Objects must be good
// (FindBadDetectNetObject). Threaded.
void MakeDetectNetLabels(const DetectNetTransform& problem, const DetectNetLabels& labels,
                         const DetectNetChange* changes, const int32_t* place_of, const float* objects, float* y);
// The position of the first number that cannot be used, -1 when all are fine.
int64_t FindBadDetectNetObject(const DetectNetTransform& problem, const DetectNetLabels& labels, const float* objects);

}  // namespace crema

#endif  // CREMA_OPS_DETECTION_DETECTNET_TRANSFORM_H_
