// Anchors like the objects of a database, for the layers of YOLO: clusters of the objects' sides by how much they
// overlap (Redmon and Farhadi, "YOLO9000: Better, Faster, Stronger", 2017, section 2, "Dimension Clusters").
#ifndef CREMA_DATA_TRANSFORMS_ANCHORS_H_
#define CREMA_DATA_TRANSFORMS_ANCHORS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "data/databases/record_source.h"
#include "image/resize.h"

namespace crema {

struct BoxSides {
  float width = 0, height = 0;
};

struct ObjectSides {
  std::vector<BoxSides> sides;  // in pixels of the net's input; boxes end at the image's border
  int64_t left_out = 0;         // objects that cannot be learnt (MistakeOf)
};

// Of all objects of a database of AnnotatedDatums, whose images the net sees at `input`: whatever their proportions, or
// keeping them within a border, as resize_mode FIT_LARGE_SIZE_AND_PAD does. Throws UserError, naming the record, where
// one is no AnnotatedDatum or, with `keeps_proportions`, its image cannot be read.
ObjectSides SidesOfObjects(const RecordSource& source, const ImageExtent& input, bool keeps_proportions);

// Intersection by union of two boxes with one centre.
float OverlapOfSides(const BoxSides& a, const BoxSides& b);
// The mean over objects of the overlap with the anchor that fits best, from 0 to 1. Neither may be empty.
double MeanOverlap(std::span<const BoxSides> objects, std::span<const BoxSides> anchors);

// `count` anchors, the smallest area first, the best of several starts of k-means; the same ones each time. Of very
// many objects a part is looked at. Throws UserError where fewer than `count` sizes differ.
std::vector<BoxSides> FindAnchors(std::span<const BoxSides> objects, int count);

}  // namespace crema

#endif  // CREMA_DATA_TRANSFORMS_ANCHORS_H_
