// Blurred images.
#ifndef CREMA_DATA_TRANSFORMS_GAUSSIAN_BLUR_H_
#define CREMA_DATA_TRANSFORMS_GAUSSIAN_BLUR_H_

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "crema/data.pb.h"
#include "image/image.h"

namespace crema {

// The working memory of BlurGaussian, kept from call to call.
struct BlurBuffers {
  std::vector<uint32_t> weights, sums;
  std::vector<uint16_t> row;  // with what is mirrored on both sides
};

// `from`, of any number of channels, blurred by a Gaussian of that standard deviation, above 0, at most 32, that is cut
// off at three of them; beyond the border the image is mirrored about its outermost pixels, which are not repeated.
// Weights have 16 bits, so that results are the same bits on every CPU. `to` must not be `from`.
void BlurGaussian(const Image& from, double sigma, BlurBuffers* buffers, Image* to);

// gaussian_blur.
class GaussianBlur {
 public:
  static constexpr double kMostSigma = 32;

  explicit GaussianBlur(const GaussianBlurParameter& param)
      : probability_(param.probability()), min_sigma_(param.min_sigma()), max_sigma_(param.max_sigma()) {}

  // The standard deviation of an image's blur, from the numbers `first` and `first` + 1 of `random`; 0: none.
  double Draw(const RandomStream& random, uint64_t first) const {
    if (!(random.Uniform(first) < probability_)) return 0;
    return min_sigma_ + (max_sigma_ - min_sigma_) * random.Uniform(first + 1);
  }

 private:
  float probability_, min_sigma_, max_sigma_;
};

}  // namespace crema

#endif  // CREMA_DATA_TRANSFORMS_GAUSSIAN_BLUR_H_
