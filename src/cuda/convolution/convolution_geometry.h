// Where the pixels of a convolution lie, for kernels.
#ifndef CREMA_CUDA_CONVOLUTION_CONVOLUTION_GEOMETRY_H_
#define CREMA_CUDA_CONVOLUTION_CONVOLUTION_GEOMETRY_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "crema/tensor.h"
#include "ops/convolution/convolution.h"

namespace crema::cuda {

// How the pixels of source and destination belong to each other. Pixels and taps are numbered in C order.
struct ConvolutionGeometry {
  struct Axis {
    int32_t input, output, kernel, stride, pad, dilation;
  };
  int axes = 0;
  Axis axis[Shape::kMaxAxes] = {};

  // The source pixel that destination pixel `pixel` meets under `tap`, or -1 in the padding.
  __device__ int32_t SourcePixel(int32_t pixel, int32_t tap) const {
    int32_t at = 0, scale = 1;
    for (int i = axes - 1; i >= 0; --i) {
      const Axis& a = axis[i];
      const int32_t x = pixel % a.output * a.stride - a.pad + tap % a.kernel * a.dilation;
      if (x < 0 || x >= a.input) return -1;
      at += x * scale;
      scale *= a.input;
      pixel /= a.output;
      tap /= a.kernel;
    }
    return at;
  }

  // The destination pixel that meets source pixel `pixel` under `tap`, or -1 where there is none.
  __device__ int32_t DestinationPixel(int32_t pixel, int32_t tap) const {
    int32_t at = 0, scale = 1;
    for (int i = axes - 1; i >= 0; --i) {
      const Axis& a = axis[i];
      const int32_t x = pixel % a.input + a.pad - tap % a.kernel * a.dilation;
      if (x < 0 || x % a.stride != 0 || x / a.stride >= a.output) return -1;
      at += x / a.stride * scale;
      scale *= a.output;
      pixel /= a.input;
      tap /= a.kernel;
    }
    return at;
  }
};

// How a batch of images lies in memory: channel c of a pixel is at Pixel(image, pixel) + c * channel_stride().
struct ImageLayout {
  int64_t channels = 1, pixels = 1;
  bool channels_last = false;

  __host__ __device__ int64_t Pixel(int64_t image, int64_t pixel) const {
    return channels_last ? (image * pixels + pixel) * channels : image * channels * pixels + pixel;
  }
  __host__ __device__ int64_t channel_stride() const { return channels_last ? 1 : pixels; }
};

// All that kernels want to know of a problem.
struct ConvolutionSizes {
  // False where one plane has 2^31 pixels or more, with the padding.
  static bool Fits(const ConvolutionProblem& problem);
  explicit ConvolutionSizes(const ConvolutionProblem& problem);

  ConvolutionGeometry geometry;
  int64_t batch, groups;
  int32_t taps = 1;
  ImageLayout source, destination;
  int64_t group_channels, group_outputs;

  __host__ __device__ int64_t weights() const { return groups * group_outputs * group_channels * taps; }
};

}  // namespace crema::cuda

#endif  // CREMA_CUDA_CONVOLUTION_CONVOLUTION_GEOMETRY_H_
