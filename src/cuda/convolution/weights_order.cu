#include "cuda/arrays/numbers.h"
#include "cuda/convolution/weights_order.h"

namespace crema::cuda {

namespace {

// to[outer][i][k] = from[outer][k][i]: neighbouring threads write neighbours; what they read lies close together.
template <typename From, typename To>
struct Transpose {
  int64_t columns, rows;  // of one matrix of `to`
  const From* from;
  To* to;

  __device__ void operator()(int64_t at) const {
    const int64_t column = at % columns, rest = at / columns;
    const int64_t row = rest % rows, outer = rest / rows;
    to[at] = To(static_cast<float>(from[(outer * columns + column) * rows + row]));
  }
};

}  // namespace

void ToChannelsLast(const Queue& queue, const WeightsExtents& e, const float* from, DType dtype, void* to) {
  WithNumber(dtype, [&]<typename Number>(Number*) {
    ForEach(queue, e.count(), Transpose<float, Number>{e.channels, e.taps, from, static_cast<Number*>(to)});
  });
}

void FromChannelsLast(const Queue& queue, const WeightsExtents& e, DType dtype, const void* from, float* to) {
  WithNumber(dtype, [&]<typename Number>(Number*) {
    ForEach(queue, e.count(), Transpose<Number, float>{e.taps, e.channels, static_cast<const Number*>(from), to});
  });
}

}  // namespace crema::cuda
