// Activations: elementwise functions of a few parameters, as data. Kernels run them on their results while those are in
// cache; formulas are those of functors.h.
#ifndef CREMA_OPS_ACTIVATIONS_ACTIVATION_H_
#define CREMA_OPS_ACTIVATIONS_ACTIVATION_H_

#include <cstdint>

#include "crema/tensor.h"

namespace crema {

// With a = parameter, b = second, c = third:
//   kRelu       x, below zero a * x
//   kRelu6      x within [0, 6], else the nearer of them
//   kSigmoid    1 / (1 + e^-x)
//   kTanh       tanh(x)
//   kSwish      x * sigmoid(a * x)
//   kHardSwish  x * (x / 6 + 1 / 2, within [0, 1])
//   kMish       x * tanh(log(1 + e^x))
//   kElu        x, below zero a * (e^x - 1)
//   kAbs        |x|
//   kBnll       log(1 + e^x)
//   kLinear     a * x + b; b where a is 0, whatever x
//   kSquare     (a * x + b)^2
//   kPower      (a * x + b)^c
//   kExp        b * e^(a * x)
//   kLog        c * log(a * x + b)
//   kClip       x within [a, b], else the nearer of them
//   kThreshold  1 above a, else 0; it has no gradient
//   kGelu       x * P(X <= x), X normally distributed
//   kGeluTanh   the same, about: x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))
struct Activation {
  enum class Kind {
    kNone,
    kRelu,
    kRelu6,
    kSigmoid,
    kTanh,
    kSwish,
    kHardSwish,
    kMish,
    kElu,
    kAbs,
    kBnll,
    kLinear,
    kSquare,
    kPower,
    kExp,
    kLog,
    kClip,
    kThreshold,
    kGelu,
    kGeluTanh
  };
  Kind kind = Kind::kNone;
  float parameter = 0, second = 0, third = 0;

  bool present() const { return kind != Kind::kNone; }
  // Whether the gradient is a function of the output; if not, it is one of the input. One that is the same everywhere
  // counts as either.
  bool gradient_reads_output() const {
    switch (kind) {
      case Kind::kRelu:
      case Kind::kElu:
        return !(parameter < 0);
      case Kind::kSwish:
      case Kind::kHardSwish:
      case Kind::kMish:
      case Kind::kAbs:
      case Kind::kSquare:
      case Kind::kPower:
      case Kind::kLog:
      case Kind::kClip:
      case Kind::kGelu:
      case Kind::kGeluTanh:
        return false;
      default:
        return true;
    }
  }
  // Whether the gradient is the same everywhere.
  bool gradient_is_constant() const { return kind == Kind::kNone || kind == Kind::kLinear; }
  // Whether the gradient depends on no more than whether the output is positive.
  bool gradient_reads_sign() const { return kind == Kind::kRelu && parameter >= 0; }
  // Whether the output is positive exactly where the input is, and 0 at 0.
  bool keeps_sign() const {
    return gradient_reads_sign() || kind == Kind::kTanh || kind == Kind::kNone ||
           (kind == Kind::kElu && parameter >= 0);
  }
  // Whether it may be a link of a chain. Those that may not are rare; their formulas would take registers of a GPU from
  // the others'.
  bool chains() const {
    switch (kind) {
      case Kind::kBnll:
      case Kind::kPower:
      case Kind::kExp:
      case Kind::kLog:
      case Kind::kThreshold:
      case Kind::kGelu:
      case Kind::kGeluTanh:
        return false;
      default:
        return kind != Kind::kElu || !(parameter < 0);
    }
  }
  // Whether it costs some twenty operations an element, not one.
  bool is_transcendental() const {
    return kind == Kind::kSigmoid || kind == Kind::kTanh || kind == Kind::kSwish || kind == Kind::kMish ||
           kind == Kind::kElu || kind == Kind::kBnll || kind == Kind::kPower || kind == Kind::kExp ||
           kind == Kind::kLog || kind == Kind::kGelu || kind == Kind::kGeluTanh;
  }
};

// y = activation(x); y may be x. Tensors of equal count, all f32 or all bf16. Threaded.
void RunActivation(const Activation& activation, const Tensor& x, const Tensor& y);
// dx = the gradient at `known` (the output where gradient_reads_output(), else the input) times dy; dx may be dy.
void RunActivationGradient(const Activation& activation, const Tensor& known, const Tensor& dy, const Tensor& dx);

// The same for n floats, on the calling thread.
void ActivateFloats(const Activation& activation, int64_t n, const float* x, float* y);
void ActivationGradientOfFloats(const Activation& activation, int64_t n, const float* known, const float* dy,
                                float* dx);

}  // namespace crema

#endif  // CREMA_OPS_ACTIVATIONS_ACTIVATION_H_
