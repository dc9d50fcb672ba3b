// Normalisation of each record by itself: to mean 0 and deviation 1 (Caffe's MVN), or to length 1 (Liu, Rabinovich and
// Berg, "ParseNet: Looking Wider to See Better", 2015). Tensors are plain f32 in CPU memory. Sums are accumulated in
// double, in an order that does not depend on the number of threads. All functions run on the threads of OpenMP and
// allocate nothing.
#ifndef CREMA_OPS_NORMALIZATION_NORMALIZATION_H_
#define CREMA_OPS_NORMALIZATION_NORMALIZATION_H_

#include <cstdint>

namespace crema {

// A tensor seen as rows that have a mean and a deviation each.
struct MvnProblem {
  int64_t rows = 1, width = 1;
  bool divide = true;  // by deviation + eps
  float eps = 1e-9f;
};

// y = (x - mean) * inverse, inverse[row] = 1 / (deviation + eps), 1 where nothing is divided. Only what is at `inverse`
// may be read by MvnBackward; null: nobody will. y may be x.
void MvnForward(const MvnProblem& problem, const float* x, float* y, float* inverse);
// dx = (dy - mean of dy - y * mean of dy * y) * inverse, which is the derivative as long as eps is small beside the
// deviation; without division dx = dy - mean of dy, and y and inverse are not read. dx may be dy.
void MvnBackward(const MvnProblem& problem, const float* y, const float* inverse, const float* dy, float* dx);

// A tensor seen as images x channels x pixels, whose vectors get a length.
struct NormalizeProblem {
  int64_t images = 1, channels = 1, pixels = 1;
  bool whole = true;   // a vector is a whole image; else the channels of one pixel
  bool shared = true;  // one scale for all channels; else one for each
  float eps = 1e-10f;
  bool absolute = false;  // lengths are sums of sizes, not roots of sums of squares

  int64_t count() const { return images * channels * pixels; }
  int64_t vectors() const { return whole ? images : images * pixels; }
  int64_t scales() const { return shared ? 1 : channels; }
  // The same in the least extents: a pixel alone is a whole image, and with one scale an image is one channel.
  NormalizeProblem Simplest() const {
    NormalizeProblem same = *this;
    same.whole = whole || pixels == 1;
    if (!same.whole || !shared) return same;
    same.pixels = channels * pixels;
    same.channels = 1;
    return same;
  }
};

// y = scale[c] * x * inverse, inverse[vector] = 1 / sqrt(the sum of x^2 + eps), or 1 / (the sum of |x| + eps); it may
// be null where nobody reads it. y may be x.
void NormalizeForward(const NormalizeProblem& problem, const float* x, const float* scale, float* y, float* inverse);
// dx = inverse * (scale[c] * dy - x * inverse^2 * the sum of scale * x * dy over the vector), or, of sums of sizes,
// inverse * (scale[c] * dy - sign of x * inverse * that sum); scale_gradient[c] = the sum of dy * x * inverse. Either
// may be null; dx may be dy.
void NormalizeBackward(const NormalizeProblem& problem, const float* x, const float* scale, const float* inverse,
                       const float* dy, float* dx, float* scale_gradient);

}  // namespace crema

#endif  // CREMA_OPS_NORMALIZATION_NORMALIZATION_H_
