#include "data/transforms/channel_histograms.h"

#include <cstddef>

namespace crema {

void ChannelHistograms::Add(const uint8_t* pixels, int count) {
  int x = 0;
  if (channels_ == 3) {
    for (; x + 1 < count; x += 2, pixels += 6) {
      for (size_t c = 0; c < 3; ++c) {
        ++even_[c][pixels[c]];
        ++odd_[c][pixels[3 + c]];
      }
    }
    for (size_t c = 0; c < 3 && x < count; ++c) ++even_[c][pixels[c]];
    return;
  }
  for (; x + 1 < count; x += 2, pixels += 2) {
    ++even_[0][pixels[0]];
    ++odd_[0][pixels[1]];
  }
  if (x < count) ++even_[0][pixels[0]];
}

const std::array<ByteHistogram, 3>& ChannelHistograms::Sum() {
  for (size_t c = 0; c < even_.size(); ++c) {
    for (size_t value = 0; value < 256; ++value) even_[c][value] += odd_[c][value];
  }
  return even_;
}

}  // namespace crema
