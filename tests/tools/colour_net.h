// A net that tells blue, green and red images apart, with images to run it over.
#ifndef CREMA_TESTS_TOOLS_COLOUR_NET_H_
#define CREMA_TESTS_TOOLS_COLOUR_NET_H_

#include <string>
#include <vector>

#include "image/image.h"
#include "tools/program.h"

namespace crema::testing_tools {

// One colour, but for the upper left pixel, which is black.
Image Coloured(int height, int width, int blue, int green, int red);
void WritePng(const ScratchFolder& folder, const std::string& name, const Image& image);
void WriteJpeg(const ScratchFolder& folder, const std::string& name, const Image& image);

// Writes deploy.prototxt (input 3x4x4 in batches of 2, values / 255; output "prob"), train_val.prototxt (the same with
// a Data layer on the database db in TEST, and without probabilities), net.caffemodel and labels.txt. The score of
// class c is four times the mean of channel c.
void WriteColourNet(const ScratchFolder& folder);

}  // namespace crema::testing_tools

#endif  // CREMA_TESTS_TOOLS_COLOUR_NET_H_
