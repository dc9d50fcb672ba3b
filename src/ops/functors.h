// Elementwise formulas, each written once: function objects on floats that the CPU's loops (ops/elementwise.h) and CUDA
// kernels both inline. A formula's gradient takes the gradient of the output first, then what else it needs.
#ifndef CREMA_OPS_FUNCTORS_H_
#define CREMA_OPS_FUNCTORS_H_

#include <cstdint>
#include <cstring>

#include "base/multiversion.h"

#define CREMA_FORMULA CREMA_HOST_DEVICE CREMA_INLINE

namespace crema::formula {

// Splits exp(x) = 2^exponent * (1 + *remainder) with |remainder| < 0.42; x must lie in [-104, 89] or be NaN.
CREMA_FORMULA int32_t SplitExp(float x, float* remainder) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer, held in the low bits
  const float shifted = x * 1.44269504f + kRound;
  const float whole = shifted - kRound;
  float r = x - whole * 0.693359375f;
  r = r - whole * -2.12194440e-4f;
  float p = 0x1.a12680p-13f;  // (e^r - 1 - r) / r^2, interpolated at Chebyshev nodes
  p = p * r + 0x1.6d44e4p-10f;
  p = p * r + 0x1.1110e0p-7f;
  p = p * r + 0x1.5554e8p-5f;
  p = p * r + 0x1.555556p-3f;
  p = p * r + 0.5f;
  *remainder = r + r * r * p;
  uint32_t bits, base;
  std::memcpy(&bits, &shifted, sizeof bits);
  std::memcpy(&base, &kRound, sizeof base);
  return static_cast<int32_t>(bits - base);
}

// 2^exponent for exponents of normal numbers.
CREMA_FORMULA float PowerOfTwo(int32_t exponent) {
  const uint32_t bits = (static_cast<uint32_t>(exponent) + 127u) << 23;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// e^x within 1 unit in the last place for normal results; overflows to infinity and underflows to zero as std::exp
// does.
CREMA_FORMULA float Exp(float x) {
#if defined(__CUDA_ARCH__)
  return expf(x);
#else
  x = x < -104.0f ? -104.0f : x;
  x = x > 89.0f ? 89.0f : x;
  float remainder;
  const int32_t exponent = SplitExp(x, &remainder);
  const int32_t half = exponent >> 1;  // in two steps, since 2^exponent itself may be out of range
  return (1.0f + remainder) * PowerOfTwo(half) * PowerOfTwo(exponent - half);
#endif
}

// tanh(x) within 3 units in the last place.
CREMA_FORMULA float Tanh(float x) {
#if defined(__CUDA_ARCH__)
  return tanhf(x);
#else
  float twice = 2.0f * __builtin_fabsf(x);
  twice = twice > 20.0f ? 20.0f : twice;
  float remainder;
  const float power = PowerOfTwo(SplitExp(twice, &remainder));
  const float minus_one = power * remainder + (power - 1.0f);  // e^2|x| - 1 without cancellation
  return __builtin_copysignf(minus_one / (minus_one + 2.0f), x);
#endif
}

struct Relu {
  CREMA_FORMULA float operator()(float x) const { return x < 0.0f ? 0.0f : x; }
};
// From the output: it is positive exactly where the input was.
struct ReluGradient {
  CREMA_FORMULA float operator()(float dy, float y) const { return y > 0.0f ? dy : 0.0f; }
};

struct LeakyRelu {
  float slope;
  CREMA_FORMULA float operator()(float x) const {
    const float scaled = x * slope;
    return x < 0.0f ? scaled : x;
  }
};
// From the input, or for slopes >= 0 from the output.
struct LeakyReluGradient {
  float slope;
  CREMA_FORMULA float operator()(float dy, float x) const { return dy * (x > 0.0f ? 1.0f : slope); }
};

// Of a PReLU, whose slopes differ between elements.
struct Prelu {
  CREMA_FORMULA float operator()(float x, float slope) const { return LeakyRelu{slope}(x); }
};
// From the input.
struct PreluGradient {
  CREMA_FORMULA float operator()(float dy, float x, float slope) const { return LeakyReluGradient{slope}(dy, x); }
};
// What one element adds to the gradient of its slope.
struct SlopeGradient {
  CREMA_FORMULA float operator()(float dy, float x) const { return dy * (x > 0.0f ? 0.0f : x); }
};

struct Relu6 {
  CREMA_FORMULA float operator()(float x) const {
    const float positive = x < 0.0f ? 0.0f : x;
    return positive > 6.0f ? 6.0f : positive;
  }
};
// From the output: it lies between the limits exactly where the input did.
struct Relu6Gradient {
  CREMA_FORMULA float operator()(float dy, float y) const { return ((y > 0.0f) & (y < 6.0f)) ? dy : 0.0f; }
};

struct Sigmoid {
  CREMA_FORMULA float operator()(float x) const { return 1.0f / (1.0f + Exp(-x)); }
};
struct SigmoidGradient {
  CREMA_FORMULA float operator()(float dy, float y) const { return dy * y * (1.0f - y); }
};

struct HyperbolicTangent {
  CREMA_FORMULA float operator()(float x) const { return Tanh(x); }
};
struct HyperbolicTangentGradient {
  CREMA_FORMULA float operator()(float dy, float y) const { return dy * (1.0f - y * y); }
};

struct Swish {
  float beta;
  CREMA_FORMULA float operator()(float x) const { return x * Sigmoid()(beta * x); }
};
// From the input.
struct SwishGradient {
  float beta;
  CREMA_FORMULA float operator()(float dy, float x) const {
    const float sigmoid = Sigmoid()(beta * x);
    return dy * (sigmoid + beta * x * sigmoid * (1.0f - sigmoid));
  }
};

struct Multiple {
  float factor;
  CREMA_FORMULA float operator()(float x) const { return factor * x; }
};

struct WeightedSum {
  float a_weight, b_weight;
  CREMA_FORMULA float operator()(float a, float b) const { return a_weight * a + b_weight * b; }
};

struct Sum {
  CREMA_FORMULA float operator()(float a, float b) const { return a + b; }
};

struct SumRelu {
  CREMA_FORMULA float operator()(float a, float b) const { return Relu()(a + b); }
};

struct Maximum {
  CREMA_FORMULA float operator()(float a, float b) const { return a > b ? a : b; }
};

struct ConstantTimes {
  float value;
  const float* factor;  // in the device's memory
  CREMA_FORMULA float operator()() const { return value * *factor; }
};

struct Constant {
  float value;
  CREMA_FORMULA float operator()() const { return value; }
};

struct Product {
  CREMA_FORMULA float operator()(float a, float b) const { return a * b; }
};
// Gradient of a product with respect to one factor, by division: undefined where the factor is zero.
struct QuotientGradient {
  CREMA_FORMULA float operator()(float dy, float product, float factor) const { return dy * (product / factor); }
};

}  // namespace crema::formula

#endif  // CREMA_OPS_FUNCTORS_H_
