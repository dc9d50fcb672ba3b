// How well the classes of pixels are told: counts of pixels by class, and the measures that are made of them. f32.
#ifndef CREMA_OPS_LOSSES_SEGMENTATION_H_
#define CREMA_OPS_LOSSES_SEGMENTATION_H_

#include <cstddef>
#include <cstdint>

#include "base/multiversion.h"
#include "ops/losses/softmax.h"

namespace crema {

// A whole number below 2^48 as two floats, both of which hold theirs exactly; all bits are zero where it is 0.
struct PixelCount {
  float high, low;

  CREMA_HOST_DEVICE uint64_t number() const {
    return static_cast<uint64_t>(high) << kBits | static_cast<uint64_t>(low);
  }
  CREMA_HOST_DEVICE static PixelCount Of(uint64_t number) {
    return {static_cast<float>(number >> kBits), static_cast<float>(number & ((uint64_t{1} << kBits) - 1))};
  }

 private:
  static constexpr int kBits = 24;
};

// Pixels that are of a class by their label and told to be of it, those of that label, and those told to be of it.
struct ClassPixels {
  PixelCount right, labelled, told;
};

// The class that is told at a position is the one of the highest score, the first of equal ones; of a single score it
// is 1 above 0.5, else 0. Where a score is a NaN none is.
struct PixelCounting {
  ClassAxis axis;  // of the scores
  LabelRule rule;

  CREMA_HOST_DEVICE int64_t classes() const { return axis.classes == 1 ? 2 : axis.classes; }
  size_t workspace() const { return static_cast<size_t>(3 * classes()) * sizeof(uint64_t); }
};

// after = before + the pixels of these scores and labels, for each of counting.classes(). Labels must be good
// (FindBadLabel). before: null for zeros; after may be before. workspace: aligned to 8 bytes.
void CountPixels(const PixelCounting& counting, const float* scores, const float* label, const ClassPixels* before,
                 ClassPixels* after, std::byte* workspace);

// Three numbers each.
// Of all pixels the share that is right; the mean of that share over the classes that occur; the mean of intersection
// by union over the classes that occur or are told. 0 where there is nothing to divide by.
void MeasureSegmentation(int64_t classes, const ClassPixels* pixels, float* measures);
// Of one class: precision, recall and intersection by union. 0 where there is nothing to divide by.
void MeasureClass(const ClassPixels* pixels, float* measures);

namespace segmentation {

CREMA_HOST_DEVICE inline double Share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

CREMA_HOST_DEVICE inline uint64_t Union(const ClassPixels& pixels) {
  return pixels.labelled.number() + pixels.told.number() - pixels.right.number();
}

CREMA_HOST_DEVICE inline void MeasureAll(int64_t classes, const ClassPixels* pixels, float* measures) {
  uint64_t right = 0, labelled = 0, occur = 0, seen = 0;
  double recalls = 0, overlaps = 0;
  for (int64_t c = 0; c < classes; ++c) {
    const uint64_t of_right = pixels[c].right.number(), of_label = pixels[c].labelled.number();
    right += of_right;
    labelled += of_label;
    recalls += Share(of_right, of_label);
    overlaps += Share(of_right, Union(pixels[c]));
    occur += of_label > 0 ? 1 : 0;
    seen += Union(pixels[c]) > 0 ? 1 : 0;
  }
  measures[0] = static_cast<float>(Share(right, labelled));
  measures[1] = static_cast<float>(occur > 0 ? recalls / static_cast<double>(occur) : 0.0);
  measures[2] = static_cast<float>(seen > 0 ? overlaps / static_cast<double>(seen) : 0.0);
}

CREMA_HOST_DEVICE inline void MeasureOne(const ClassPixels& pixels, float* measures) {
  const uint64_t right = pixels.right.number();
  measures[0] = static_cast<float>(Share(right, pixels.told.number()));
  measures[1] = static_cast<float>(Share(right, pixels.labelled.number()));
  measures[2] = static_cast<float>(Share(right, Union(pixels)));
}

// The sum of what was counted before and `pixels` more.
CREMA_HOST_DEVICE inline PixelCount Add(const PixelCount* before, uint64_t pixels) {
  return PixelCount::Of((before ? before->number() : 0) + pixels);
}

}  // namespace segmentation

}  // namespace crema

#endif  // CREMA_OPS_LOSSES_SEGMENTATION_H_
