// Boxes with a line of text drawn into images, for people to look at.
#ifndef CREMA_IMAGE_DRAW_H_
#define CREMA_IMAGE_DRAW_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "image/image.h"

namespace crema {

struct DrawnBox {
  // Pixels from the image's left upper corner; what lies beyond the image is cut off.
  float xmin = 0, ymin = 0, xmax = 0, ymax = 0;
  int kind = 0;      // boxes of one kind have one colour
  std::string text;  // UTF-8; characters other than ASCII's are drawn as "?". Empty: none is drawn
};

// Blue, green, red: bright, and for up to some twenty kinds easily told apart.
std::array<uint8_t, 3> ColorOfKind(int kind);

// Draws them one after the other, so that the last one lies on top, each with its text above it, or within where it
// touches the upper border. Lines and letters grow with the image, which is grey or has 3 channels, and has 3 then.
void DrawBoxes(std::span<const DrawnBox> boxes, Image* image);

// The seven rows of a letter of five pixels' width, the highest of five bits on the left. Any byte has one; all but
// printable ASCII that of "?".
std::span<const uint8_t, 7> RowsOfLetter(char letter);

}  // namespace crema

#endif  // CREMA_IMAGE_DRAW_H_
