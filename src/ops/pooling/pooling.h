// Pooling over windows of the last two axes (in either layout of the images), or of the last three, those of volumes,
// with Caffe's rules for borders and ties.
// f32 or, where channels come last and the method is not kStochastic, bf16: sums are then taken in f32 and rounded
// once.
#ifndef CREMA_OPS_POOLING_POOLING_H_
#define CREMA_OPS_POOLING_POOLING_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/multiversion.h"
#include "base/random.h"
#include "crema/tensor.h"
#include "ops/kernel_choice.h"

namespace crema {

enum class PoolingMethod {
  // The first maximum in the order of memory of a plain plane wins a tie, and alone gets the gradient. Of a window that
  // holds a NaN any
  // element may be taken.
  kMax,
  kAverage,  // divides by the window's size clipped to the padded input
  kSum,
  // Zeiler and Fergus, "Stochastic pooling for regularization of deep convolutional neural networks" (ICLR 2013), for
  // non-negative inputs: draws an element with probability proportional to its value, or, when not training, weighs by
  // it.
  kStochastic,
};

struct PoolingWindow {
  int64_t kernel = 1, stride = 1, pad = 0;
};

struct PoolingProblem {
  PoolingMethod method = PoolingMethod::kMax;
  Layout layout = Layout::kPlain;  // of source and destination, their gradients and indices
  DType dtype = DType::kF32;       // of source and destination and their gradients
  int64_t batch = 1, channels = 1;
  int64_t input_depth = 1, input_height = 1, input_width = 1;  // depth: of volumes, 1 in images
  PoolingWindow depth = {}, vertical, horizontal;
  int64_t output_depth = 1, output_height = 1, output_width = 1;
  bool training = false;  // kStochastic draws
  bool backward = false;  // Backward will be called

  // Whether what is made of a window is its sum, divided or not.
  bool sums() const { return method == PoolingMethod::kAverage || method == PoolingMethod::kSum; }
  // Whether there is a third axis to pool over; images are a slice that is its own window.
  bool volume() const { return input_depth > 1 || output_depth > 1 || depth.kernel > 1; }
  // A plane is all that one channel of one item holds: an image's pixels, or all slices of a volume.
  int64_t planes() const { return batch * channels; }
  int64_t input_plane() const { return input_depth * input_height * input_width; }
  int64_t output_plane() const { return output_depth * output_height * output_width; }
  int64_t inputs() const { return planes() * input_plane(); }
  int64_t outputs() const { return planes() * output_plane(); }
};

// A window along one axis: where it begins and ends in the input, and its extent clipped to the padded input.
struct WindowRange {
  int64_t begin, end, padded;
};
CREMA_HOST_DEVICE inline WindowRange RangeOf(int64_t extent, const PoolingWindow& window, int64_t i) {
  const int64_t start = i * window.stride - window.pad, stop = start + window.kernel, edge = extent + window.pad;
  const int64_t begin = start < 0 ? 0 : start < extent ? start : extent;
  const int64_t end = stop < begin ? begin : stop < extent ? stop : extent;
  return {begin, end, (stop < edge ? stop : edge) - start};
}

// Where each window along one axis begins and ends in the input, and its extent clipped to the padded input, by which
// an average is divided: 1 unless `divided`.
struct WindowRanges {
  WindowRanges(int64_t extent, const PoolingWindow& window, int64_t outputs, bool divided = true);
  std::vector<int64_t> begin, end, padded;
  int64_t first_whole, end_whole;  // windows [first_whole, end_whole) lie inside the input
  // Number of windows that hold an input element; only the last ones do not.
  int64_t filled() const;
};

// Whether the positions in a window can be numbered, as max pooling of bf16 needs.
bool PositionsFit(const PoolingProblem& problem);

// Number of windows along one axis. ceil: Caffe's default, the last window may reach past the padded input. padded:
// whether there is padding along any axis; then it must start inside input + pad along each.
int64_t PooledExtent(int64_t extent, const PoolingWindow& window, bool ceil, bool padded);

// Allocates nothing when run; one thread at a time. A window without any input element gives 0 and gets no gradient.
class PoolingKernel {
 public:
  virtual ~PoolingKernel() = default;
  // What Forward keeps for Backward: nothing (count 0) when the method needs nothing or problem.backward is false.
  virtual TensorSpec saved() const { return {Shape{0}, DType::kF32}; }
  // indices (kMax only, may be null) gets each window's winner as its index in the input plane, in f32. `random` is
  // read by kStochastic while training: element i of destination, as it lies in memory, uses index i.
  virtual void Forward(const void* source, void* destination, void* saved, float* indices,
                       const RandomStream* random) = 0;
  // Overwrites all of source_gradient. source is read by kStochastic alone, and only when not training.
  virtual void Backward(const void* source, const void* destination_gradient, const void* saved,
                        void* source_gradient) = 0;
};

// Chooses from the table in pooling.cc; `only` ("reference") forces one of its candidates.
std::unique_ptr<PoolingKernel> MakePooling(const PoolingProblem& problem, const Device& device, KernelChoice* choice,
                                           std::string_view only = {});

}  // namespace crema

#endif  // CREMA_OPS_POOLING_POOLING_H_
