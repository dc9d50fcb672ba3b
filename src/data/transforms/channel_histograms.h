// How often each value of each channel is there.
#ifndef CREMA_DATA_TRANSFORMS_CHANNEL_HISTOGRAMS_H_
#define CREMA_DATA_TRANSFORMS_CHANNEL_HISTOGRAMS_H_

#include <array>
#include <cstdint>

namespace crema {

using ByteHistogram = std::array<uint32_t, 256>;

// Of rows of pixels that have one or three channels.
class ChannelHistograms {
 public:
  explicit ChannelHistograms(int channels) : channels_(channels) {}

  void Add(const uint8_t* pixels, int count);
  // All that was added; call it once.
  const std::array<ByteHistogram, 3>& Sum();

 private:
  int channels_;
  // Neighbours are often equal: counted in the same place, each would wait for the one before.
  std::array<ByteHistogram, 3> even_{}, odd_{};
};

}  // namespace crema

#endif  // CREMA_DATA_TRANSFORMS_CHANNEL_HISTOGRAMS_H_
