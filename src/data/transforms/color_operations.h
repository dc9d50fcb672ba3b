// Changes of an image's colours that policies draw from, in the arithmetic of Pillow's ImageEnhance and ImageOps, which
// torchvision takes.
#ifndef CREMA_DATA_TRANSFORMS_COLOR_OPERATIONS_H_
#define CREMA_DATA_TRANSFORMS_COLOR_OPERATIONS_H_

#include "data/transforms/seen_image.h"

namespace crema {

// All are of images with one or three channels. Each value v becomes d + (v - d) * factor, rounded down and cut off at
// 0 and 255, where d is:
void ChangeBrightness(double factor, SeenImage* seen);  // 0
void ChangeContrast(double factor, SeenImage* seen);    // the mean luminance, rounded
void ChangeColor(double factor, SeenImage* seen);       // the pixel's luminance; grey images stay as they are
// The mean of the pixel, counted five times, and its neighbours; the outermost pixels of the image stay as they are.
void ChangeSharpness(double factor, SeenImage* seen);

// Keeps the highest bits, 1 to 8, of each value.
void Posterize(int bits, SeenImage* seen);
// v becomes 255 - v from `threshold` on.
void Solarize(int threshold, SeenImage* seen);
// Stretches the values of each channel to 0 to 255.
void AutoContrast(SeenImage* seen);
// Spreads the values of each channel so that all are about as frequent.
void Equalize(SeenImage* seen);

}  // namespace crema

#endif  // CREMA_DATA_TRANSFORMS_COLOR_OPERATIONS_H_
