// Activations: elementwise functions of at most one parameter, as data. Kernels run them on their results while those
// are in cache; formulas are those of functors.h.
#ifndef CREMA_OPS_ACTIVATION_H_
#define CREMA_OPS_ACTIVATION_H_

#include <cstdint>

#include "crema/tensor.h"

namespace crema {

struct Activation {
  enum class Kind { kNone, kRelu, kRelu6, kSigmoid, kTanh, kSwish };
  Kind kind = Kind::kNone;
  float parameter = 0;  // of kRelu the slope below zero, of kSwish beta

  bool present() const { return kind != Kind::kNone; }
  // Whether the gradient is a function of the output; if not, it is one of the input.
  bool gradient_reads_output() const { return kind != Kind::kSwish && !(kind == Kind::kRelu && parameter < 0); }
  // Whether the gradient depends on no more than whether the output is positive.
  bool gradient_reads_sign() const { return kind == Kind::kRelu && parameter >= 0; }
  // Whether the output is positive exactly where the input is, and 0 at 0.
  bool keeps_sign() const { return gradient_reads_sign() || kind == Kind::kTanh || kind == Kind::kNone; }
};

// y = activation(x); y may be x. Tensors of equal count, all f32 or all bf16. Threaded.
void RunActivation(const Activation& activation, const Tensor& x, const Tensor& y);
// dx = the gradient at `known` (the output where gradient_reads_output(), else the input) times dy; dx may be dy.
void RunActivationGradient(const Activation& activation, const Tensor& known, const Tensor& dy, const Tensor& dx);

// The same for n floats, on the calling thread.
void ActivateFloats(const Activation& activation, int64_t n, const float* x, float* y);
void ActivationGradientOfFloats(const Activation& activation, int64_t n, const float* known, const float* dy,
                                float* dx);
float ActivateFloat(const Activation& activation, float x);

}  // namespace crema

#endif  // CREMA_OPS_ACTIVATION_H_
